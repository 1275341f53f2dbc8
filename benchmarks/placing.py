"""Finding seats: the index of free accelerators against a look at every node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import NO_INTS, Ints
from eunomia.model.topology import Node, Topology
from eunomia.placement.free_capacity import FreeCapacity

NODES = (100, 1_000, 10_000)
PER_NODE = 8
SIZES, SHARES = (1, 2, 4, 8, 16), (0.7, 0.1, 0.1, 0.07, 0.03)
BUSY = 0.95
TURNS = 1_000  # a gang leaves and another comes
Swap = Callable[[], list[Ints]]


class Scan:
    """The same rule as `FreeCapacity.place`, read off the definition: best fit on one node, else the fullest holes."""

    def __init__(self, topology: Topology):
        self._topology = topology
        self._free = topology.size.copy()  # (node,)
        self._is_free = np.ones(topology.devices, dtype=bool)

    def place(self, type: int, size: int) -> Ints | None:
        """Take seats for a gang and return its devices, or None."""
        if size > self._free.sum():
            return None
        seats: list[Ints] = []
        while size:
            fitting = np.flatnonzero(self._free >= size)
            node = fitting[np.argmin(self._free[fitting])] if len(fitting) else np.argmax(self._free)
            first = self._topology.first[node]
            here = first + np.flatnonzero(self._is_free[first : first + self._topology.size[node]])[:size]
            self._is_free[here] = False
            self._free[node] -= len(here)
            size -= len(here)
            seats.append(here)
        return np.concatenate(seats)

    def give_back(self, devices: Ints) -> None:
        """Free these devices."""
        self._is_free[devices] = True
        np.add.at(self._free, self._topology.node[devices], 1)


def _swaps(floor: FreeCapacity | Scan, devices: int) -> Swap:
    """Fill a floor to 95 %; return what swaps gangs on it, a thousand a call, and returns who sits where."""
    rng = np.random.default_rng(1)
    gangs: list[Ints] = []
    busy = 0
    while busy < BUSY * devices:
        seats = floor.place(0, int(rng.choice(SIZES, p=SHARES)))
        assert seats is not None
        gangs.append(seats)
        busy += len(seats)

    def swap() -> list[Ints]:
        sizes = rng.choice(SIZES, TURNS, p=SHARES).tolist()
        picks = rng.integers(len(gangs), size=TURNS).tolist()
        for size, pick in zip(sizes, picks, strict=True):
            floor.give_back(gangs[pick])
            seats = floor.place(0, size)
            gangs[pick] = NO_INTS if seats is None else seats
        return gangs

    return swap


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each number of nodes."""
    for nodes in NODES:
        topology = Topology.of([Node(type="v100", accelerators=PER_NODE)] * nodes)
        floor = FreeCapacity(topology, np.ones(topology.devices, dtype=bool))
        ours, other = _swaps(floor, topology.devices), _swaps(Scan(topology), topology.devices)
        same = all(np.array_equal(a, b) for a, b in zip(ours(), other(), strict=True))  # the warm-up too
        demand_equal(same, "placing", nodes)
        yield compare("placing: 1,000 gangs leave and come", nodes, ours, other, "numpy scan over nodes")
