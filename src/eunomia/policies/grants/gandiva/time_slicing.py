"""Which gangs and pairs run in this slice of time, and on which type.

A gang whose slice lasts keeps running; then come those that have run least. Two gangs of one size run as a pair, on the
same accelerators, where that pays.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rounded
from eunomia.model.tolerance import is_at_least
from eunomia.model.view import View
from eunomia.policies.pair_memory import NO_PAIR, numbered, partners

_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class GangsAndPairs:
    """What runs as one, called a unit; job m of a pair stands before job n."""

    first: Ints  # (unit,)
    second: Ints  # (unit,) -1 = alone
    gain: Floats  # (unit, type) sum of the parts of their speeds that its jobs keep; 0 = it cannot run there

    @classmethod
    def of(cls, view: View, pair: Floats) -> GangsAndPairs:
        """Return the units of these pair numbers (job,), NO_PAIR = alone."""
        order = np.argsort(pair, kind="stable")
        order = order[pair[order] != NO_PAIR]
        alone = np.flatnonzero((pair == NO_PAIR) & _can(view).any(axis=1))
        first, second = np.concatenate((alone, order[::2])), np.concatenate((np.full(len(alone), -1), order[1::2]))
        gain = _can(view)[first].astype(float)
        both = second >= 0
        gain[both] = together(view, first[both], second[both])
        return cls(first, second, np.where(is_at_least(gain, 1.0), gain, 0.0))


def together(view: View, m: Ints, n: Ints) -> Floats:
    """Return (pair, type) the sum of the parts of their speeds that two jobs keep, 0 where they do not fit."""
    mine, other = (
        view.packed_throughput[view.job_class[m], view.job_class[n]],
        view.packed_throughput[view.job_class[n], view.job_class[m]],
    )
    fits = (mine > 0) & (other > 0) & _can(view)[m] & _can(view)[n]
    alone = np.where(fits, view.throughput[m], 1.0), np.where(fits, view.throughput[n], 1.0)
    return np.where(fits, mine / alone[0] + other / alone[1], 0.0)


def kept(view: View) -> Floats:
    """Return the pairs of the last answer, (job,), without those that do not pay or have only one job left."""
    m, n = partners(view)
    pays = _pays(together(view, m, n))
    return numbered(view, m[pays], n[pays])


def packed(view: View, pair: Floats) -> Floats:
    """Return pairs after pairing the jobs that had none, those first that keep most of their speeds.

    Jobs of one size, class and throughput gain alike with any other, so that gains are compared kind by kind.
    """
    pair, number = pair.copy(), int(pair.max(initial=NO_PAIR)) + 1
    for size in np.unique(view.scale_factor).tolist():
        free = np.flatnonzero((pair == NO_PAIR) & (view.scale_factor == size) & _can(view).any(axis=1))
        if len(free) < 2:
            continue
        columns = np.column_stack((view.job_class[free], view.throughput[free]))
        _, first, kind = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
        one, other = np.triu_indices(len(first))
        gain = together(view, free[first[one]], free[first[other]])
        best = np.where(_pays(gain), rounded(gain.max(axis=1, initial=0.0)), 0.0)
        for level in np.unique(best[best > 0])[::-1].tolist():
            here = np.flatnonzero(best == level)
            mates = np.zeros((len(first), len(first)), dtype=bool)
            mates[one[here], other[here]] = mates[other[here], one[here]] = True
            for m, n in _paired_in_line(free, kind, mates, pair):
                pair[m] = pair[n] = number
                number += 1
    return pair


def _paired_in_line(job: Ints, kind: Ints, mates: Bools, pair: Floats) -> list[tuple[int, int]]:
    """Return the pairs of unpaired jobs, each with the first after it of a kind that is among its `mates`.

    job, kind (row,) ascend by job, mates (kind, kind), pair (job,). Who is before a job and still unpaired is no mate.
    """
    open_ = pair[job] == NO_PAIR
    line = [deque(job[open_ & (kind == k)].tolist()) for k in range(len(mates))]
    found: list[tuple[int, int]] = []
    gone: set[int] = set()
    for m, k in zip(job[open_].tolist(), kind[open_].tolist(), strict=True):
        if m in gone or not mates[k].any():
            continue
        line[k].popleft()  # all before it have gone
        waiting = [one for one in np.flatnonzero(mates[k]).tolist() if line[one]]
        if waiting:
            n = min(line[one][0] for one in waiting)
            next(line[one] for one in waiting if line[one][0] == n).popleft()
            gone.add(n)
            found.append((m, n))
    return found


def _pays(gain: Floats) -> Bools:
    """Say for which pairs both jobs together do at least as much as one alone, on some type."""
    return np.asarray(is_at_least(gain, 1.0).any(axis=1))


def _can(view: View) -> Bools:
    return np.asarray((view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity))


@dataclass(frozen=True, slots=True)
class Slicing:
    """The turns of one decision."""

    units: GangsAndPairs
    order: Ints  # (unit,) the next one first
    type: Ints  # (unit,) on which it runs now, -1 = it waits
    runs: Bools  # (unit,) its jobs run as it says: alone, or with each other
    again_at: float  # end of the first slice

    @property
    def is_contended(self) -> bool:
        """Whether a unit waits."""
        return bool((self.type < 0).any())

    @classmethod
    def of(cls, view: View, units: GangsAndPairs, turn: Floats, slice_s: float) -> Slicing:
        """Count units against the accelerators of each type; turn (job,) seconds that count as run."""
        m, n = units.first, units.second
        runs = (view.on_type[m] >= 0) & (_partner_now(view)[m] == n)
        left = view.at - view.started[m] - slice_s + _ROUNDING_S
        lasts = runs & (left < 0)
        least = np.where(n >= 0, np.minimum(turn[m], turn[n]), turn[m])
        order = np.lexsort((m, runs, least, ~lasts))
        type = counted(
            order, view.scale_factor[m], view.throughput[m], units.gain, view.on_type[m], runs, lasts, view.capacity
        )
        ends = view.started[m][lasts & (type >= 0)] + slice_s
        return cls(units, order, type, runs, float(np.min(ends, initial=view.at + slice_s)))


def _partner_now(view: View) -> Ints:
    """Return the job with which each job shares accelerators now, (job,), -1 = none."""
    mate = np.full(view.jobs, -1)
    m, n = partners(view)
    holds = np.bincount(view.holder[view.holder >= 0], minlength=view.jobs) > 0
    both = (view.on_type[m] >= 0) & (view.on_type[n] >= 0) & (holds[m] != holds[n])
    mate[m[both]], mate[n[both]] = n[both], m[both]
    return mate


@kernel()
def counted(
    order: Ints,
    size: Ints,
    throughput: Floats,
    gain: Floats,
    on_type: Ints,
    runs: Bools,
    lasts: Bools,
    capacity: Floats,
) -> Ints:
    """Return on which type each unit runs, (unit,), -1 = it waits; throughput, gain (unit, type), others (unit,).

    For a gang that would run but for slices that last, what comes free is kept: no other gang starts there.
    """
    units, types = gain.shape
    chosen = np.full(units, -1, dtype=np.int64)
    left, below = capacity.copy(), capacity.copy()  # below: as if no slice lasted
    kept, tried = np.zeros(types, dtype=np.bool_), np.zeros(types, dtype=np.bool_)
    for unit in order:
        tried[:] = False
        for _ in range(types):
            # the type that it likes best of those that are left: its own, then by gain, then by throughput
            best = -1
            for j in range(types):
                if tried[j] or not gain[unit, j] > 0:
                    continue
                if best >= 0:
                    if best == on_type[unit]:
                        continue
                    more = gain[unit, j] - gain[unit, best]
                    faster = throughput[unit, j] > throughput[unit, best]
                    if not (j == on_type[unit] or more > 0 or (more == 0 and faster)):
                        continue
                best = j
            if best < 0:
                break
            tried[best] = True
            if left[best] >= size[unit] and (runs[unit] or not kept[best]):
                chosen[unit] = best
                left[best] -= size[unit]
                below[best] -= 0 if lasts[unit] else size[unit]
                break
            if lasts[unit]:
                break
        if chosen[unit] < 0:
            for j in range(types):
                kept[j] |= tried[j] and below[j] >= size[unit]
    return chosen
