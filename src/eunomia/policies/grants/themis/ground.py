"""Where gangs could sit: the closest seats that are free, in a slot, on a machine, in a rack, or beyond.

A unit is a group of seats that nobody tells apart: a slot, or a whole machine where the cluster has no slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.sorting import sorted_places
from eunomia.model.topology import Topology

SLOT, MACHINE, RACK, BEYOND = range(4)  # the smallest that holds a whole gang; columns of the slowdown


class Ground(NamedTuple):
    """The units of a cluster. Those of a node follow each other, and so do the seats of a unit."""

    unit: Ints  # (device,)
    seat: Ints  # (unit + 1,) its first device
    node: Ints  # (unit,)
    first: Ints  # (node + 1,) its first unit
    type: Ints  # (node,)
    rack: Ints  # (node,)


class Gangs(NamedTuple):
    """What jobs need, and the seats of those whose lease has ended."""

    size: Ints  # (job,)
    time: Floats  # (job, type) seconds still needed on seats close together; inf = it cannot run there
    slowdown: Floats  # (job, level)
    type: Ints  # (job,) that it sits on
    own: Ints  # (job + 1,) where its entries of `device` begin
    device: Ints  # (entry,) seats of a lease that has ended, in order


_known: list[tuple[Topology, Ground]] = []  # the cluster that was asked about last: it seldom changes


def ground_of(topology: Topology) -> Ground:
    """Return the units of a cluster."""
    if not _known or _known[0][0] is not topology:
        _known[:] = [(topology, _laid_out(topology))]
    return _known[0][1]


def _laid_out(topology: Topology) -> Ground:
    unit = topology.slots()
    seat = np.flatnonzero(np.diff(unit, prepend=-1, append=topology.devices + 1))
    node = topology.node[seat[:-1]]
    first = np.searchsorted(node, np.arange(topology.nodes + 1))
    number = {name: row for row, name in enumerate(dict.fromkeys(topology.rack))}
    rack = np.array([number[name] for name in topology.rack], dtype=np.int64)
    return Ground(unit, seat, node, first, topology.node_type, rack)


@kernel()
def apart(ground: Ground, unit: Ints, n: int) -> int:
    """Return the level of a gang on these units, the first n of `unit`."""
    level = SLOT
    for u in unit[:n]:
        here, there = ground.node[unit[0]], ground.node[u]
        if ground.rack[here] != ground.rack[there]:
            return BEYOND
        if here != there:
            level = RACK
        elif u != unit[0]:
            level = max(level, MACHINE)
    return level


@kernel()
def rooms(ground: Ground, type: int, free: Ints) -> Ints:
    """Return how many seats of a type are free on each node, (node,)."""
    room = np.zeros(len(ground.type), dtype=np.int64)
    for node in range(len(ground.type)):
        if ground.type[node] == type:
            room[node] = free[ground.first[node] : ground.first[node + 1]].sum()
    return room


@kernel()
def _better(free: int, other: int, wanted: int) -> bool:
    """Say whether so many free seats are better than another unit's: as few as suffice, else as many as there are."""
    if free >= wanted and other >= wanted:
        return free < other
    return free > other


@kernel()
def gather(ground: Ground, node: int, free: Ints, size: int, unit: Ints, count: Ints, n: int) -> int:
    """Add seats of one node, on the fewest units, to the first n entries of unit and count; return how many now."""
    begin, left = n, size
    while left > 0:
        best = -1
        for u in range(ground.first[node], ground.first[node + 1]):
            used = False
            for k in range(begin, n):
                used |= unit[k] == u
            if not used and free[u] > 0 and (best < 0 or _better(free[u], free[best], left)):
                best = u
        unit[n], count[n] = best, min(left, free[best])
        left, n = left - count[n], n + 1
    return n


@kernel()
def scattered(ground: Ground, room: Ints, free: Ints, size: int, unit: Ints, count: Ints) -> int:
    """Fill unit and count with the fewest nodes that hold a gang, within one rack where one can; return how many."""
    if room.sum() < size:
        return 0
    in_rack = np.zeros(ground.rack.max() + 1, dtype=np.int64)
    for node in range(len(room)):
        in_rack[ground.rack[node]] += room[node]
    rack = -1
    for r in range(len(in_rack)):
        if in_rack[r] >= size and (rack < 0 or in_rack[r] < in_rack[rack]):
            rack = r
    left, n = size, 0
    for node in sorted_places(-room):
        if left > 0 and room[node] > 0 and (rack < 0 or ground.rack[node] == rack):
            some = min(left, room[node])
            n = gather(ground, node, free, some, unit, count, n)
            left -= some
    return n


@kernel()
def closest(ground: Ground, type: int, size: int, free: Ints, unit: Ints, count: Ints) -> int:
    """Fill unit and count with the closest place on one type that leaves the least room beside it; return how many."""
    best = -1
    for node in range(len(ground.type)):
        if ground.type[node] == type:
            for u in range(ground.first[node], ground.first[node + 1]):
                if free[u] >= size and (best < 0 or free[u] < free[best]):
                    best = u
    if best >= 0:
        unit[0], count[0] = best, size
        return 1
    room = rooms(ground, type, free)
    for node in range(len(room)):
        if room[node] >= size and (best < 0 or room[node] < room[best]):
            best = node
    if best >= 0:
        return gather(ground, best, free, size, unit, count, 0)
    return scattered(ground, room, free, size, unit, count)


@kernel()
def own_place(ground: Ground, gangs: Gangs, job: int, free: Ints, unit: Ints, count: Ints) -> int:
    """Fill unit and count with the seats of a gang's ended lease; return how many entries, 0 = they are not free."""
    n = 0
    for device in gangs.device[gangs.own[job] : gangs.own[job + 1]]:
        u = ground.unit[device]
        if n == 0 or unit[n - 1] != u:
            unit[n], count[n] = u, 0
            n += 1
        count[n - 1] += 1
        if count[n - 1] > free[u]:
            return 0
    return n


@kernel()
def nearest(
    ground: Ground, gangs: Gangs, job: int, free: Ints, own: bool, unit: Ints, count: Ints
) -> tuple[int, int, float, bool]:
    """Fill unit and count with the place where a gang is done soonest, its own before all if `own`.

    Return how many entries, 0 = there is none, the type, the seconds needed there, and whether the seats are its own.
    """
    if own:
        n = own_place(ground, gangs, job, free, unit, count)
        if n > 0:
            type = gangs.type[job]
            return n, type, gangs.time[job, type] * gangs.slowdown[job, apart(ground, unit, n)], True
    best, shortest, n = -1, np.inf, 0
    for j in sorted_places(gangs.time[job]):
        if gangs.time[job, j] < shortest:
            n = closest(ground, j, gangs.size[job], free, unit, count)
            time = gangs.time[job, j] * gangs.slowdown[job, apart(ground, unit, n)]
            if n > 0 and time < shortest:
                best, shortest = j, time
    if best >= 0:
        n = closest(ground, best, gangs.size[job], free, unit, count)
    return n if best >= 0 else 0, best, shortest, False
