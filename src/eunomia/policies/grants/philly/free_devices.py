"""Where a gang could run, as close together as its level of locality asks.

    level 0    one rack, on the fewest machines that an empty rack would need
    level 1    one rack
    level 2    anywhere

A rack stands for the paper's RDMA domain too. A gang that no rack could hold starts at level 2. The emptiest rack comes
first, and in it the emptiest machine; a gang of up to `SMALL` takes the smallest hole there that holds it, and a single
accelerator the smallest hole of the cluster, so that large ones stay whole.

Where gangs are isolated, a gang first looks at idle machines and a single accelerator at machines without a gang; only
jobs that find no place there may share a machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.topology import Topology
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.levels import racks_by_name

TOGETHER, ONE_RACK, ANYWHERE = 0, 1, 2
SMALL = 4


class FreeDevices(FreeCapacity):
    """Free accelerators, and places for gangs by locality.

    `up` (device,) are in service. `gangs` (device,) are held by gangs to be isolated; None = machines are shared.
    """

    def __init__(self, topology: Topology, free: Bools, up: Bools, gangs: Bools | None = None):
        super().__init__(topology, free)
        self._rack = racks_by_name(topology.rack)
        self.in_service = np.bincount(topology.node[up], minlength=topology.nodes)  # (node,) accelerators
        self._with_gang = None if gangs is None else np.bincount(topology.node[gangs], minlength=topology.nodes) > 0
        self._racks: dict[int, list[Ints]] = {}  # type -> nodes in service of each rack
        self._least: dict[tuple[int, int], int] = {}  # what `_fewest` found

    def take(self, devices: Ints) -> None:
        """Take free devices, for one gang."""
        super().take(devices)
        if self._with_gang is not None and len(devices) > 1:
            self._with_gang = self._with_gang.copy()
            self._with_gang[self.topology.node[devices]] = True

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Try placements: at the end, whatever was taken or freed meanwhile is undone."""
        with_gang = self._with_gang
        with super().trial():
            yield
        self._with_gang = with_gang

    def find(self, type: int, size: int, level: int) -> Ints | None:
        """Return free devices for a gang, (size,), or None; nothing is taken."""
        has_free = self.free_by_node > 0
        if self._with_gang is not None:
            apart = self.free_by_node == self.in_service if size > 1 else ~self._with_gang
            found = self._find(type, size, level, has_free & apart)
            if found is not None:
                return found
        return self._find(type, size, level, has_free)

    def _find(self, type: int, size: int, level: int, among: Bools) -> Ints | None:
        """Do `find` on some nodes, (node,)."""
        racks = [nodes[among[nodes]] for nodes in self._racks_of(type)]
        nodes = np.concatenate(racks) if racks else NO_INTS
        free = self.free_by_node
        if free[nodes].sum() < size:
            return None
        if size == 1:
            return self.free_on(nodes[[np.argmin(free[nodes])]], 1)
        for place in self._places(type, size, level, racks):
            if free[place].sum() >= size:
                return self.free_on(place, size)
        return None

    def gather(self, type: int, size: int, level: int) -> Ints:
        """Return the free devices to hold until the others of a gang's place come free; fewer than `size`."""
        part = -(-size // max(self._fewest(type, size), 1)) if level == TOGETHER else 1
        racks = [nodes[self.in_service[nodes] >= part] for nodes in self._racks_of(type)]
        places = [place for place in self._places(type, size, level, racks) if self.in_service[place].sum() >= size]
        if not places:
            return NO_INTS
        return self.free_on(max(places, key=lambda place: int(self.free_by_node[place].sum())), size)

    def _places(self, type: int, size: int, level: int, racks: list[Ints]) -> Iterator[Ints]:
        """Yield the nodes of each place that a gang may use, the best first; in each the nodes to fill first.

        `racks` are some of the nodes of each rack of the type.
        """
        least = self._fewest(type, size)
        ranked = [nodes for nodes in racks if len(nodes)]
        if len(ranked) > 1:
            allocated = [self._allocated(nodes) for nodes in self._racks_of(type)]
            line = sorted(range(len(racks)), key=allocated.__getitem__)
            ranked = [racks[rack] for rack in line if len(racks[rack])]
        if least:
            for nodes in ranked:
                yield self._together(nodes, size, least)
        if least and level >= ONE_RACK:
            yield from (self.emptiest(nodes) for nodes in ranked)
        if ranked and (not least or level >= ANYWHERE):
            yield self.emptiest(np.concatenate(ranked))

    def _together(self, nodes: Ints, size: int, least: int) -> Ints:
        holes = nodes[self.free_by_node[nodes] >= size]
        if least == 1 and size <= SMALL and len(holes):
            return np.asarray(holes[[np.argmin(self.free_by_node[holes])]])
        return self.emptiest(nodes)[:least]

    def _allocated(self, nodes: Ints) -> float:
        """Return which part of a rack is allocated."""
        return 1.0 - float(self.free_by_node[nodes].sum() / self.in_service[nodes].sum())

    def _racks_of(self, type: int) -> list[Ints]:
        """Return the nodes of a type that are in service, rack by rack."""
        if type not in self._racks:
            nodes = np.flatnonzero((self.topology.node_type == type) & (self.in_service > 0))
            rack = self._rack[nodes]
            self._racks[type] = [nodes[rack == one] for one in np.unique(rack).tolist()]
        return self._racks[type]

    def _fewest(self, type: int, size: int) -> int:
        """Return how many machines such a gang needs in the best empty rack; 0 = no rack holds it."""
        if (type, size) not in self._least:
            needs = [self._needs(nodes, size) for nodes in self._racks_of(type)]
            self._least[type, size] = min((one for one in needs if one), default=0)
        return self._least[type, size]

    def _needs(self, nodes: Ints, size: int) -> int:
        upto = np.cumsum(-np.sort(-self.in_service[nodes]))
        return int(np.searchsorted(upto, size)) + 1 if upto[-1] >= size else 0
