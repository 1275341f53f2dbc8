"""The free accelerators of a cluster, given to whole gangs, close together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.topology import Topology
from eunomia.placement.free_index import Index, build, empty_index, fewest_nodes, give_back, seat_gang, take


class FreeCapacity:
    """Which accelerators are free. A policy builds one as scratch paper; the core keeps one up to date."""

    def __init__(self, topology: Topology, free: Bools):
        """`free` (device,): may be given away; the array is copied."""
        self.topology = topology
        self._index = empty_index(
            topology.node_type, topology.first, topology.size, topology.node, free.copy(), len(topology.types)
        )
        build(self._index)
        self._up = np.ones(topology.nodes, dtype=bool)

    @property
    def index(self) -> Index:
        """The arrays behind it, for compiled steps."""
        return self._index

    @property
    def free(self) -> Ints:
        """(type,) accelerators free now; do not write."""
        return self._index.total

    @property
    def free_by_node(self) -> Ints:
        """(node,) accelerators free now; do not write."""
        return self._index.free

    @property
    def device_free(self) -> Bools:
        """(device,) do not write."""
        return self._index.device_free

    @property
    def up(self) -> Bools:
        """(node,) in service; do not write."""
        return self._up

    def place(self, type: int, size: int, *, one_machine: bool = False) -> Ints | None:
        """Take seats for a gang and return its devices (size,), or None and take nothing.

        On one node where it fits best, else on the fewest nodes. `one_machine` refuses more nodes than the gang
        would need in an empty cluster. The cost does not grow with the number of nodes that are busy.
        """
        seats = np.empty(size, dtype=np.int64)
        return seats if seat_gang(self._index, type, size, one_machine, seats) else None

    def spread(self, type: int, size: int) -> int:
        """Return the fewest nodes that hold such a gang now; 0 = it does not fit."""
        return int(fewest_nodes(self._index, type, size))

    def emptiest(self, nodes: Ints) -> Ints:
        """Return these nodes, those with the most free accelerators first; ties as they stand."""
        return nodes[np.argsort(-self.free_by_node[nodes], kind="stable")]

    def free_on(self, nodes: Ints, size: int) -> Ints:
        """Return up to `size` free devices of these nodes, those of the first node first; nothing is taken."""
        found = [NO_INTS]
        for node in nodes.tolist():
            first = self.topology.first[node]
            here = first + np.flatnonzero(self.device_free[first : first + self.topology.size[node]])
            found.append(here[:size])
            size -= len(found[-1])
            if size == 0:
                break
        return np.concatenate(found)

    def take(self, devices: Ints) -> None:
        """Take these devices; all of them are free."""
        take(self._index, devices)

    def give_back(self, devices: Ints) -> None:
        """Free these devices; those of a lost node stay lost."""
        give_back(self._index, devices, self._up)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Try placements: at the end, whatever was taken or freed meanwhile is undone."""
        before = self.device_free.copy()
        yield
        now = self.device_free
        taken, freed = np.flatnonzero(before & ~now), np.flatnonzero(now & ~before)
        self.give_back(taken)
        self.take(freed)

    def lose(self, node: int) -> None:
        """Take a node out of service; its gangs are the caller's concern."""
        devices = self._devices(node)
        take(self._index, devices[self._index.device_free[devices]])
        self._up[node] = False

    def restore(self, node: int) -> None:
        """Put a lost node back into service, empty."""
        self._up[node] = True
        give_back(self._index, self._devices(node), self._up)

    def is_free(self, devices: Ints) -> bool:
        """Return whether all of these devices may be given away."""
        return bool(self._index.device_free[devices].all())

    def _devices(self, node: int) -> Ints:
        first = self.topology.first[node]
        return np.arange(first, first + self.topology.size[node])
