"""Gangs to places at least cost: Quincy's flow, in which one gang may be several units that go the same way.

    minimise    Σ_o c[o] x[o] + Σ_g w[g] (1 - Σ_{o of g} x[o])
    subject to  Σ_{o of g} x[o] ≤ 1  for each gang g,   Σ_o u[o,p] x[o] ≤ C[p]  for each pool p,   x[o] ∈ {0, 1}

Option o seats its gang for cost c[o] and takes u[o,p] units of pool p; a gang with no option costs w[g]. A pool is a
machine, or all machines of a rack or a cluster. Where one pool lies in another or beside it, and an option takes one
unit of all that hold its place, this is the least-cost flow from gangs through machines and their aggregates to the
sink, and the corners of the linear program are whole. With gangs of several units the corner that is found nearly
always is, and then it is the optimum too. If not, its prices are a bound B, and some point in whole numbers costs A: an
option that at these prices costs over A - B more than the cheapest of its gang is in no better point. The others are a
small program in whole numbers, and the search for its optimum ends after `NODES` nodes.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rising
from eunomia.solvers.option_simplex import Choices, cheapest_mix, packed
from eunomia.solvers.program import Program

NODES = 200
BITS = 42  # of the largest cost, in whole units
STEPS_PER_ROW = 50  # more than any problem seen takes; beyond it the general solver is asked
_WHOLE = 1e-6  # of an option: what rounding may leave


def cheapest(
    waits: Floats, gang: Ints, cost: Floats, option: Ints, pool: Ints, units: Floats, capacity: Floats
) -> tuple[Ints, float]:
    """Return the option of each gang, -1 = it waits, (gang,), and what that costs in all.

    waits (gang,), gang and cost (option,), capacity (pool,); entry (option, pool) of u is `units`.
    """
    chosen = np.full(len(waits), -1)
    if len(gang) == 0:
        return chosen, float(waits.sum())
    rows, row = np.unique(gang, return_inverse=True)  # gangs that have options
    place = np.argsort(np.concatenate((row, np.arange(len(rows)))), kind="stable")  # to wait is a gang's last option
    choices = _choices(np.concatenate((cost, waits[rows]))[place], place, row, option, pool, units, capacity)
    taken = place[_taken(choices)]
    chosen[rows] = np.where(taken < len(gang), taken, -1)
    seated = chosen[chosen >= 0]
    return chosen, float(waits.sum() - (waits[gang[seated]] - cost[seated]).sum())


def _choices(
    cost: Floats, place: Ints, row: Ints, option: Ints, pool: Ints, units: Floats, capacity: Floats
) -> Choices:
    """Return the problem by rows. place: the numbers of options, by row; those beyond `row` are to wait."""
    count = np.bincount(row) + 1
    first = np.concatenate(([0], np.cumsum(count)))
    number = np.empty(len(place), dtype=np.int64)
    number[place] = np.arange(len(place))
    entries = np.argsort(number[option], kind="stable")
    entry = np.concatenate(([0], np.cumsum(np.bincount(number[option], minlength=len(place)))))
    unit = BITS - np.frexp(np.abs(cost).max())[1]
    return Choices(
        first=first,
        row=np.repeat(np.arange(len(count)), count),
        cost=np.rint(np.ldexp(cost, unit)),
        entry=entry,
        pool=pool[entries],
        units=units[entries].astype(float),
        capacity=capacity.astype(float),
    )


def _taken(choices: Choices) -> Ints:
    """Return the option of each row, (row,)."""
    order = _most_gain(choices)
    taken, free = np.full(len(order), -1), choices.capacity.copy()
    packed(choices, order, taken, free)
    x, price, ended = cheapest_mix(choices, taken, free, STEPS_PER_ROW * (len(order) + len(free)))
    if not ended:
        return _by_program(choices, np.ones(len(x), dtype=bool))
    whole = np.flatnonzero(x > 1 - _WHOLE)
    if len(whole) == len(order):
        return whole
    taken = min(taken, _rounded(choices, whole, order), key=lambda some: choices.cost[some].sum())
    cost = choices.cost + np.bincount(_option_of_entries(choices), price[choices.pool] * choices.units, len(x))
    least = np.minimum.reduceat(cost, choices.first[:-1])
    above = choices.cost[taken].sum() - (least.sum() - (price * choices.capacity).sum())
    found = _by_program(choices, _possible(choices, cost <= least[choices.row] + above * (1 + _WHOLE) + 1))
    return found if choices.cost[found].sum() < choices.cost[taken].sum() else taken


def _most_gain(choices: Choices) -> Ints:
    """Return rows in order of what an accelerator gains in the cheapest option, the most first."""
    waits = choices.first[1:] - 1
    gain = choices.cost[waits] - np.minimum.reduceat(choices.cost, choices.first[:-1])
    return rising(-gain / np.maximum.reduceat(choices.units, choices.entry[choices.first[:-1]]))


def _rounded(choices: Choices, whole: Ints, order: Ints) -> Ints:
    """Return the options that are whole, and of other rows, one after the other, the cheapest that fit beside them."""
    taken = np.full(len(order), -1)
    taken[choices.row[whole]] = whole
    option = _option_of_entries(choices)
    inside = np.isin(option, whole)
    free = choices.capacity - np.bincount(choices.pool[inside], choices.units[inside], len(choices.capacity))
    packed(choices, order[taken[order] < 0], taken, free)
    return taken


def _possible(choices: Choices, stays: Bools) -> Bools:
    """Return which options fit beside those of rows that have one option left, (option,), until no more are lost."""
    option = _option_of_entries(choices)
    while True:
        settled = (np.bincount(choices.row[stays], minlength=len(choices.first) - 1) == 1)[choices.row] & stays
        takes, open_ = settled[option], (stays & ~settled)[option]
        free = choices.capacity - np.bincount(choices.pool[takes], choices.units[takes], len(choices.capacity))
        too_much = open_ & (choices.units > free[choices.pool])
        if not too_much.any():
            return stays
        stays = stays.copy()
        stays[option[too_much]] = False


def _option_of_entries(choices: Choices) -> Ints:
    return np.repeat(np.arange(len(choices.cost)), np.diff(choices.entry))


def _by_program(choices: Choices, stays: Bools) -> Ints:
    """Return the option of each row, of those that stay, by the general program in whole numbers; (row,)."""
    waits = choices.first[1:] - 1
    stays = stays & ~np.isin(np.arange(len(stays)), waits)
    options, column = np.flatnonzero(stays), np.cumsum(stays) - 1
    option, row = _option_of_entries(choices), choices.row[options]
    inside = stays[option]
    rows, pools = len(waits), len(choices.capacity)
    program = Program.of_entries(
        choices.cost[waits[row]] - choices.cost[options],
        np.concatenate((row, rows + choices.pool[inside])),
        np.concatenate((np.arange(len(options)), column[option[inside]])),
        np.concatenate((np.ones(len(options)), choices.units[inside])),
        np.full(rows + pools, -np.inf),
        np.concatenate((np.ones(rows), choices.capacity)),
        upper=1.0,
        whole=np.ones(len(options), dtype=bool),
    )
    x = program.solve(nodes=NODES).x
    assert np.abs(x - np.round(x)).max(initial=0.0) < _WHOLE
    taken = waits.copy()
    taken[row[x > 1 / 2]] = options[x > 1 / 2]
    return taken
