"""A real Ray cluster on this machine: a head and three nodes with accelerators that nothing checks for."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.engines.loopback import NODES, in_time, until

REMOVED_S = 120.0  # for Ray to notice, or to take accelerators back


@contextmanager
def reaped(nodes: Iterable[Any]) -> Iterator[None]:
    """Wait at the end for the processes of nodes. Ray drops those not gone 1 s after a kill: a ResourceWarning."""
    processes = [one.process for node in nodes for kind in node.all_processes.values() for one in kind]
    yield
    for process in processes:
        in_time(process.wait, f"process {process.pid} is gone")


class RayCluster:
    """The running cluster; this process is one of its drivers."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="ray-")  # short: paths of sockets have a limit
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_TMPDIR=self.folder)
        import ray
        from ray.cluster_utils import Cluster

        self.ray = ray
        head = {
            "num_cpus": 2,
            "num_gpus": 0,
            "include_dashboard": False,
            "object_store_memory": 100_000_000,
            "_system_config": {  # a node that is gone is missed soon, and one that waits for a core is not
                "health_check_period_ms": 500,
                "health_check_failure_threshold": 3,
                "health_check_timeout_ms": 60_000,
            },
        }
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._nodes: dict[str, Any] = {}
        for name, (_, count) in NODES.items():
            self.add(name, count)
        ray.init(address=self.address, namespace="others", log_to_driver=False)
        self._cluster.wait_for_nodes()

    @property
    def lost(self) -> set[str]:
        """Names of nodes that are missing."""
        return NODES.keys() - self._nodes.keys()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, name: str, count: int) -> None:
        """Start a node with so many accelerators."""
        self._nodes[name] = self._cluster.add_node(
            num_cpus=8, num_gpus=count, labels={"gpu-type": NODES[name][0].upper()}, node_name=name,
            object_store_memory=80_000_000,
        )  # fmt: skip

    def remove(self, name: str) -> None:
        """End a node with a kill, and wait until Ray has noticed."""
        node = self._nodes.pop(name)
        with reaped([node]):
            in_time(
                lambda: self._cluster.remove_node(node, allow_graceful=False), f"the processes of {name} are killed"
            )
        until(lambda: node.node_id not in self._alive(), f"Ray has lost {name}", REMOVED_S)

    def _alive(self) -> set[str]:
        return {one["NodeID"] for one in self.ray.nodes() if one["Alive"]}

    def free(self) -> dict[str, float]:
        """Return the free accelerators of each node."""
        from ray._private import state

        names = {one["NodeID"]: one["NodeName"] for one in self.ray.nodes() if one["Alive"]}
        rooms = state.available_resources_per_node()
        return {name: rooms.get(node, {}).get("GPU", 0.0) for node, name in names.items() if name in NODES}

    def repair(self) -> None:
        """Start the nodes that are missing, end all gangs, and wait until no accelerator is held."""
        in_time(self._end_gangs, "Ray has removed all gangs", 120.0)
        for name in self.lost:
            self.add(name, NODES[name][1])
        whole = {name: float(count) for name, (_, count) in NODES.items()}
        until(lambda: self.free() == whole, lambda: f"all accelerators are free; these are: {self.free()}", REMOVED_S)

    def _end_gangs(self) -> None:
        from ray.util.placement_group import PlacementGroup, placement_group_table, remove_placement_group

        for group, one in placement_group_table().items():
            if one["state"] != "REMOVED":
                remove_placement_group(PlacementGroup(self.ray.PlacementGroupID(bytes.fromhex(group))))

    def busy(self, task: str) -> list[str]:
        """Return the nodes that run a task of this name, as its processes are called."""
        parents = set()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if (entry / "cmdline").read_bytes().decode(errors="replace").startswith(task):
                    parents.add(int((entry / "stat").read_text().rpartition(")")[2].split()[1]))
        return [name for name, node in self._nodes.items() if node.all_processes["raylet"][0].process.pid in parents]

    def signal_store(self, number: signal.Signals) -> None:
        """Signal Ray's control store."""
        [store] = self._cluster.head_node.all_processes["gcs_server"]
        os.kill(store.process.pid, number)

    def close(self) -> None:
        """End everything."""
        in_time(self.ray.shutdown, "this driver has left Ray")
        with reaped([self._cluster.head_node, *self._nodes.values()]):
            in_time(self._cluster.shutdown, "Ray has ended")
        shutil.rmtree(self.folder, ignore_errors=True)
