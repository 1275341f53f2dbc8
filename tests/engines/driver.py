"""The driver of worlds whose gangs an engine of the tests runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.engines.loopback import NODES

from eunomia.backends.engines.engine import Engine
from eunomia.backends.engines.gang_state import EngineTimes
from eunomia.backends.engines.gangs import EngineGangs
from eunomia.backends.world import WorldInputs
from eunomia.model.topology import Node, Topology
from eunomia.testing import ProcessDriver, Work

CLUSTER = Topology.of([Node(type=kind, accelerators=size) for kind, size in NODES.values()])
ORDER = tuple(NODES)
TIMES = EngineTimes(poll_s=0.3, nodes_s=0.5, lost_start_s=2.0, vanished_s=10.0)


class EngineDriver(ProcessDriver):
    """Drives the world of a service on an engine; a subclass has the engine's faults."""

    world: EngineGangs

    def __init__(self, engine: Engine, folder: Path, works: Mapping[str, Work]) -> None:
        super().__init__(
            folder, works, CLUSTER,
            lambda report: EngineGangs(
                engine, WorldInputs(workdir=folder / "jobs", topology=CLUSTER, report=report), times=TIMES
            ),
        )  # fmt: skip

    def orphans(self) -> list[tuple[str, int]]:
        return self.world.orphans()

    def in_service(self, node: int) -> bool:
        return node not in self._away_nodes

    def taken(self, node: int) -> int:
        return self.world.taken(node)
