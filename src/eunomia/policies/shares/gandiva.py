"""Gandiva's packing as Gavel models it: equal time for all jobs, in pairs where the cluster is too small.

    X[c, j] = C[j] / (M z_c)  for each of M combinations c (a job, or two on the same accelerators), rows summing to at
                              most 1;  M = jobs when all fit, else jobs are paired at random with one of their size
    X[c, j] = 1               on one type where all combinations fit: time is sliced only when there are more
    a pair is split when  mean_j ( T[m|n, j] / T[m, j] + T[n|m, j] / T[n, j] ) < 1  over the types that can run both

X share of time (combination, type), C capacity (type,), z scale factor (job,), T throughput (job, type), T[m|n, j] of m
beside n, (kind, kind, type) in the view. Pairs are drawn at random and checked at the next ask: a pair that loses is
split, and its jobs are drawn anew. With `gain=sum`, as in Gavel's artifact, the sum over types counts instead of the
mean, and 0 where the pair cannot run on one of them: with several types it keeps pairs that lose. Gandiva suspends jobs
only for others that wait; where all combinations fit, each has one type, the first with room in an order that is the
same for all jobs, the type on which the average job so far is the fastest first. It moves only to an earlier one that
came free. (The artifact returns an equal split there too, but its rounds visit the types in such an order, and the
first has room.)

Example (examples/two_jobs.json). There is one v100, too little for two jobs, so they become a pair. M = 1, and the pair
has all of the time. Beside each other text keeps 1.6 / 2 and image 3 / 4 of its speed, together 1.55; at least 1, so
the pair is kept.

References: W. Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018, section 4.2; D.
Narayanan et al., OSDI 2020, section 5 (baselines) and its artifact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.pair_memory import NO_PAIR, REMEMBERED, memory_of, numbered, partners
from eunomia.policies.shares.options import PAIRS
from eunomia.policies.shares.share_inputs import NEEDS, divide, relative_speed, speeds

NO_TYPE, NEW = -1.0, -2.0  # instead of the type of a job's last answer


@dataclass(frozen=True, slots=True)
class Gandiva:
    """Equal time, with jobs packed in pairs by trial and error.

    Use it when you want to compare with Gandiva's packing. `max_min_fairness?space_sharing=true` chooses good pairs,
    where pair throughputs are known.

    The worst-off is a job whose partner slows it down: the pair is kept until the next ask, and the next draw may be no
    better. Which types are fast for which job is ignored.

    `gain`: a pair is kept while the fractions of their throughputs that its jobs keep are at least 1 together, in the
    `mean` over types that can run both, or in the `sum` over all types, which must all.
    """

    gain: Annotated[Literal["mean", "sum"], "'mean' (over types) or 'sum' (Gavel's artifact)"] = "mean"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="gandiva",
        answer_type="shares",
        objective="equal time, two jobs to an accelerator where that pays",
        technique="random pairs, kept while they pay",
        paper="Xiao et al., Gandiva, OSDI 2018",
        taxonomy=Taxonomy(objectives=("utilisation", "jct"), sharing=("temporal", "spatial"), preemptive=True),
        needs=NEEDS | PAIRS,
        memory_columns=REMEMBERED | {"type": NEW},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def decide(self, view: View) -> Shares:
        """Return an equal share for each combination; memory holds a number for each pair."""
        T, z = speeds(view, "aware"), view.scale_factor
        pair = np.full(view.jobs, NO_PAIR)
        if z.sum() > view.capacity.sum():
            pair = _draw_pairs(view, self._keep_pairs(view, T))
        first, second = _combinations(pair)
        can = T[first] > 0
        both = second >= 0
        can[both] &= _together(view, T, first[both], second[both]) > 0
        fast = _average_speed(view, T)
        whole = _whole(view.memory["type"][first], np.where(can, fast, 0.0), z[first], view.capacity)
        held = np.full(view.jobs, NO_TYPE)
        if whole is None:
            x = np.where(can, view.capacity / (max(len(first), 1) * z[first][:, None]), 0.0)
            x /= np.maximum(x.sum(axis=1, keepdims=True), 1.0)
        else:
            x = (np.arange(len(view.types)) == whole[:, None]).astype(float)
            held[first], held[second[both]] = whole, whole[both]
        row, type = np.nonzero(x)
        memory = memory_of(view, pair) | {"type": held, "speed": fast}
        return Shares(x[row, type], Rows(first[row], type, partner=second[row]), memory=memory)

    def _keep_pairs(self, view: View, T: Floats) -> Floats:
        """Return the pair numbers, (job,), of the last pairs whose jobs are both active and gain."""
        m, n = partners(view)
        kept = _together(view, T, m, n)
        if self.gain == "mean":
            pays = divide(kept.sum(axis=1), (kept > 0).sum(axis=1).astype(float)) >= 1.0
        else:
            pays = (kept.sum(axis=1) >= 1.0) & (kept > 0).all(axis=1)
        return numbered(view, m[pays], n[pays])


def _average_speed(view: View, T: Floats) -> Floats:
    """Return the speed of each type relative to the best one, summed over all jobs seen so far, (type,)."""
    new = view.memory["type"] == NEW
    earlier = view.memory.get("speed", np.zeros(len(view.types)))
    return np.asarray(earlier + relative_speed(T)[new].sum(axis=0))


def _whole(held: Floats, speed: Floats, z: Ints, capacity: Floats) -> Ints | None:
    """Return the type on which each combination has all of its time, NO_TYPE where it can run on none.

    Each keeps the type that it has, or moves to a free one of higher `speed` (combination, type). None where some
    combination finds no room. `held` (combination,) are the types of the last answer.
    """
    if z.sum() > capacity.sum():
        return None
    chosen = held.astype(np.int64)
    free = capacity.astype(float)
    kept = chosen >= 0
    kept[kept] = speed[kept, chosen[kept]] > 0
    chosen[~kept] = NO_TYPE
    np.subtract.at(free, chosen[kept], z[kept])
    if (free < 0).any():  # machines of that type left
        chosen[:], free = NO_TYPE, capacity.astype(float)
    for c in np.flatnonzero((speed > 0).any(axis=1)).tolist():
        room = (speed[c] > 0) & (free >= z[c])
        best = int(np.argmax(np.where(room, speed[c], 0.0)))
        mine = chosen[c]
        if mine < 0 and not room.any():
            return None
        if mine < 0 or (room.any() and speed[c, best] > speed[c, mine]):
            if mine >= 0:
                free[mine] += z[c]
            free[best] -= z[c]
            chosen[c] = best
    return chosen


def _together(view: View, T: Floats, m: Ints, n: Ints) -> Floats:
    """Return (pair, type) the sum of the fractions of their throughputs that two jobs keep, 0 where they cannot run."""
    kind, paired = view.job_class, view.packed_throughput
    own, other = paired[kind[m], kind[n]], paired[kind[n], kind[m]]
    both = (own > 0) & (other > 0) & (T[m] > 0) & (T[n] > 0)
    return np.where(both, divide(own, T[m]) + divide(other, T[n]), 0.0)


def _draw_pairs(view: View, pair: Floats) -> Floats:
    """Return pair numbers with random pairs of unpaired jobs of equal size."""
    fresh, rng = pair.max(initial=NO_PAIR) + 1, view.rng()
    free = rng.permutation(np.flatnonzero(pair < 0))
    for size in np.unique(view.scale_factor[free]).tolist():
        alike = free[view.scale_factor[free] == size]
        matched = alike[: len(alike) // 2 * 2]
        pair[matched] = fresh + np.arange(len(matched)) // 2
        fresh += len(matched) // 2
    return pair


def _combinations(pair: Floats) -> tuple[Ints, Ints]:
    """Return the two jobs of each combination, by the row of the first; -1 = no second job."""
    order = np.argsort(pair, kind="stable")
    paired = order[pair[order] >= 0].reshape(-1, 2)
    unpaired = np.flatnonzero(pair < 0)
    first = np.concatenate((unpaired, paired[:, 0]))
    second = np.concatenate((np.full(len(unpaired), -1), paired[:, 1]))
    by_row = np.argsort(first, kind="stable")
    return first[by_row], second[by_row]
