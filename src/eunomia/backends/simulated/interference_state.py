"""Slowdown of each gang by its placement and by other gangs on the same machines."""

from __future__ import annotations

from collections.abc import Iterable

from eunomia.model.topology import Topology
from eunomia.throughputs.interference import Neighbours
from eunomia.throughputs.job_type_facts import Kind
from eunomia.throughputs.placed_throughputs import PlacedThroughputs

Group = tuple[int, ...]  # the job on some seats, or the two that share them, which are no neighbours


class Interference:
    """Slowdowns by placement and by neighbours of the running gangs; jobs are named by their rows."""

    def __init__(self, topology: Topology, speeds: PlacedThroughputs, neighbours: Neighbours | None):
        self._speeds, self._neighbours = speeds, neighbours
        self._node_of = topology.node.tolist()
        self._on: list[dict[int, None]] = [{} for _ in range(topology.nodes)]  # (node,) gangs in order of arrival
        self._kind: dict[int, Kind] = {}
        self._nodes: dict[int, tuple[int, ...]] = {}

    def by_place(self, kind: Kind, type: int, seats: tuple[int, ...], partner: str | None) -> float:
        """Return the slowdown of a gang on these seats, alone or beside a partner of that job type."""
        return self._speeds.slowdown(kind, type, self._speeds.ground.place(seats), partner)

    def arrive(self, group: Group, kinds: Iterable[Kind], seats: tuple[int, ...]) -> list[int]:
        """Place a group; return the others whose neighbours have changed."""
        if self._neighbours is None:
            return []
        nodes = tuple(sorted({self._node_of[seat] for seat in seats}))
        for job, kind in zip(group, kinds, strict=True):
            self._kind[job], self._nodes[job] = kind, nodes
            for node in nodes:
                self._on[node][job] = None
        return self._near(nodes, group)

    def leave(self, job: int) -> list[int]:
        """Remove a job; return the others whose neighbours have changed."""
        nodes = self._nodes.pop(job, ())
        for node in nodes:
            del self._on[node][job]
        self._kind.pop(job, None)
        return self._near(nodes, (job,))

    def by_neighbours(self, group: Group) -> float:
        """Return the slowdown of the first of a group by all its present neighbours."""
        job = group[0]
        if self._neighbours is None or job not in self._nodes:
            return 1.0
        nodes = self._nodes[job]
        others = [self._kind[other] for other in self._near(nodes, group)]
        return self._neighbours.slowdown(self._kind[job], len(nodes), others) if others else 1.0

    def _near(self, nodes: tuple[int, ...], but: Group) -> list[int]:
        found = dict.fromkeys(job for node in nodes for job in self._on[node])
        return [job for job in found if job not in but]
