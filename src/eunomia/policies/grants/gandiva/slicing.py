"""Who runs in this slice of time: whose slice lasts goes on, then come those who have run least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.grants.gandiva.units import Units
from eunomia.policies.pair_memory import partners

_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class Slicing:
    """The turns of one decision."""

    units: Units
    order: Ints  # (unit,) who is first
    type: Ints  # (unit,) on which it runs now, -1 = it waits
    sits: Bools  # (unit,) its jobs sit as it says: alone, or with each other
    again_at: float  # end of the first slice

    @property
    def somebody_waits(self) -> bool:
        return bool((self.type < 0).any())

    @classmethod
    def of(cls, view: View, units: Units, turn: Floats, slice_s: float) -> Slicing:
        """Count units off against the accelerators of each type; turn (job,) seconds that count as run."""
        m, n = units.first, units.second
        sits = (view.on_type[m] >= 0) & (beside(view)[m] == n)
        left = view.at - view.started[m] - slice_s + _ROUNDING_S
        lasts = sits & (left < 0)
        least = np.where(n >= 0, np.minimum(turn[m], turn[n]), turn[m])
        order = np.lexsort((m, sits, least, ~lasts))
        type = _counted(view, units, order, sits, lasts)
        ends = view.started[m][lasts & (type >= 0)] + slice_s
        return cls(units, order, type, sits, float(np.min(ends, initial=view.at + slice_s)))


def beside(view: View) -> Ints:
    """Return with whom each job shares its seats now, (job,), -1 = nobody."""
    mate = np.full(view.jobs, -1)
    m, n = partners(view)
    holds = np.bincount(view.holder[view.holder >= 0], minlength=view.jobs) > 0
    both = (view.on_type[m] >= 0) & (view.on_type[n] >= 0) & (holds[m] != holds[n])
    mate[m[both]], mate[n[both]] = n[both], m[both]
    return mate


def _counted(view: View, units: Units, order: Ints, sits: Bools, lasts: Bools) -> Ints:
    """Return on which type each unit runs, (unit,), -1 = it waits.

    A gang that would run but for slices that last has what comes free kept for it: nobody else starts there.
    """
    type = np.full(len(units.first), -1)
    left, below = view.capacity.copy(), view.capacity.copy()  # below: as if no slice lasted
    kept = np.zeros(len(left), dtype=bool)
    for unit in order.tolist():
        job = units.first[unit]
        size = view.scale_factor[job]
        wishes = np.lexsort((-view.throughput[job], -units.gain[unit], np.arange(len(left)) != view.on_type[job]))
        wishes = wishes[units.gain[unit, wishes] > 0]
        if lasts[unit]:
            wishes = wishes[:1]
        fits = wishes[(left[wishes] >= size) & (~kept[wishes] | sits[unit])]
        if len(fits):
            type[unit] = fits[0]
            left[fits[0]] -= size
            below[fits[0]] -= 0 if lasts[unit] else size
        else:
            kept[wishes[below[wishes] >= size]] = True
    return type
