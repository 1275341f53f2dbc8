"""Where a gang could sit, as close together as its level asks: on scratch paper.

    level 0    one rack, on the fewest machines that an empty rack would need
    level 1    one rack
    level 2    anywhere

A rack stands for the paper's RDMA domain too. A gang that no rack could hold is at level 2 from the first. The emptiest
rack comes first, and in it the emptiest machine; a gang of up to `SMALL` takes the smallest hole there that holds it,
and a single accelerator the smallest hole of the cluster, so that large ones stay whole.

Where gangs are kept apart, a gang first looks at idle machines and a single accelerator at those without a gang; only
what finds no place there may share a machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.topology import Topology

TOGETHER, ONE_RACK, ANYWHERE = 0, 1, 2
SMALL = 4


@lru_cache(maxsize=8)
def _rack_rows(rack: tuple[str, ...]) -> Ints:
    return np.unique(np.array(rack), return_inverse=True)[1].astype(np.int64)


class Room:
    """Which devices are free. `up` (device,) are in service; all arrays are copied or left alone.

    `gangs` (device,) are held by gangs that are to be kept apart; None = machines are shared as it comes.
    """

    def __init__(self, topology: Topology, free: Bools, up: Bools, gangs: Bools | None = None):
        self._topology = topology
        self._rack = _rack_rows(topology.rack)  # (node,)
        self._device_free = free.copy()
        self.free = np.bincount(topology.node[free], minlength=topology.nodes)  # (node,)
        self.size = np.bincount(topology.node[up], minlength=topology.nodes)  # (node,) in service
        self._with_gang = None if gangs is None else np.bincount(topology.node[gangs], minlength=topology.nodes) > 0
        self._racks: dict[int, list[Ints]] = {}  # type -> nodes in service of each rack
        self._least: dict[tuple[int, int], int] = {}  # what `_fewest` found

    def copy(self) -> Room:
        """Return another sheet with the same on it."""
        other = object.__new__(Room)
        other._topology, other.size, other._rack = self._topology, self.size, self._rack
        other._with_gang = self._with_gang
        other._racks, other._least = self._racks, self._least
        other._device_free, other.free = self._device_free.copy(), self.free.copy()
        return other

    def take(self, devices: Ints) -> None:
        """Take free devices, for one gang."""
        self._device_free[devices] = False
        np.subtract.at(self.free, self._topology.node[devices], 1)
        if self._with_gang is not None and len(devices) > 1:
            self._with_gang = self._with_gang.copy()
            self._with_gang[self._topology.node[devices]] = True

    def give_back(self, devices: Ints) -> None:
        """Free devices that are in service."""
        self._device_free[devices] = True
        np.add.at(self.free, self._topology.node[devices], 1)

    def free_of(self, devices: Ints) -> Ints:
        """Return those of the devices that are free."""
        return devices[self._device_free[devices]]

    def find(self, type: int, size: int, level: int) -> Ints | None:
        """Return free devices for a gang, (size,), or None; nothing is taken."""
        if self._with_gang is not None:
            apart = self.free == self.size if size > 1 else ~self._with_gang
            found = self._find(type, size, level, (self.free > 0) & apart)
            if found is not None:
                return found
        return self._find(type, size, level, self.free > 0)

    def _find(self, type: int, size: int, level: int, among: Bools) -> Ints | None:
        """Do `find` on some nodes, (node,)."""
        racks = [nodes[among[nodes]] for nodes in self._racks_of(type)]
        nodes = np.concatenate(racks) if racks else NO_INTS
        if self.free[nodes].sum() < size:
            return None
        if size == 1:
            return self._seats(nodes[[np.argmin(self.free[nodes])]], 1)
        for place in self._places(type, size, level, racks):
            if self.free[place].sum() >= size:
                return self._seats(place, size)
        return None

    def gather(self, type: int, size: int, level: int) -> Ints:
        """Return the free devices to hold until the others of a gang's place come free; fewer than `size`."""
        part = -(-size // max(self._fewest(type, size), 1)) if level == TOGETHER else 1
        racks = [nodes[self.size[nodes] >= part] for nodes in self._racks_of(type)]
        places = [place for place in self._places(type, size, level, racks) if self.size[place].sum() >= size]
        if not places:
            return NO_INTS
        return self._seats(max(places, key=lambda place: int(self.free[place].sum())), size)

    def _places(self, type: int, size: int, level: int, racks: list[Ints]) -> Iterator[Ints]:
        """Yield the nodes of each place that a gang may use, the best first; in each the nodes to fill first."""
        least = self._fewest(type, size)
        ranked = [nodes for nodes in racks if len(nodes)]
        if len(ranked) > 1:
            ranked.sort(key=self._allocated)
        if least:
            for nodes in ranked:
                yield self._together(nodes, size, least)
        if least and level >= ONE_RACK:
            yield from (self._emptiest(nodes) for nodes in ranked)
        if ranked and (not least or level >= ANYWHERE):
            yield self._emptiest(np.concatenate(ranked))

    def _together(self, nodes: Ints, size: int, least: int) -> Ints:
        holes = nodes[self.free[nodes] >= size]
        if least == 1 and size <= SMALL and len(holes):
            return np.asarray(holes[[np.argmin(self.free[holes])]])
        return self._emptiest(nodes)[:least]

    def _emptiest(self, nodes: Ints) -> Ints:
        return np.asarray(nodes[np.argsort(-self.free[nodes], kind="stable")])

    def _allocated(self, nodes: Ints) -> float:
        """Return which part of the rack of these nodes is allocated."""
        mine = self._rack[nodes[0]] == self._rack
        mine &= self._topology.node_type == self._topology.node_type[nodes[0]]
        return 1.0 - float(self.free[mine].sum() / self.size[mine].sum())

    def _racks_of(self, type: int) -> list[Ints]:
        """Return the nodes of a type that are in service, rack by rack."""
        if type not in self._racks:
            nodes = np.flatnonzero((self._topology.node_type == type) & (self.size > 0))
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
        upto = np.cumsum(-np.sort(-self.size[nodes]))
        return int(np.searchsorted(upto, size)) + 1 if upto[-1] >= size else 0

    def _seats(self, nodes: Ints, size: int) -> Ints:
        """Return up to `size` free devices of these nodes, the first node first."""
        found = []
        for node in nodes.tolist():
            first = self._topology.first[node]
            mine = first + np.flatnonzero(self._device_free[first : first + self._topology.size[node]])
            found.append(mine[:size])
            size -= len(found[-1])
            if size == 0:
                break
        return np.concatenate(found).astype(np.int64) if found else NO_INTS
