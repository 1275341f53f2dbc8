"""Workloads of the shapes of those beside the authors' simulator, drawn by seed.

Published with the code are lists of trials in groups. Here the work of each trial is drawn by the quantiles of its
group's list, between two quantiles evenly in the logarithm, as are the minutes of an iteration; half of the trials have
the same rank in both, which gives the rank correlation of about 0.5 of the lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import interpolate
from eunomia_reproduction.themis_simulator.world import Jobs, cluster_of

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
ALIKE = 0.5  # of the trials have one rank for work and for the minutes of an iteration


@dataclass(frozen=True, slots=True)
class Group:
    """One search: its trials' number, work in accelerator-minutes, minutes of an iteration, and S."""

    trials: int
    work: Sequence[float]  # by QUANTILES
    minutes: Sequence[float]  # by QUANTILES, on one accelerator
    factor: tuple[float, float, float]  # S across slots, machines and racks
    wide: float = 1.0  # part of the trials of width 4; the others have 2
    arrival: float = 0.0


# 2 racks x 2 machines x 2 slots x 4 accelerators, and two racks of the code's cluster of mixed machines.
REGULAR = cluster_of([[[4, 4]] * 2] * 2)
MIXED = cluster_of([[[2, 2]] * 6 + [[2]] * 3 + [[1]] * 2] * 2)

OFFLINE = (  # `final_workload`: 502 trials at once
    Group(
        100,
        (122, 153, 210, 302, 1342, 10841, 49664),
        (0.232, 0.232, 0.232, 0.232, 1.89, 4.22, 22.4),
        (0.8, 0.7, 0.6),
    ),
    Group(
        4, (1421, 1639, 1963, 2234, 2475, 2747, 2928), (0.236, 0.236, 0.236, 0.777, 1.86, 2.84, 3.49), (0.9, 0.8, 0.7)
    ),
    Group(
        100,
        (122, 127, 188, 347, 1541, 2511, 14459),
        (0.139, 0.139, 0.140, 0.140, 0.56, 1.12, 2.24),
        (0.95, 0.87, 0.78),
    ),
    Group(
        100,
        (121, 124, 178, 465, 1085, 9860, 71984),
        (0.476, 0.476, 0.477, 0.479, 3.40, 6.87, 13.99),
        (0.8, 0.7, 0.6),
    ),
    Group(
        100,
        (125, 139, 175, 984, 2232, 6776, 38608),
        (0.156, 0.156, 0.156, 1.26, 3.38, 8.82, 25.4),
        (0.9, 0.8, 0.7),
    ),
    Group(
        98,
        (121, 132, 281, 507, 1331, 4672, 25087),
        (0.370, 0.370, 0.370, 0.831, 2.81, 5.75, 11.8),
        (0.7, 0.6, 0.5),
    ),
)
# `offline_hyperdrive_trace_workload`: 488 trials at once. Its useful work is 2,084 accelerator-hours, and the published
# curve of accelerator-hours by f begins at about 2,090: of the lists beside the code only this one can be behind it.
SEARCH_TRIALS = (4, 5, 13, 24, 20, 29, 27, 65, 88, 90, 78, 2, 4, 25, 1, 1, 2, 2, 1, 2, 5)
SEARCH_BOUND = (1, 5, 7, 10, 13, 15, 19)  # those of the searches that the network slows
SEARCH_WORK, LONG = (131, 178, 238, 342, 451, 610, 617), (4, 9)
LONGEST = 963  # work of the longest trial of those two searches

# `online_workload_...`: 113 trials, a search every 20 minutes, wide ones among them; which are bound first.
ONLINE_TRIALS, ONLINE_EVERY, WIDE = (13, 24, 20, 29, 27), 20.0, 0.7
ONLINE_BOUND, ONLINE_LONG = (1, 3, 4, 0, 2), 2

# `nsdi_philly_hyperdrive`: 4,697 trials of one accelerator each in 84 searches, one every 100 minutes, in this order.
PHILLY_TRIALS = (
    70, 56, 56, 1, 20, 20, 43, 91, 81, 100, 99, 78, 20, 1, 100, 98, 95, 96, 98, 4, 20, 1, 2, 31, 10, 4, 97, 1, 20, 4, 4,
    92, 92, 50, 87, 4, 53, 79, 5, 100, 100, 26, 96, 100, 85, 87, 80, 7, 79, 82, 86, 87, 83, 81, 4, 83, 86, 2, 1, 88, 85,
    20, 20, 20, 4, 48, 10, 100, 99, 78, 81, 71, 4, 4, 95, 86, 20, 82, 89, 89, 82, 84, 17, 83,
)  # fmt: skip
PHILLY_WORK, PHILLY_EVERY, PHILLY_PART = (120, 4750, 8377, 13497, 20304, 27428, 95456), 100.0, 12

COMPUTE, NETWORK = (1.0, 0.98, 0.96), ((1.0, 0.72, 0.52), (1.0, 0.75, 0.56), (1.0, 0.7, 0.5))
COMPUTE_MINUTES, NETWORK_MINUTES = 0.0055, 0.02


def offline(seed: int) -> Jobs:
    """Return a draw of the longest of the published lists, 502 trials at once."""
    return drawn(OFFLINE, seed)


def searches(seed: int) -> Jobs:
    """Return a draw of 488 shorter trials of 21 searches at once."""
    groups = []
    for k, trials in enumerate(SEARCH_TRIALS):
        groups.append(_search(trials, k in LONG, k in SEARCH_BOUND, k, 1.0, 0.0))
    return drawn(groups, seed)


def online(seed: int, network: float = 0.6, contention: float = 1.0) -> Jobs:
    """Return a draw of searches that arrive one after the other.

    network: part of the searches that the network slows. contention: how many times as fast they arrive.
    """
    bound, groups = ONLINE_BOUND[: round(network * len(ONLINE_TRIALS))], []
    for k, trials in enumerate(ONLINE_TRIALS):
        groups.append(_search(trials, k == ONLINE_LONG, k in bound, k, WIDE, ONLINE_EVERY * (k + 1) / contention))
    return drawn(groups, seed)


def philly(seed: int) -> Jobs:
    """Return a draw of a twelfth of the searches of public Philly, every twelfth of them."""
    minutes = (COMPUTE_MINUTES,) * len(QUANTILES)
    sizes = PHILLY_TRIALS[::PHILLY_PART]
    searches = (Group(trials, PHILLY_WORK, minutes, COMPUTE, 0.0, PHILLY_EVERY * k) for k, trials in enumerate(sizes))
    return drawn(list(searches), seed, narrow=1)


def _search(trials: int, long: bool, bound: bool, k: int, wide: float, arrival: float) -> Group:
    work = (*SEARCH_WORK[:-1], LONGEST) if long else SEARCH_WORK
    minutes = (NETWORK_MINUTES if bound else COMPUTE_MINUTES,) * len(QUANTILES)
    return Group(trials, work, minutes, NETWORK[k % len(NETWORK)] if bound else COMPUTE, wide, arrival)


def drawn(groups: Sequence[Group], seed: int, narrow: int = 2) -> Jobs:
    """Return jobs drawn by these groups, in order of arrival; trials that are stopped early have fewer iterations.

    narrow: width of those that are not wide.
    """
    rng, parts = np.random.default_rng(seed), []
    for group in groups:
        rank = rng.random((2, group.trials))
        rank[1] = np.where(rng.random(group.trials) < ALIKE, rank[0], rank[1])
        minutes = _between(rank[1], group.minutes)
        own = np.maximum(np.floor(_between(rank[0], group.work) / minutes), 1).astype(np.int64)
        width = np.where(rng.random(group.trials) < group.wide, 4, narrow)
        factor = np.tile((1.0, *group.factor), (group.trials, 1))
        loss = _loss(rng.random((2, group.trials)), own)
        parts.append((np.full(group.trials, group.arrival), stopped_early(own), minutes, width, factor, loss))
    arrival, iterations, minutes, width, factor, loss = (np.concatenate(column) for column in zip(*parts, strict=True))
    _, kind = np.unique(np.column_stack((width, factor)), axis=0, return_inverse=True)
    return Jobs(arrival, iterations, minutes, width, factor, kind.reshape(-1), loss)


def stopped_early(own: Ints) -> Ints:
    """Return the iterations that each trial of a search does, given its own, (trial,).

    Ascending, the lower half of what is left stops after ⌊longest ÷ ⌊log2 trials⌋⌋ iterations, the next half after
    twice that, and so on; none does more than its own, and the last trial does all of these.
    """
    done = own.copy()
    if len(own) == 1:
        return done
    order = np.argsort(own, kind="stable")
    step = int(own[order[-1]]) // int(elementary.log2(float(len(own))))
    first = count = 0
    while first < len(own) - 1:
        half, count = (len(own) - first) // 2, count + 1
        some = order[first : first + half]
        done[some] = np.minimum(own[some], step * count)
        first += half
    return done


def _between(rank: Floats, values: Sequence[float]) -> Floats:
    return np.asarray(elementary.exp(interpolate(rank, QUANTILES, elementary.log(np.array(values, dtype=float)))))


def _loss(draw: Floats, own: Ints) -> Floats:
    """Return the coefficients of loss curves that begin at 1 and end near 0, (trial, 4)."""
    total = draw[0] * own * own + draw[1] * own
    return np.column_stack((draw[0], draw[1], 1.0 / (1.0 + 1.0 / total), -1.0 / total))
