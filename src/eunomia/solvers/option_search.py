"""The cheapest option of each row in whole numbers, by branch and bound over corners of the linear program.

Rows and options are those of `option_simplex`; the last option of a row takes from no pool: it waits. Where the corner
is whole, as nearly always, there is nothing to search. Otherwise options are left out that at the prices of the corner
cost more above the cheapest of their row than the best answer known costs above the corner: no better answer has one.
Then, of a row that is in part on two options or more: if one of them is to wait, the branches are that it waits and
that it does not; else, that it takes one of them and that it does not.

Rows are alike that have the same places at the same costs. Of these some best answer seats those whose waiting costs
most, as two of them may change places. So all that are alike and cost no more wait with a row, and all that cost no
less are seated with it: without that rule each of a hundred alike rows would be in halves once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rising
from eunomia.solvers.option_simplex import Choices, cheapest_mix, packed

NODES = 100  # corners; then the best answer so far is returned
STEPS_PER_ROW = 50  # more than any corner seen takes; a corner that takes more is passed over
_WHOLE = 1e-6  # of an option: what rounding may leave
_SEATED = 8.0  # times the largest cost: what to wait costs a row that has to be seated


class _Branch(NamedTuple):
    """A part of all answers."""

    stays: Bools  # (option,) may be taken
    seated: Bools  # (row,) may not wait
    bound: float  # no answer in it costs less


class _Corner(NamedTuple):
    """The least mix of options in a branch."""

    x: Floats  # (option,)
    price: Floats  # (pool,)
    cost: float  # inf: no answer is in the branch, or none was found in time
    answers: list[Ints]  # (row,) options each; one alone where x is whole


def best_options(choices: Choices) -> Ints:
    """Return the option of each row, (row,): those of least cost, or the best found in `NODES` corners."""
    rows, options = len(choices.first) - 1, len(choices.cost)
    everything = _Branch(np.ones(options, dtype=bool), np.zeros(rows, dtype=bool), -np.inf)
    corner = _corner(choices, everything)
    best = min(corner.answers, key=lambda answer: float(choices.cost[answer].sum()))
    if len(corner.answers) == 1:
        return best
    cost = choices.cost + np.bincount(_option_of_entries(choices), corner.price[choices.pool] * choices.units, options)
    above = cost - np.minimum.reduceat(cost, choices.first[:-1])[choices.row]
    may_be = above <= choices.cost[best].sum() - corner.cost + rows  # others are in no answer that costs less
    may_be[choices.first[1:] - 1] = may_be[best] = True
    part, number = _part(choices, everything._replace(stays=may_be))
    return number[_searched(part, np.searchsorted(number, best), _alike(choices))]


def _searched(choices: Choices, best: Ints, alike: Ints) -> Ints:
    """Return an answer that costs no more than `best`, (row,): the best one, if `NODES` corners are enough."""
    least, rows = choices.cost[best].sum(), len(best)
    branches = [_Branch(np.ones(len(choices.cost), dtype=bool), np.zeros(rows, dtype=bool), -np.inf)]
    for _ in range(NODES):
        while branches and branches[-1].bound >= least - rows:  # costs are rounded to whole numbers
            branches.pop()
        if not branches:
            break
        branch = branches.pop()
        corner = _corner(choices, branch)
        for answer in corner.answers:
            if choices.cost[answer].sum() < least:
                best, least = answer, choices.cost[answer].sum()
        if corner.cost < least - rows and len(corner.answers) > 1:
            branches += _branched(choices, branch._replace(bound=corner.cost), corner.x, alike)
    return best


def _corner(choices: Choices, branch: _Branch) -> _Corner:
    part, number = _part(choices, branch)
    x, free = np.zeros(len(choices.cost)), part.capacity.copy()
    if (np.diff(part.first) == 0).any():  # a row that has to take an option is alike to one that has to wait
        return _Corner(x, free, np.inf, [])
    order = _most_gain(part)
    taken = np.full(len(order), -1)
    packed(part, order, taken, free)
    if (taken < 0).any():  # rows that have one option do not fit beside each other
        return _Corner(x, free, np.inf, [])
    x[number], price, ended = cheapest_mix(part, taken, free, STEPS_PER_ROW * (len(order) + len(free)))
    if not ended:
        return _Corner(x, price, np.inf, [number[taken]])
    whole = np.flatnonzero(x[number] > 1 - _WHOLE)
    cost = float((part.cost * x[number]).sum())
    if len(whole) == len(order):
        return _Corner(x, price, cost, [number[whole]])
    return _Corner(x, price, cost, [number[taken], number[_rounded(part, whole, order)]])


def _part(choices: Choices, branch: _Branch) -> tuple[Choices, Ints]:
    """Return the choices of a branch, and the number of each of its options among all."""
    number = np.flatnonzero(branch.stays)
    row, inside = choices.row[number], branch.stays[_option_of_entries(choices)]
    cost = choices.cost.copy()
    cost[choices.first[1:][branch.seated] - 1] += _SEATED * np.abs(choices.cost).max()
    counts = np.bincount(row, minlength=len(choices.first) - 1), np.diff(choices.entry)[number]
    first, entry = (np.concatenate(([0], np.cumsum(count))) for count in counts)
    return Choices(
        first, row, cost[number], entry, choices.pool[inside], choices.units[inside], choices.capacity
    ), number


def _most_gain(choices: Choices) -> Ints:
    """Return rows with one option, then the others by what an accelerator gains in the cheapest, the most first."""
    last = choices.first[1:] - 1
    gain = choices.cost[last] - np.minimum.reduceat(choices.cost, choices.first[:-1])
    widest = np.zeros(len(last))
    np.maximum.at(widest, choices.row[_option_of_entries(choices)], choices.units)
    order = rising(-gain / np.maximum(widest, 1.0))
    one = (np.diff(choices.first) == 1)[order]
    return np.concatenate((order[one], order[~one]))


def _rounded(choices: Choices, whole: Ints, order: Ints) -> Ints:
    """Return the options that are whole, and of other rows, one after the other, the cheapest that fit beside them."""
    taken = np.full(len(order), -1)
    taken[choices.row[whole]] = whole
    inside = np.isin(_option_of_entries(choices), whole)
    free = choices.capacity - np.bincount(choices.pool[inside], choices.units[inside], len(choices.capacity))
    packed(choices, order[taken[order] < 0], taken, free)
    return taken


def _branched(choices: Choices, branch: _Branch, x: Floats, alike: Ints) -> list[_Branch]:
    """Return two branches, the one to be looked at first last."""
    parts = np.flatnonzero((x > _WHOLE) & (x < 1 - _WHOLE))
    last = choices.first[1:] - 1
    waits = np.isin(np.arange(len(x)), last)
    waiting = parts[waits[parts]]
    if len(waiting):
        g = choices.row[waiting[0]]
        wait, later = choices.cost[last], np.arange(len(last)) - g
        less = (alike == alike[g]) & ((wait < wait[g]) | ((wait == wait[g]) & (later >= 0)))
        more = (alike == alike[g]) & ((wait > wait[g]) | ((wait == wait[g]) & (later <= 0)))
        seated = branch._replace(seated=branch.seated | more)
        return [seated, branch._replace(stays=branch.stays & (waits | ~less[choices.row]))]
    most = parts[np.argmax(x[parts])]
    without = branch.stays.copy()
    without[most] = False
    alone = branch.stays & (choices.row != choices.row[most])
    alone[most] = True
    return [branch._replace(stays=without), branch._replace(stays=alone)]


def _alike(choices: Choices) -> Ints:
    """Return a number for each row, the same for rows with the same places at the same costs."""
    kinds: dict[tuple[bytes, ...], int] = {}
    number = np.empty(len(choices.first) - 1, dtype=np.int64)
    for g in range(len(number)):
        first, last = choices.first[g], choices.first[g + 1] - 1
        entries = slice(choices.entry[first], choices.entry[last])
        taken = np.diff(choices.entry[first : last + 1])
        columns = (choices.cost[first:last], taken, choices.pool[entries], choices.units[entries])
        number[g] = kinds.setdefault(tuple(column.tobytes() for column in columns), len(kinds))
    return number


def _option_of_entries(choices: Choices) -> Ints:
    """Return the option of each entry, (entry,)."""
    return np.repeat(np.arange(len(choices.cost)), np.diff(choices.entry))
