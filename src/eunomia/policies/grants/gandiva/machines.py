"""Where units sit: with their like, on empty machines, then wherever there is room."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools, Ints
from eunomia.model.topology import Topology


class Machines:
    """Scratch paper: which devices are free, and gangs of which sizes each machine holds."""

    def __init__(self, topology: Topology, free: Bools):
        self.topology, self.free = topology, free.copy()
        self._sizes: list[set[int]] = [set() for _ in range(topology.nodes)]

    def settle(self, devices: Ints, size: int) -> None:
        """Take devices for a gang of that size."""
        self.free[devices] = False
        for node in np.unique(self.topology.node[devices]).tolist():
            self._sizes[node].add(size)

    def place(self, type: int, size: int) -> Ints:
        """Return devices for a gang for which there are enough: one machine by affinity, else the emptiest ones."""
        room = self.room()
        nodes = np.flatnonzero((self.topology.node_type == type) & (room >= size))
        if len(nodes):
            affine = np.array([self._affinity(node, size) for node in nodes.tolist()])
            nodes = nodes[np.lexsort((nodes, -room[nodes], np.array(affine)))][:1]
        else:
            nodes = np.flatnonzero((self.topology.node_type == type) & (room > 0))
            nodes = nodes[np.argsort(-room[nodes], kind="stable")]
        mine = [np.flatnonzero(self.free & (self.topology.node == node)) for node in nodes.tolist()]
        return np.asarray(np.concatenate(mine)[:size])

    def fewest(self, type: int, size: int) -> int:
        """Return on how many machines such a gang would sit now; 0 = there is no room."""
        room = np.sort(self.room()[self.topology.node_type == type])[::-1].cumsum()
        return int(np.searchsorted(room, size)) + 1 if len(room) and room[-1] >= size else 0

    def room(self) -> Ints:
        """Return the free accelerators of each machine, (node,)."""
        return np.bincount(self.topology.node[self.free], minlength=self.topology.nodes)

    def _affinity(self, node: int, size: int) -> int:
        """Rank a machine: 0 = it holds gangs of this size and no others, 1 = it is empty, 2 = any other."""
        return 0 if self._sizes[node] == {size} else 2 if self._sizes[node] else 1
