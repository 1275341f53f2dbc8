"""Which floors to give up when not all can be met: as little weight of rows as possible.

    minimise Σ_i w_i z_i   subject to   Σ_k T_ik x_ik ≥ f_i (1 − z_i),   Σ_k x_ik ≤ 1,
                                        Σ_i s_i x_ik ≤ N_k,   x ≥ 0,   z_i ∈ {0, 1}

The constraints are written as Σ_k x_ik ≤ 1 − z_i: a row takes no time for a floor that it has given up, and what is
left when z may be divided is nearly whole already. Sets that miss a capacity by rounding alone fit: floors may be met
but for `SLACK` of each. Few rows are searched to the end. Of many, prices p say what each
floor costs; those worth their cost are kept in the order of weight per cost, as long as they fit, and no set weighs
less than Σ w − (p N + Σ max(0, w − cost)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.products import dot
from eunomia.model.tolerance import RELATIVE, is_at_least, is_at_most
from eunomia.solvers.alike_rows import later_members
from eunomia.solvers.constraint_blocks import Groups, blocks_of
from eunomia.solvers.linear import best_total
from eunomia.solvers.linear_totals.box_refinement import FEW
from eunomia.solvers.linear_totals.response import cheapest
from eunomia.solvers.program import INF, Infeasible, Program

_NODES = 20_000  # of the search over few rows
_TRIED = 30  # late rows of a search that are tried again one by one, and exchanges with later rows
SLACK = RELATIVE / 2  # of a floor: the other half is for those who carry the floors out
_SAMPLE = 1_000  # rows from which the prices of many are taken


@dataclass(frozen=True, slots=True)
class LateRows:
    """The rows whose floors are given up, ascending; their weight, and one that no smaller set can have."""

    rows: Ints
    weight: float
    bound: float

    @property
    def least(self) -> bool:
        """Return whether it is proven that no set weighs less."""
        return bool(is_at_most(self.weight, self.bound))


def late_rows(rate: Floats, size: Floats, capacity: Floats, floor: Floats, *, weight: Floats | None = None) -> LateRows:
    """Solve the program above; rate (row, column) ≥ 0, size, floor ≥ 0, weight > 0 (row,), capacity (column,).

    Of rows that are alike the later ones are given up.
    """
    weight = np.ones(len(size)) if weight is None else weight
    best = np.where(capacity > 0, rate, 0.0).max(axis=1, initial=0.0)
    able = is_at_least(best, floor)
    floor = np.where(is_at_least(floor, best), best, floor)  # all of its time: a search loses what is left of it
    lost, asked = np.flatnonzero(~able), np.flatnonzero(able & (floor > 0))
    part = rate[asked], size[asked], floor[asked], weight[asked]
    capacity = capacity * (1 + SLACK)
    groups = Groups.alike(*part) if len(asked) <= 20 * FEW else None
    if groups is not None and len(groups.count) <= FEW:
        late, bound = _searched(*part, capacity, groups)
    else:
        late, bound = _priced(*part, capacity)
    rows = np.sort(np.concatenate((lost, asked[late])))
    certain = float(weight[lost].sum())
    return LateRows(rows, float(weight[rows].sum()), min(certain + bound, float(weight[rows].sum())))


def _searched(
    rate: Floats, size: Floats, floor: Floats, weight: Floats, capacity: Floats, groups: Groups
) -> tuple[Ints, float]:
    """Return the late rows and a bound on their weight, by a search over how many of each group are late."""
    solved = _program(rate, size, floor, weight, capacity, groups, whole=True).solve(nodes=_NODES)
    given_up = np.round(solved.x[-len(groups.count) :])  # (group,)
    late = np.asarray(later_members(groups.of, groups.count.astype(np.int64)) < given_up[groups.of])

    def possible(late: Bools) -> bool:
        try:
            best_total(np.zeros_like(rate), size, capacity, rate=rate, floor=np.where(late, 0.0, floor))
        except Infeasible:
            return False
        return True

    whole = late & (floor == np.where(capacity > 0, rate, 0.0).max(axis=1, initial=0.0))
    late = needed(later(late, whole, weight, possible), weight, possible)
    return np.flatnonzero(late), max(solved.bound, 0.0)


def needed(late: Bools, weight: Floats, possible: Callable[[Bools], bool]) -> Bools:
    """Return those that must be late (row,), the heaviest tried first, where they are few; `possible` tries a set.

    A search forgives what is light beside the heaviest.
    """
    found, order = late.copy(), np.flatnonzero(late)
    for row in order[np.argsort(-weight[order], kind="stable")].tolist() if len(order) <= _TRIED else ():
        found[row] = False
        found[row] = not possible(found)
    return found


def later(late: Bools, whole: Bools, weight: Floats, possible: Callable[[Bools], bool]) -> Bools:
    """Return late rows (row,) of the same weights, where those that are `whole` are kept for later rows if they can.

    A row is whole whose floor takes all of its time. A search gives it up before others of its weight, but not one
    whose floor takes a little less.
    """
    found, tries = late.copy(), 0
    for row in np.flatnonzero(whole).tolist():
        alike = ~found & is_at_most(weight, weight[row]) & is_at_least(weight, weight[row])
        for other in np.flatnonzero(alike & (np.arange(len(late)) > row))[::-1].tolist():
            if (tries := tries + 1) > _TRIED:
                return found
            found[[row, other]] = False, True
            if possible(found):
                break
            found[[row, other]] = True, False
    return found


def _program(
    rate: Floats, size: Floats, floor: Floats, weight: Floats, capacity: Floats, groups: Groups, *, whole: bool
) -> Program:
    """Write the program over groups; its last variables are how many of each group are late."""
    first, count = groups.first, groups.count
    usable = (rate[first] > 0) & (capacity > 0)
    blocks = blocks_of(usable, size[first], count, capacity, rate[first], floor[first])
    n, held = len(blocks.group), len(count)
    each = floor[first][blocks.floored] / blocks.floor_unit
    floors = np.arange(len(blocks.low) - len(each), len(blocks.low))
    return Program.of_entries(
        np.append(np.zeros(n), weight[first]),
        np.concatenate((blocks.row, floors, np.arange(held))),
        np.concatenate((blocks.variable, n + blocks.floored, n + np.arange(held))),
        np.concatenate((blocks.value, each, np.ones(held))),
        blocks.low,
        blocks.high,
        upper=np.append(np.full(n, INF), count),
        whole=np.arange(n + held) >= n if whole else None,
        maximise=False,
    )


def _priced(rate: Floats, size: Floats, floor: Floats, weight: Floats, capacity: Floats) -> tuple[Ints, float]:
    """Return the late rows and a bound on their weight, from prices at which a sample of the rows just fits."""
    rows, kept = len(size), np.flatnonzero(capacity > 0)
    some = np.arange(0, rows, max(1, rows // _SAMPLE))
    part = rate[some], size[some], floor[some], weight[some]
    groups = Groups.alike(*part)
    solved = _program(*part, capacity * (len(some) / rows), groups, whole=False).solve()
    held = len(groups.count)
    price = np.maximum(-solved.row_price[held : held + len(capacity)], 0.0)[kept]
    used = cheapest(size, np.ascontiguousarray(rate.T[kept]), floor, price)  # (column, row)
    cost = dot(price, used)
    order = np.argsort(-weight / np.maximum(cost, 1e-300), kind="stable")
    late = np.flatnonzero(~_fitting(used, order, capacity[kept]))
    won = float(dot(price, capacity[kept]) + np.maximum(weight - cost, 0.0).sum())
    return late, max(float(weight.sum()) - won, 0.0)


@kernel()
def _fitting(used: Floats, order: Ints, capacity: Floats) -> Bools:
    """Return which rows (row,) are kept when each in order is kept that still fits."""
    left = capacity.copy()
    keep = np.zeros(len(order), np.bool_)
    for i in order:
        fits = True
        for k in range(len(left)):
            fits = fits and used[k, i] <= left[k]
        if fits:
            keep[i] = True
            for k in range(len(left)):
                left[k] -= used[k, i]
    return keep
