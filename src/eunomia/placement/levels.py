"""Slots, machines and racks: how far apart a gang is, and the closest free accelerators for one.

A unit is a group of accelerators that are alike: a slot, or a whole machine where the cluster has no slots.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Ints
from eunomia.model.sorting import sorted_places
from eunomia.model.topology import Topology

SLOT, MACHINE, RACK, BEYOND = range(4)  # the smallest that holds a whole gang; columns of View.slowdown


class Levels(NamedTuple):
    """The units of a cluster. Those of a node follow each other, and so do the devices of a unit."""

    unit: Ints  # (device,)
    seat: Ints  # (unit + 1,) its first device
    node: Ints  # (unit,)
    first: Ints  # (node + 1,) its first unit
    type: Ints  # (node,)
    rack: Ints  # (node,) in order of first appearance


_known: list[tuple[Topology, Levels]] = []  # the cluster of the last call: it seldom changes


def levels_of(topology: Topology) -> Levels:
    """Return the units of a cluster."""
    if not _known or _known[0][0] is not topology:
        unit = topology.slots()
        seat = np.flatnonzero(np.diff(unit, prepend=-1, append=topology.devices + 1))
        node = topology.node[seat[:-1]]
        first = np.searchsorted(node, np.arange(topology.nodes + 1))
        number = {name: row for row, name in enumerate(dict.fromkeys(topology.rack))}
        rack = np.array([number[name] for name in topology.rack], dtype=np.int64)
        _known[:] = [(topology, Levels(unit, seat, node, first, topology.node_type, rack))]
    return _known[0][1]


@lru_cache(maxsize=8)
def racks_by_name(rack: tuple[str, ...]) -> Ints:
    """Return the rack of each node, (node,), numbered in order of names; do not write."""
    return np.unique(np.array(rack), return_inverse=True)[1].astype(np.int64)


@kernel()
def _between(levels: Levels, one: int, other: int) -> int:
    """Return the smallest level that holds two units."""
    if one == other:
        return SLOT
    here, there = levels.node[one], levels.node[other]
    if here == there:
        return MACHINE
    return RACK if levels.rack[here] == levels.rack[there] else BEYOND


@kernel()
def level_on(levels: Levels, unit: Ints, n: int) -> int:
    """Return the level of a gang on the first n entries of `unit`."""
    level = SLOT
    for u in unit[:n]:
        level = max(level, _between(levels, unit[0], u))
    return level


@kernel()
def gang_levels(levels: Levels, holder: Ints, jobs: int) -> Ints:
    """Return the level of each gang, (job,); 0 while it waits. holder (device,)."""
    first, level = np.full(jobs, -1, dtype=np.int64), np.full(jobs, SLOT, dtype=np.int64)
    for device in range(len(holder)):
        m = holder[device]
        if m >= 0:
            if first[m] < 0:
                first[m] = levels.unit[device]
            level[m] = max(level[m], _between(levels, first[m], levels.unit[device]))
    return level


@kernel()
def free_by_node(levels: Levels, type: int, free: Ints) -> Ints:
    """Return how many accelerators of a type are free on each node, (node,), of those free in each unit, (unit,)."""
    count = np.zeros(len(levels.type), dtype=np.int64)
    for node in range(len(levels.type)):
        if levels.type[node] == type:
            count[node] = free[levels.first[node] : levels.first[node + 1]].sum()
    return count


@kernel()
def _fits_better(free: int, other: int, wanted: int) -> bool:
    """Return whether a unit fits better: the fewest free that suffice, else the most free."""
    if free >= wanted and other >= wanted:
        return free < other
    return free > other


@kernel()
def gather(levels: Levels, node: int, free: Ints, size: int, unit: Ints, count: Ints, n: int) -> int:
    """Add accelerators of one node, on the fewest units, to the first n entries of unit and count; return the new n."""
    begin, left = n, size
    while left > 0:
        best = -1
        for u in range(levels.first[node], levels.first[node + 1]):
            used = False
            for k in range(begin, n):
                used |= unit[k] == u
            if not used and free[u] > 0 and (best < 0 or _fits_better(free[u], free[best], left)):
                best = u
        unit[n], count[n] = best, min(left, free[best])
        left, n = left - count[n], n + 1
    return n


@kernel()
def gather_nodes(levels: Levels, node_free: Ints, free: Ints, size: int, unit: Ints, count: Ints) -> int:
    """Fill unit and count with the fewest nodes that hold a gang, in one rack where one can; return how many entries.

    free (unit,), node_free (node,) of one type. 0 = there is not enough.
    """
    if node_free.sum() < size:
        return 0
    in_rack = np.zeros(levels.rack.max() + 1, dtype=np.int64)
    for node in range(len(node_free)):
        in_rack[levels.rack[node]] += node_free[node]
    rack = -1
    for r in range(len(in_rack)):
        if in_rack[r] >= size and (rack < 0 or in_rack[r] < in_rack[rack]):
            rack = r
    left, n = size, 0
    for node in sorted_places(-node_free):
        if left > 0 and node_free[node] > 0 and (rack < 0 or levels.rack[node] == rack):
            some = min(left, node_free[node])
            n = gather(levels, node, free, some, unit, count, n)
            left -= some
    return n


@kernel()
def closest(levels: Levels, type: int, size: int, free: Ints, unit: Ints, count: Ints) -> int:
    """Fill unit and count with the closest place on one type, of equals the fullest; return how many entries."""
    best = -1
    for node in range(len(levels.type)):
        if levels.type[node] == type:
            for u in range(levels.first[node], levels.first[node + 1]):
                if free[u] >= size and (best < 0 or free[u] < free[best]):
                    best = u
    if best >= 0:
        unit[0], count[0] = best, size
        return 1
    node_free = free_by_node(levels, type, free)
    for node in range(len(node_free)):
        if node_free[node] >= size and (best < 0 or node_free[node] < node_free[best]):
            best = node
    if best >= 0:
        return gather(levels, best, free, size, unit, count, 0)
    return gather_nodes(levels, node_free, free, size, unit, count)
