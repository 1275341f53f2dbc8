"""The largest ratio of two totals, such as work per money, over divisible capacity.

    maximise  Σ a_ik x_ik / (d + Σ b_ik x_ik)   over the x of `best_total`

By W. Dinkelbach, "On Nonlinear Fractional Programming", Management Science 13(7), 1967: the ratio q is the largest
exactly when max Σ (a − q b) x = q d. Each step takes the ratio of the last point for q; a handful of steps is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.products import dot
from eunomia.solvers.linear import GAP, LinearResult, best_total
from eunomia.solvers.program import NoOptimum

_STEPS = 60
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Ratio:
    """The largest ratio, a point that has it, and a ratio that none exceeds."""

    total: LinearResult  # of a − objective · b at the point: its x and its prices, in units of a
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

    def at(ratio: float, scale: float) -> Tried[LinearResult]:
        worth = top - ratio * bottom if ratio else top
        total = best_total(worth, size, capacity, **held, scale=scale)
        return Tried(total, _sum(top, total), base + _sum(bottom, total), total.bound - ratio * base)

    climbed = climb(at)
    least = base - best_total(-bottom, size, capacity, **held).bound if climbed.excess > 0 else 0.0
    bound = min(climbed.bound(least), _largest(top, bottom, capacity, base, floor))
    return _sure(Ratio(_at(climbed.best, climbed.last), climbed.ratio, bound))


@dataclass(frozen=True, slots=True)
class Tried(Generic[Found]):
    """A point with the most Σ (a − q b) x − q d."""

    answer: Found
    top: float  # Σ a x
    bottom: float  # d + Σ b x
    bound: float  # Σ (a − q b) x − q d that no point exceeds

    def ratio(self) -> float:
        """Return top / bottom. Raises NoOptimum where there is none."""
        if self.bottom <= 0:
            raise NoOptimum("every point is nothing per nothing; give a base above 0 or a floor")
        return self.top / self.bottom


@dataclass(frozen=True, slots=True)
class Climbed(Generic[Found]):
    """The largest ratio that was found, the answer that has it, and the one whose prices prove it."""

    ratio: float
    best: Found
    last: Found
    excess: float  # Σ (a − ratio · b) x − ratio · d that some point may still have, at least 0

    def bound(self, least: float) -> float:
        """Return a ratio that none exceeds, where `least` is a bound below every denominator."""
        return self.ratio + self.excess / max(least, 1e-300) if self.excess > 0 else self.ratio


def climb(at: Callable[[float, float], Tried[Found]]) -> Climbed[Found]:
    """Follow the ratio up; `at` solves for a ratio q, to a gap relative to the scale that it is given with it.

    Raises NoOptimum where that leads to no end.
    """
    best = at(0.0, 0.0)
    ratio = best.ratio()
    for _ in range(_STEPS):
        after = at(ratio, best.top + ratio * best.bottom)
        if after.bound <= GAP / 10 * ratio * best.bottom or after.ratio() <= ratio:
            return Climbed(ratio, best.answer, after.answer, max(after.bound, 0.0))
        best, ratio = after, after.ratio()
    raise NoOptimum(f"no proven ratio after {_STEPS} steps; check top and bottom for entries many decades apart")


def _sum(part: Floats, total: LinearResult) -> float:
    return float(dot(part[total.row, total.column], total.share))


def _largest(top: Floats, bottom: Floats, capacity: Floats, base: float, floor: Floats | None) -> float:
    """Return a bound that needs no solving: without floors no ratio exceeds that of the best single place."""
    if floor is not None and (floor < 0).any():
        return np.inf
    places = (top > 0) & (capacity > 0)
    return float((top[places] / bottom[places]).max(initial=0.0)) if base >= 0 else np.inf


def _at(total: LinearResult, after: LinearResult) -> LinearResult:
    """Return the point of the one with the prices of the other, which are those of the largest ratio."""
    return replace(after, shape=total.shape, row=total.row, column=total.column, share=total.share)


def _sure(ratio: Ratio) -> Ratio:
    if not ratio.gap <= GAP:
        raise NoOptimum(f"the proof leaves a gap of {ratio.gap:.1e}; check top and bottom for entries decades apart")
    return ratio
