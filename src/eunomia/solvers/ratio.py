"""The largest ratio of two totals, such as work per money, over divisible capacity.

    maximise  Σ a_ik x_ik / (d + Σ b_ik x_ik)   over the x of `best_total`

By W. Dinkelbach, "On Nonlinear Fractional Programming", Management Science 13(7), 1967: the ratio q is the largest
exactly when max Σ (a − q b) x = q d. Each step takes the ratio of the last point for q; a handful of steps is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.solvers.linear import GAP, Total, best_total
from eunomia.solvers.program import NoOptimum

_STEPS = 60


@dataclass(frozen=True, slots=True)
class Ratio:
    """The largest ratio, a point that has it, and a ratio that none exceeds."""

    total: Total  # of a − objective · b at the point: its x and its prices, in units of a
    objective: float
    bound: float

    @property
    def x(self) -> Floats:
        """Return the shares (row, column)."""
        return self.total.x

    @property
    def gap(self) -> float:
        """Return (bound − objective) relative to the objective."""
        return max(self.bound - self.objective, 0.0) / max(abs(self.bound), 1e-300)


def best_ratio(
    top: Floats,
    bottom: Floats,
    size: Floats,
    capacity: Floats,
    *,
    base: float = 0.0,
    rate: Floats | None = None,
    floor: Floats | None = None,
) -> Ratio:
    """Solve the program above; top a ≥ 0, bottom b > 0 where a > 0 (row, column), base d ≥ 0.

    Raises Infeasible when the floors cannot all be met, NoOptimum when no ratio is proven to 1e-9 or all x are worth
    nothing per nothing.
    """
    held: dict[str, Any] = {"rate": rate, "floor": floor}
    total = best_total(top, size, capacity, **held)
    ratio = _ratio(total, top, bottom, base)
    for _ in range(_STEPS):
        scale = _sum(top, total) + ratio * (base + _sum(bottom, total))
        after = best_total(top - ratio * bottom, size, capacity, **held, scale=scale)
        excess = after.bound - ratio * base  # what the point of the largest ratio may still win
        if excess <= GAP / 10 * ratio * (base + _sum(bottom, total)) or _ratio(after, top, bottom, base) <= ratio:
            bound = ratio + max(excess, 0.0) / _least(bottom, size, capacity, base, **held) if excess > 0 else ratio
            return _sure(Ratio(_at(total, after), ratio, min(bound, _largest(top, bottom, capacity, base, floor))))
        total, ratio = after, _ratio(after, top, bottom, base)
    raise NoOptimum(f"no proven ratio after {_STEPS} steps; check top and bottom for entries many decades apart")


def _sum(part: Floats, total: Total) -> float:
    return float(part[total.row, total.column] @ total.share)


def _ratio(total: Total, top: Floats, bottom: Floats, base: float) -> float:
    above, below = _sum(top, total), base + _sum(bottom, total)
    if below <= 0:
        raise NoOptimum("every point is nothing per nothing; give a base above 0 or a floor")
    return above / below


def _least(
    bottom: Floats, size: Floats, capacity: Floats, base: float, rate: Floats | None, floor: Floats | None
) -> float:
    """Return a bound below every value of the denominator, at least a hair above 0."""
    return max(base - best_total(-bottom, size, capacity, rate=rate, floor=floor).bound, 1e-300)


def _largest(top: Floats, bottom: Floats, capacity: Floats, base: float, floor: Floats | None) -> float:
    """Return a bound that needs no solving: without floors no ratio exceeds that of the best single place."""
    if floor is not None and (floor < 0).any():
        return np.inf
    places = (top > 0) & (capacity > 0)
    return float((top[places] / bottom[places]).max(initial=0.0)) if base >= 0 else np.inf


def _at(total: Total, after: Total) -> Total:
    """Return the point of the one with the prices of the other, which are those of the largest ratio."""
    return Total(
        total.shape,
        total.row,
        total.column,
        total.share,
        after.objective,
        after.bound,
        after.scale,
        after.price,
        after.time_price,
        after.floor_price,
    )


def _sure(ratio: Ratio) -> Ratio:
    if not ratio.gap <= GAP:
        raise NoOptimum(f"the proof leaves a gap of {ratio.gap:.1e}; check top and bottom for entries decades apart")
    return ratio
