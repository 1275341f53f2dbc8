"""The nodes of an engine as those of a topology: which is which, which are in service, and what others hold of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from eunomia.backends.engines.engine import NOT_DONE, Engine, EngineNode
from eunomia.backends.engines.node_names import assign
from eunomia.backends.reports import BY_ENGINE, EngineReport, NodeState, SeatsTaken
from eunomia.model.topology import Topology

_log = logging.getLogger(__name__)


class EngineNodes:
    """Reads the nodes of an engine, and reports what has changed since the last look."""

    def __init__(
        self, engine: Engine, workdir: Path, topology: Topology, report: Callable[[EngineReport], None]
    ) -> None:
        self.topology, self.listed = topology, tuple[EngineNode, ...]()
        self._engine, self._workdir, self._report = engine, workdir, report
        self._names: dict[int, str] = {}
        self._away: dict[int, str] = {}  # nodes that were reported out of service
        self._taken_before: dict[int, int] = {}  # at the last look
        self._taken_seats: tuple[tuple[int, str], ...] = ()  # as reported

    def use_topology(self, topology: Topology) -> None:
        """Go on with other accelerators."""
        self.topology = topology
        self._names = assign(topology, self.listed, self._workdir, self._engine.name)

    def names(self) -> Mapping[int, str]:
        """Return the engine's name of each node. Raises EngineAway, EngineRefused or InvalidInput without them."""
        if not self._names:
            if not self.listed:
                self.listed = tuple(self._engine.nodes())
            self._names = assign(self.topology, self.listed, self._workdir, self._engine.name)
        return self._names

    def taken(self, node: int, ours: Iterable[int]) -> int:
        """Return how many accelerators of a node others hold, when our gangs hold these seats."""
        if node not in self._names:
            return 0
        name, kind = self._names[node], self.topology.types[int(self.topology.node_type[node])]
        used = sum(one.used.get(kind, 0) for one in self.listed if one.name == name)
        return max(used - Counter(int(self.topology.node[seat]) for seat in ours)[node], 0)

    def read(self, ours: Iterable[int], ordered: Iterable[int]) -> None:
        """Report nodes that have left service or come back, and the seats that others hold.

        ours: seats that our gangs may hold in the engine; ordered: also those of gangs that it has not yet been given.
        """
        try:
            self.listed = tuple(self._engine.nodes())
            names = self.names()
        except NOT_DONE as error:
            _log.warning("nodes of %s could not be read: %s", self._engine.name, error)
            return
        found = {node.name: node for node in self.listed}
        for n, name in names.items():
            why = self._why_away(n, found.get(name))
            if why != self._away.get(n):  # at the first look also those in service
                self._away[n] = why
                self._report(NodeState(n, why))
        self._report_taken(list(ours), set(ordered))

    def _report_taken(self, ours: list[int], held: set[int]) -> None:
        """Report as many of a node's free seats as the engine counts for others at two looks in a row."""
        taken = {n: self.taken(n, ours) for n in self._names}
        seats: list[tuple[int, str]] = []
        for n, count in taken.items():
            first, size = int(self.topology.first[n]), int(self.topology.size[n])
            free = [seat for seat in range(first, first + size) if seat not in held]
            sure = min(count, self._taken_before.get(n, 0))
            seats += [
                (seat, f"another job of {self._engine.name}") for seat in free[len(free) - min(sure, len(free)) :]
            ]
        self._taken_before = taken
        if tuple(seats) != self._taken_seats:
            self._taken_seats = tuple(seats)
            self._report(SeatsTaken(self._taken_seats))

    def _why_away(self, n: int, node: EngineNode | None) -> str:
        source = f"{BY_ENGINE}{self._engine.name}: "
        if node is None:
            return f"{source}there is no node {self._names[n]}"
        kind, size = self.topology.types[int(self.topology.node_type[n])], int(self.topology.size[n])
        there = node.accelerators.get(kind, 0)
        if not node.away and there < size:
            return f"{source}it has {there} {kind}, and {size} are declared"
        return f"{source}{node.away}" if node.away else ""

    def set_node(self, node: int, reason: str) -> None:
        """Take a node out of service in the engine, or bring it back; what fails is logged."""
        try:
            self._engine.set_node(self.names()[node], reason)
        except NOT_DONE as error:
            _log.warning("node %d could not be %s in %s: %s", node, "drained" if reason else "resumed",
                         self._engine.name, error)  # fmt: skip
