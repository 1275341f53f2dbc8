"""A real Ray cluster keeps the contract of worlds: a head, three nodes, and processes that write down what they do."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engines.driver import ORDER, EngineDriver
from tests.engines.loopback import NODES, until
from tests.ray_cluster.loopback import RayCluster

from eunomia.backends.engines.engine import EngineAway, Mark
from eunomia.backends.ray.client import AgentClient
from eunomia.backends.ray.engine import Ray
from eunomia.testing import Work, WorldContract, WorldDriver


class RayDriver(EngineDriver):
    """Drives the world of a service whose engine is the cluster of the tests."""

    def __init__(self, cluster: RayCluster, folder: Path, works: Mapping[str, Work]) -> None:
        self.cluster = cluster
        self._fault = ""
        self._agent = AgentClient(cluster.address, "eunomia", timeout_s=3.0)
        super().__init__(Ray(self._ask), folder, works)

    def _ask(self, do: str, **about: Any) -> Any:
        """Ask the agent, or answer as during a fault."""
        if self._fault == "error":
            raise EngineAway("Ray: the store answers with an error")
        if self._fault == "empty" and do in ("gangs", "ended"):
            return [] if do == "gangs" else ""
        answer = self._agent.ask(do, **about)
        if self._fault == "lost" and do == "submit":
            raise EngineAway("Ray did not answer in time")
        return answer

    def close(self) -> None:
        super().close()
        self.cluster.repair()
        self._agent.close()

    def placement(self, job_id: str, epoch: int) -> dict[int, int]:
        """Return what Ray says that the gang has."""
        from ray.util.placement_group import placement_group_table

        names = {node["NodeID"]: node["NodeName"] for node in self.cluster.ray.nodes()}
        found: Counter[int] = Counter()
        for group in placement_group_table().values():
            if group["name"].endswith(f":{job_id}:{epoch}") and group["state"] == "CREATED":
                for bundle, node in group["bundles_to_node_id"].items():
                    found[ORDER.index(names[node])] += int(group["bundles"][bundle]["GPU"])
        return dict(found)

    @contextmanager
    def away(self, how: str) -> Iterator[None]:
        if how == "timeout":
            self.cluster.signal_store(signal.SIGSTOP)
        self._fault = how
        yield
        self._fault = ""
        if how == "timeout":
            self.cluster.signal_store(signal.SIGCONT)

    @contextmanager
    def lost_answers(self) -> Iterator[None]:
        self._fault = "lost"
        yield
        self._fault = ""

    def remove(self, job_id: str, epoch: int) -> None:
        ray, mark = self.cluster.ray, Mark(self.world.cluster, job_id, epoch)
        ray.kill(ray.get_actor(str(mark), namespace="eunomia"))

    @contextmanager
    def reused(self, job_id: str, epoch: int) -> Iterator[Callable[[], bool]]:
        name = str(Mark(self.world.cluster, job_id, epoch))
        self.remove(job_id, epoch)
        until(lambda: not self._has_actor(name), f"{name} has ended")
        with self._stranger(2, name=name, namespace="eunomia") as runs:
            yield runs

    def _has_actor(self, name: str) -> bool:
        try:
            self.cluster.ray.get_actor(name, namespace="eunomia")
        except ValueError:
            return False
        return True

    def drain(self, node: int) -> None:
        self._agent.ask("set_node", name=ORDER[node], reason="fans")

    def resume(self, node: int) -> None:
        self._agent.ask("set_node", name=ORDER[node], reason="")

    def lose(self, node: int) -> None:
        self.cluster.remove(ORDER[node])

    @contextmanager
    def shrunk(self, node: int) -> Iterator[None]:
        name = ORDER[node]
        self.cluster.remove(name)
        self.cluster.add(name, NODES[name][1] - 1)
        yield
        self.cluster.remove(name)
        self.cluster.add(name, NODES[name][1])

    def stranger(self, node: int) -> AbstractContextManager[Callable[[], bool]]:
        return self._stranger(node)

    @contextmanager
    def _stranger(self, node: int, **options: str) -> Iterator[Callable[[], bool]]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray = self.cluster.ray
        ids = {one["NodeName"]: one["NodeID"] for one in ray.nodes() if one["Alive"]}

        class Stranger:
            def runs(self) -> bool:
                return True

        pinned = NodeAffinitySchedulingStrategy(ids[ORDER[node]], soft=False)
        actor = ray.remote(Stranger).options(num_gpus=1, scheduling_strategy=pinned, **options).remote()
        yield lambda: ray.get(actor.runs.remote(), timeout=60)
        ray.kill(actor)


class TestRayWorld(WorldContract):
    within_s = 240.0

    @pytest.fixture(autouse=True)
    def _with_cluster(self, ray_cluster: RayCluster) -> None:
        self.cluster = ray_cluster

    def driver(self, folder: Path, works: Mapping[str, Work]) -> WorldDriver:
        return RayDriver(self.cluster, folder, works)
