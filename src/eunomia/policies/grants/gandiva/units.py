"""What runs as one: a gang, or two gangs of one size on the same accelerators where that pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rising
from eunomia.model.view import View
from eunomia.policies.pair_memory import NO_PAIR, numbered, partners

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Units:
    """Gangs and pairs; job m of a pair stands before job n."""

    first: Ints  # (unit,)
    second: Ints  # (unit,) -1 = alone
    gain: Floats  # (unit, type) parts of their speeds that its jobs keep, together; 0 = it cannot run there

    @classmethod
    def of(cls, view: View, pair: Floats) -> Units:
        """Make units of pair numbers (job,), NO_PAIR = alone."""
        order = np.argsort(pair, kind="stable")
        order = order[pair[order] != NO_PAIR]
        alone = np.flatnonzero((pair == NO_PAIR) & _can(view).any(axis=1))
        first, second = np.concatenate((alone, order[::2])), np.concatenate((np.full(len(alone), -1), order[1::2]))
        gain = _can(view)[first].astype(float)
        both = second >= 0
        gain[both] = together(view, first[both], second[both])
        return cls(first, second, np.where(gain >= 1.0 - _ROUNDING, gain, 0.0))


def together(view: View, m: Ints, n: Ints) -> Floats:
    """Return (pair, type) the parts of their speeds that two jobs keep together, 0 where they do not fit."""
    mine, other = view.paired[view.kind[m], view.kind[n]], view.paired[view.kind[n], view.kind[m]]
    fits = (mine > 0) & (other > 0) & _can(view)[m] & _can(view)[n]
    alone = np.where(fits, view.throughput[m], 1.0), np.where(fits, view.throughput[n], 1.0)
    return np.where(fits, mine / alone[0] + other / alone[1], 0.0)


def kept(view: View) -> Floats:
    """Return the pairs of the last answer, (job,), without those that do not pay or have only one job left."""
    m, n = partners(view)
    pays = _pays(together(view, m, n))
    return numbered(view, m[pays], n[pays])


def packed(view: View, pair: Floats) -> Floats:
    """Return pairs with the jobs that had none put together, those first that keep most of their speeds."""
    pair, number = pair.copy(), pair.max(initial=NO_PAIR) + 1
    for size in np.unique(view.scale_factor).tolist():
        free = np.flatnonzero((pair == NO_PAIR) & (view.scale_factor == size) & _can(view).any(axis=1))
        m, n = np.triu_indices(len(free), 1)
        m, n = free[m], free[n]
        gain = together(view, m, n)
        best = np.where(_pays(gain), gain.max(axis=1, initial=0.0), 0.0)
        for one in rising(-best)[: np.count_nonzero(best)].tolist():
            if pair[m[one]] == NO_PAIR and pair[n[one]] == NO_PAIR:
                pair[m[one]] = pair[n[one]] = number
                number += 1
    return pair


def _pays(gain: Floats) -> Bools:
    """Say of which pairs both jobs together do at least as much as one alone, on some type."""
    return np.asarray((gain >= 1.0 - _ROUNDING).any(axis=1))


def _can(view: View) -> Bools:
    return np.asarray((view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity))
