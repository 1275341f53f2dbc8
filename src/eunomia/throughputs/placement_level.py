"""Placement of a gang as it affects speed: its numbers of slots, machines and racks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Ints
from eunomia.model.topology import Topology


class PlacementLevel(IntEnum):
    """The smallest unit of the cluster that holds a whole gang. A slot's accelerators share the fastest link."""

    SLOT = 0
    MACHINE = 1
    RACK = 2
    ACROSS = 3


class PlacementSpan(NamedTuple):
    """The number of units of each level that a gang uses; at least 1 of each."""

    nodes: int = 1
    racks: int = 1
    slots: int = 1

    @property
    def level(self) -> PlacementLevel:
        """The smallest unit that holds the gang."""
        if self.racks > 1:
            return PlacementLevel.ACROSS
        if self.nodes > 1:
            return PlacementLevel.RACK
        return PlacementLevel.MACHINE if self.slots > 1 else PlacementLevel.SLOT


CLOSEST = PlacementSpan()


class ClusterUnits:
    """A cluster's units. Machines without a rack share one; with 0 accelerators per slot a machine is a slot."""

    def __init__(self, topology: Topology):
        self._topology = topology
        self._best: dict[tuple[int, int], PlacementSpan] = {}

    @cached_property
    def _units(self) -> tuple[list[int], list[int], list[int]]:
        """Node, rack and slot of each device, as lists for fast look-ups."""
        topology = self._topology
        rack_by_name = {name: row for row, name in enumerate(dict.fromkeys(topology.rack))}
        rack = np.array([rack_by_name[name] for name in topology.rack])[topology.node]
        return topology.node.tolist(), rack.tolist(), self._number_slots().tolist()

    def _number_slots(self) -> Ints:
        """Return the slot of each device, (device,), numbered through the cluster."""
        topology, per_slot = self._topology, self._topology.slot_sizes()
        within = (np.arange(topology.devices) - topology.first[topology.node]) // per_slot[topology.node]
        most = int((-(-topology.size // per_slot)).max())
        return np.asarray(topology.node * most + within)

    def place(self, seats: Sequence[int]) -> PlacementSpan:
        """Return the units that a gang on these devices uses."""
        if len(seats) == 1:
            return CLOSEST
        node, rack, slot = self._units
        nodes, slots = {node[seat] for seat in seats}, {slot[seat] for seat in seats}
        racks = 1 if len(nodes) == 1 else len({rack[seat] for seat in seats})
        return PlacementSpan(len(nodes), racks, len(slots))

    def best(self, type: int, size: int) -> PlacementSpan:
        """Return the fewest units of each level that hold a gang of this type and size in the empty cluster."""
        span = self._best.get((type, size))
        if span is None:
            span = self._best[type, size] = self._find_closest(type, size)
        return span

    def apart(self, type: int, size: int) -> PlacementSpan:
        """Return the closest span on several machines: the best where no machine holds the gang, else two machines."""
        best = self.best(type, size)
        if size == 1 or best.nodes > 1:
            return best
        return PlacementSpan(2, best.racks, max(best.slots, 2))

    def _find_closest(self, type: int, size: int) -> PlacementSpan:
        topology = self._topology
        of_type = topology.node_type == type
        sizes = topology.size[of_type]
        racks: dict[str, int] = {}
        for name, devices in zip(np.array(topology.rack, dtype=object)[of_type], sizes.tolist(), strict=True):
            racks[name] = racks.get(name, 0) + devices
        per_slot = min(int(topology.slot_sizes()[of_type].max()), int(sizes.max())) if len(sizes) else 1
        nodes = _count_largest(sizes, size)
        return PlacementSpan(
            nodes, _count_largest(np.array(list(racks.values())), size), max(nodes, -(-size // per_slot))
        )


def _count_largest(sizes: Ints, wanted: int) -> int:
    """Return how many of the largest units hold `wanted` accelerators together; all if they do not suffice."""
    if len(sizes) == 0:
        return 1
    total = np.cumsum(np.sort(sizes)[::-1])
    return min(int(np.searchsorted(total, wanted)) + 1, len(sizes))
