"""What rows of a class can do with a column: have it alone, or share it with a row of a class of the same size.

Left out, without loss, are pairs that gain nothing. If one of the two goes at u and the other at v times its rate
alone and u + v ≤ 1, then parting the same time, u for the one and v for the other, gives both as much and takes
no more of the column and less of their time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints

ALONE = -1


@dataclass(frozen=True, slots=True)
class Activities:
    """One entry for each thing to do; its time is summed over the rows of its class, or over the pairs."""

    first: Ints  # (activity,) class
    second: Ints  # (activity,) class of the partner, ALONE = none; not before `first`
    column: Ints  # (activity,)
    first_rate: Floats  # (activity,) of a row of the first class meanwhile
    second_rate: Floats  # (activity,) of its partner, 0 if alone

    def __len__(self) -> int:
        return len(self.first)

    def take(self, chosen: Array) -> Activities:
        """Return those chosen, by place or by mask."""
        return Activities(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def above(self, of: Ints, threshold: Floats) -> Floats:
        """Return Σ (rate − λ)⁺ over the rows of a class `of` that each activity has, (activity, threshold)."""
        first = np.where(self.first[:, None] == of, self.first_rate[:, None] - threshold, 0.0)
        second = np.where(self.second[:, None] == of, self.second_rate[:, None] - threshold, 0.0)
        return np.maximum(first, 0.0) + np.maximum(second, 0.0)

    def most(self, size: Floats, count: Ints, capacity: Floats) -> Floats:
        """Return the longest time each could be given, (activity,): all time of its rows, or the whole column."""
        time: Floats = count[self.first].astype(float)
        within = self.first == self.second
        pair = (self.second != ALONE) & ~within
        time = np.where(pair, np.minimum(time, count[self.second]), np.where(within, time / 2, time))
        whole: Floats = capacity[self.column] / size[self.first]
        return np.minimum(time, whole)


def activities(
    rate: Floats, beside: Floats, size: Floats, count: Ints, capacity: Floats, *, worthwhile: bool = True
) -> Activities:
    """Return all that is worth doing: first alone, by class and column, then pairs, by classes and column.

    rate (class, column) alone; beside (class, class, column) of a row of the first class beside one of the second,
    and a pair fits a column where both go above 0; size, count (class,); capacity (column,). Not only what is
    `worthwhile`: all pairs that fit.
    """
    usable = capacity > 0
    first, column = np.nonzero((rate > 0) & usable)
    nothing = np.zeros(len(first))
    alone = Activities(first, np.full(len(first), ALONE), column, rate[first, column], nothing)
    pairs = _pairs(rate, beside, size, count, usable, 1.0 if worthwhile else 0.0)
    return Activities(
        *(np.concatenate((getattr(alone, field.name), getattr(pairs, field.name))) for field in fields(Activities))
    )


def _pairs(rate: Floats, beside: Floats, size: Floats, count: Ints, usable: Array, least: float) -> Activities:
    one, other = np.triu_indices(len(size))
    able = (size[one] == size[other]) & ((one != other) | (count[one] >= 2))
    one, other = one[able], other[able]
    forth, back = beside[one, other], beside[other, one]  # (pair, column)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = forth / rate[one] + back / rate[other]
    pair, column = np.nonzero((forth > 0) & (back > 0) & (gain > least) & usable)
    return Activities(one[pair], other[pair], column, forth[pair, column], back[pair, column])


def fastest(things: Activities, classes: int) -> Floats:
    """Return the highest rate at which a row of each class can go, (class,), 0 = it cannot."""
    best = np.zeros(classes)
    np.maximum.at(best, things.first, things.first_rate)
    pair = things.second != ALONE
    np.maximum.at(best, things.second[pair], things.second_rate[pair])
    return best


def reach(things: Activities, size: Floats, count: Ints, capacity: Floats) -> Floats:
    """Return what no class exceeds, summed over its rows, were all columns its own: (class,)."""
    pair = (things.second != ALONE) & (things.first != things.second)
    of = np.append(things.first, things.second[pair])
    rate, column = np.append(things.first_rate, things.second_rate[pair]), np.append(things.column, things.column[pair])
    members = np.append(np.where(things.first == things.second, 2.0, 1.0), np.ones(int(pair.sum())))
    by_row, by_use = np.zeros((2, len(size), len(capacity)))
    np.maximum.at(by_row, (of, column), rate)
    np.maximum.at(by_use, (of, column), members * rate)
    each = np.minimum(by_row * count[:, None], by_use * (capacity / size[:, None]))
    whole: Floats = np.minimum(each.sum(axis=1), by_row.max(axis=1) * count)
    return whole
