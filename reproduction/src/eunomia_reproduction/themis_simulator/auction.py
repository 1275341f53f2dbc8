"""The winning bids: at most one of each job, largest sum of worths, within what is free in each unit.

    maximise Σ_r v_r x_r   subject to   Σ_{r of a job} x_r ≤ 1,   Σ_{r within u} n_r x_r ≤ free_u for each unit u

A unit above the slots has no limit of its own unless some bid is for it as a whole. Few free accelerators have few
states of what is left in each unit, and a dynamic program over these settles them; the general solver, with whole
numbers, settles the rest. Both are exact.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Ints
from eunomia.solvers.program import INF, Program
from eunomia_reproduction.themis_simulator.bids import LEVELS, Bidding
from eunomia_reproduction.themis_simulator.world import Cluster

MOST_WORK = 3_000_000  # states times rows of the dynamic program
TOO_LARGE = -2


@kernel()
def limits(cluster: Cluster, bidding: Bidding) -> tuple[Ints, Ints]:
    """Return the units with a limit, (class,), and which of those each row is within, (row, 4); -1 = none."""
    number = np.full(len(bidding.free), -1, dtype=np.int64)
    number[bidding.unit] = 0
    classes = np.flatnonzero(number == 0)
    number[classes] = np.arange(len(classes))
    within = np.full((len(bidding.unit), LEVELS), -1, dtype=np.int64)
    for row in range(len(bidding.unit)):
        for level in range(LEVELS):
            unit = cluster.above[bidding.unit[row], level]
            if unit >= 0:
                within[row, level] = number[unit]
    return classes, within


@kernel()
def by_states(bidding: Bidding, classes: Ints, within: Ints) -> Ints:
    """Return the winning rows; one row TOO_LARGE where that is too much work."""
    stride, states = np.empty(len(classes), dtype=np.int64), 1
    for k in range(len(classes)):
        stride[k] = states
        states *= bidding.free[classes[k]] + 1
        if states * len(bidding.job) > MOST_WORK:
            return np.full(1, TOO_LARGE, dtype=np.int64)
    size = bidding.free[classes] + 1
    begin = np.empty(len(bidding.job) + 1, dtype=np.int64)
    bidders = 0
    for row in range(len(bidding.job)):
        if row == 0 or bidding.job[row] != bidding.job[row - 1]:
            begin[bidders] = row
            bidders += 1
    begin[bidders] = len(bidding.job)
    value = np.zeros(states)
    chosen = np.empty((bidders, states), dtype=np.int64)
    for i in range(bidders):
        for left in range(states - 1, -1, -1):  # what takes less is visited later, and still without this bidder
            best, pick = value[left], -1
            for row in range(begin[i], begin[i + 1]):
                after = _after(bidding.size[row], within[row], stride, size, left)
                if after >= 0 and value[after] + bidding.worth[row] > best + 1e-12:
                    best, pick = value[after] + bidding.worth[row], row
            value[left], chosen[i, left] = best, pick
    rows, count, left = np.empty(bidders, dtype=np.int64), 0, states - 1
    for i in range(bidders - 1, -1, -1):
        row = chosen[i, left]
        if row >= 0:
            rows[count] = row
            count += 1
            left = _after(bidding.size[row], within[row], stride, size, left)
    return rows[:count]


@kernel()
def _after(wanted: int, within: Ints, stride: Ints, size: Ints, left: int) -> int:
    """Return the state after a row took what it wants, -1 where that is not left."""
    for level in range(LEVELS):
        k = within[level]
        if k >= 0 and left // stride[k] % size[k] < wanted:
            return -1
    for level in range(LEVELS):
        k = within[level]
        if k >= 0:
            left -= wanted * stride[k]
    return left


def by_program(bidding: Bidding, classes: Ints, within: Ints) -> Ints:
    """Return the winning rows. Jobs with equal bids are one: a whole number of them wins each bid, the first ones."""
    begin = np.flatnonzero(np.append(True, np.diff(bidding.job) != 0))
    members: dict[bytes, list[int]] = {}  # of a group: the first row of each job
    length: dict[bytes, int] = {}
    for low, high in pairwise([*begin.tolist(), len(bidding.job)]):
        bids = np.column_stack((bidding.size[low:high], bidding.unit[low:high], bidding.worth[low:high])).tobytes()
        members.setdefault(bids, []).append(low)
        length[bids] = high - low
    rows = np.concatenate([np.arange(members[bids][0], members[bids][0] + length[bids]) for bids in members])
    group = np.repeat(np.arange(len(members)), [length[bids] for bids in members])
    many = np.array([len(first) for first in members.values()], dtype=float)
    limited, level = np.nonzero(within[rows] >= 0)
    winners = np.rint(
        Program.of_entries(
            bidding.worth[rows],
            np.concatenate((within[rows][limited, level], len(classes) + group)),
            np.concatenate((limited, np.arange(len(rows)))),
            np.concatenate((bidding.size[rows][limited], np.ones(len(rows)))).astype(float),
            np.full(len(classes) + len(members), -INF),
            np.concatenate((bidding.free[classes], many)),
            upper=many[group],
            whole=np.ones(len(rows), dtype=bool),
        )
        .solve()
        .x
    ).astype(np.int64)
    found = list[int]()
    for k, first in enumerate(members.values()):
        offset = np.repeat(rows[group == k] - first[0], winners[group == k])
        found += (np.array(first[: len(offset)], dtype=np.int64) + offset).tolist()
    return np.array(found, dtype=np.int64)
