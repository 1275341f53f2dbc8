"""A simplex method for rows that each take one of their options, which share pools.

    minimise  Σ_o c[o] x[o]   subject to   Σ_{o of g} x[o] = 1  for each row g,   Σ_o u[o,p] x[o] ≤ C[p],   x ≥ 0

Each row has one basic option that is its *key*, and only as many other variables are basic as there are pools: unused
capacity, or further options of rows. So the matrix that is kept inverted has one row for each pool, whatever the number
of rows is (G. B. Dantzig and R. M. Van Slyke, "Generalized Upper Bounding Techniques", Journal of Computer and System
Sciences 1(3), 1967). On a network with single units it is the network simplex method: all entries of the inverse are
0, 1 and -1.

Costs are whole numbers of a small unit, so that equal sums are equal on every processor. Options are looked at in
their order, in blocks of rows from where the last step was; of options that gain as much, and of variables that may
leave, the first. After many steps without gain the first option that gains enters (R. G. Bland, 1977), so that the
method ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints

BLOCK = 64  # rows looked at, at least, for the option that gains most
IDLE_STEPS = 50  # without gain, after which the first that gains enters
ROUNDING = 0.25  # of a unit of cost: what no option gains
TINY = 1e-9  # entry of a step, or amount, that is rounding


class Choices(NamedTuple):
    """The program. Options of row g are first[g] … first[g + 1] - 1, those of none of the pools among them."""

    first: Ints  # (row + 1,)
    row: Ints  # (option,)
    cost: Floats  # (option,) whole numbers
    entry: Ints  # (option + 1,) where its entries begin
    pool: Ints  # (entry,)
    units: Floats  # (entry,)
    capacity: Floats  # (pool,)


class Tableau(NamedTuple):
    """The basis. Members are variables: an option, or the number of options + p for unused capacity of pool p."""

    key: Ints  # (row,) option
    share: Floats  # (row,) x of the key
    member: Ints  # (pool,)
    amount: Floats  # (pool,) of the members
    inverse: Floats  # (member, pool)
    price: Floats  # (pool,) what a unit of it costs
    step: Floats  # (member,) what each loses per unit of the entering variable
    rate: Floats  # (row,) what its key loses
    column: Floats  # (pool,) of the entering variable, less that of the key of its row


@kernel()
def packed(choices: Choices, order: Ints, taken: Ints, free: Floats) -> None:
    """Give each row of `order`, one after the other, its cheapest option that fits; writes `taken` and `free`."""
    for g in order:
        best = -1
        for o in range(choices.first[g], choices.first[g + 1]):
            fits = best < 0 or choices.cost[o] < choices.cost[best]
            for e in range(choices.entry[o], choices.entry[o + 1]):
                fits = fits and choices.units[e] <= free[choices.pool[e]]
            if fits:
                best = o
        taken[g] = best
        if best >= 0:
            for e in range(choices.entry[best], choices.entry[best + 1]):
                free[choices.pool[e]] -= choices.units[e]


@kernel()
def cheapest_mix(choices: Choices, taken: Ints, free: Floats, most: int) -> tuple[Floats, Floats, bool]:
    """Return x (option,), prices (pool,), and whether x is an optimum, found in at most so many steps.

    taken (row,) is an option of each row that fit together, free (pool,) what they leave.
    """
    rows, pools, options = len(taken), len(free), len(choices.cost)
    each = np.zeros((4, pools))
    found = Tableau(
        taken.copy(), np.ones(rows), options + np.arange(pools), free.copy(), np.eye(pools),
        each[0], each[1], np.zeros(rows), each[2],
    )  # fmt: skip
    begin, idle, ended = 0, 0, False
    for _ in range(most):
        _write_prices(choices, found)
        entering = _entering(choices, found, begin, idle > IDLE_STEPS)
        if entering < 0:
            ended = True
            break
        if entering < options:
            begin = choices.row[entering]
        gained = _enter(choices, found, entering, idle > IDLE_STEPS)
        if gained < 0:
            break
        idle = 0 if gained > 0 else idle + 1
    x = np.zeros(options)
    for g in range(rows):
        x[found.key[g]] = found.share[g]
    for i in range(pools):
        if found.member[i] < options:
            x[found.member[i]] = found.amount[i]
    return x, found.price, ended


@kernel(allocates=False)
def reduced(choices: Choices, price: Floats, option: int) -> float:
    """Return what an option costs with the prices of its pools."""
    cost: float = choices.cost[option]
    for e in range(choices.entry[option], choices.entry[option + 1]):
        cost += price[choices.pool[e]] * choices.units[e]
    return cost


@kernel(allocates=False)
def _write_prices(choices: Choices, found: Tableau) -> None:
    """Write the prices at which all basic variables cost nothing more than the keys of their rows."""
    options, price = len(choices.cost), found.price
    price[:] = 0.0
    for i in range(len(price)):
        if found.member[i] < options:
            o = found.member[i]
            more = choices.cost[found.key[choices.row[o]]] - choices.cost[o]
            for p in range(len(price)):
                price[p] += more * found.inverse[i, p]


@kernel(allocates=False)
def _entering(choices: Choices, found: Tableau, begin: int, is_first: bool) -> int:
    """Return the variable that gains most of those looked at, the first one if `is_first`; -1 = none gains."""
    rows, price = len(found.key), found.price
    best, least = -1, -ROUNDING
    for n in range(rows):
        g = n if is_first else (begin + n) % rows
        level = reduced(choices, price, found.key[g])
        for o in range(choices.first[g], choices.first[g + 1]):
            gain = reduced(choices, price, o) - level
            if gain < least:
                best, least = o, gain
                if is_first:
                    return best
        if best >= 0 and n % BLOCK == BLOCK - 1:
            break
    for p in range(len(price)):
        if price[p] < least:
            best, least = len(choices.cost) + p, price[p]
            if is_first:
                return best
    return best


@kernel(allocates=False)
def _write_column(choices: Choices, found: Tableau, entering: int) -> None:
    """Write the column of a variable, less that of the key of its row, and the step of all members."""
    options, column, step = len(choices.cost), found.column, found.step
    column[:] = 0.0
    step[:] = 0.0
    if entering >= options:
        column[entering - options] = 1.0
    else:
        key = found.key[choices.row[entering]]
        for e in range(choices.entry[entering], choices.entry[entering + 1]):
            column[choices.pool[e]] += choices.units[e]
        for e in range(choices.entry[key], choices.entry[key + 1]):
            column[choices.pool[e]] -= choices.units[e]
    for p in range(len(column)):
        if column[p] != 0.0:
            for i in range(len(step)):
                step[i] += found.inverse[i, p] * column[p]


@kernel(allocates=False)
def _enter(choices: Choices, found: Tableau, entering: int, is_first: bool) -> float:
    """Put a variable into the basis in place of the one that is used up first; return its amount, -1 = there is none.

    Of several that are used up at once that of the largest step leaves, the first variable if `is_first`.
    """
    options, members = len(choices.cost), len(found.member)
    member, amount, share, step, rate = found.member, found.amount, found.share, found.step, found.rate
    _write_column(choices, found, entering)
    own = choices.row[entering] if entering < options else -1
    if own >= 0:
        rate[own] = 1.0
    for i in range(members):
        if member[i] < options and step[i] != 0.0:
            rate[choices.row[member[i]]] -= step[i]
    out, is_key, theta, largest = -1, False, np.inf, 0.0
    for n in range(members + 1):  # each member, with the key of its row; the last one is the entering variable
        variable = member[n] if n < members else entering
        for of_key in range(2):
            if of_key and variable >= options:
                continue
            g = choices.row[variable] if variable < options else -1
            if not of_key and n == members:
                continue
            size = rate[g] if of_key else step[n]
            if size <= TINY:
                continue
            left = max(share[g] if of_key else amount[n], 0.0) / size
            number = found.key[g] if of_key else variable
            if left < theta - TINY:
                is_better = True
            elif left > theta + TINY:
                is_better = False
            elif is_first:
                is_better = number < (found.key[out] if is_key else member[out])
            else:
                is_better = size > largest + TINY
            if is_better:
                out, is_key, theta, largest = g if of_key else n, of_key == 1, min(left, theta), size
    if out >= 0:
        for i in range(members):
            if member[i] < options:
                g = choices.row[member[i]]
                share[g] -= theta * rate[g]
                rate[g] = 0.0
            amount[i] -= theta * step[i]
        if own >= 0:
            share[own] -= theta * rate[own]
    for i in range(members):
        if member[i] < options:
            rate[choices.row[member[i]]] = 0.0
    if own >= 0:
        rate[own] = 0.0
    if out < 0:
        return -1.0
    if is_key:
        place = _new_key(choices, found, out)
        if place < 0:  # the row has no other basic option but the entering one
            found.key[out], share[out] = entering, theta
            return theta
        _write_column(choices, found, entering)
        out = place
    _replace(found, out, entering, theta)
    return theta


@kernel(allocates=False)
def _new_key(choices: Choices, found: Tableau, g: int) -> int:
    """Exchange the key of a row and one of its other basic options; return where that was, -1 if there is none."""
    options, member, inverse = len(choices.cost), found.member, found.inverse
    place = -1
    for i in range(len(member)):
        if member[i] < options and choices.row[member[i]] == g and (place < 0 or found.amount[i] > found.amount[place]):
            place = i
    if place < 0:
        return -1
    for i in range(len(member)):
        if i != place and member[i] < options and choices.row[member[i]] == g:
            for p in range(len(member)):
                inverse[place, p] += inverse[i, p]
    for p in range(len(member)):
        inverse[place, p] = -inverse[place, p]
    old = found.key[g]
    found.key[g], found.share[g] = member[place], found.amount[place]
    member[place], found.amount[place] = old, 0.0
    return place


@kernel(allocates=False)
def _replace(found: Tableau, place: int, entering: int, theta: float) -> None:
    """Put the entering variable in the place of a member, and bring the inverse up to date."""
    inverse, step = found.inverse, found.step
    pools = len(step)
    for p in range(pools):
        inverse[place, p] /= step[place]
    for i in range(pools):
        if i != place and step[i] != 0.0:
            for p in range(pools):
                inverse[i, p] -= step[i] * inverse[place, p]
    found.member[place], found.amount[place] = entering, theta
