"""Where the prices of a crowd are: cutting planes, each from one look at all its rows.

With worth q[k] = price[k] · N[k], Σ q = 1, and g[k] = D[k] / N[k] − 1 from the loads D at one q, every better q' has
g · q' ≥ g · q: costs are concave in prices and D is their gradient. The next look is at the analytic centre of what is
left, and its ellipsoid says how large that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats
from eunomia.model.equations import pseudo_inverse
from eunomia.model.products import dot
from eunomia.solvers.pricing.newton import balanced, widths
from eunomia.solvers.sums import inner_product
from eunomia.solvers.water_filling.large_instance import LargeInstance, NeedCosts

_CUTS = 400
_NEWTON = 40
_NEAR = 0.02  # parts of the error aimed at, by which a moment may be late
_CLOSE = 0.6  # relative: bounds of worth so close are near enough for Newton's method
_NEARER = 0.1  # parts of the bounds of worth, to which Newton's method has to get
_SOME = 4096  # rows from which derivatives are measured
_NUDGE = 0.02  # relative step of a finite difference
_TRUST = 2.0  # radius in what Newton's method takes for its error


@dataclass(frozen=True, slots=True)
class Place:
    """A moment that cannot be passed, and about which worth it was found."""

    moment: float
    worth: Floats  # (column,) sum 1; zeros where everything fits to `moment`
    radius: Floats  # (column,)


def localise(crowd: LargeInstance, low: float, high: float, goal: float) -> Place:
    """Return where the last moment in [low, high] is, its prices to about a relative error `goal`."""
    costly, width = np.isfinite(crowd.capacity), crowd.most - crowd.least
    place = balance(crowd, low, high, goal) if (width <= _CLOSE * crowd.least)[costly].all() else None
    near = place is not None and bool((place.radius <= _NEARER * width)[costly].all())
    return place if place is not None and near else cut(crowd, low, high, goal)


def balance(crowd: LargeInstance, low: float, high: float, goal: float) -> Place | None:
    """Return the same by Newton's method from the middle of the bounds of worth; None where it does not get there."""
    costly = np.isfinite(crowd.capacity)
    if costly.sum() < 2:
        return None
    worth, inverse = _start(crowd)[0], np.divide(1.0, crowd.capacity)
    costs = NeedCosts(crowd)
    moment = 0.5 * (low + high)
    if high - low > _CLOSE * low:
        moment = costs.passed(worth * inverse, low, high, goal)
    if not low < moment < high:
        return None
    every = max(len(crowd.load) // _SOME, 1)
    few = NeedCosts(crowd.gather(np.arange(0, len(crowd.load), every), float(every))) if every > 1 else costs
    width = np.minimum(_NUDGE * widths(worth), 0.5 * (crowd.most - crowd.least))[costly]
    later = min(_NUDGE * moment, 0.25 * (high - low))

    def excess(costs: NeedCosts, value: Floats, at: float) -> Floats:
        price = np.zeros_like(worth)
        price[costly] = value
        return (costs.demand(price * inverse, at) * inverse - 1)[costly]

    value = worth[costly]
    here = excess(few, value, moment)
    rise = (excess(few, value, moment + later) - here) / later
    slope = np.stack([(excess(few, there, moment) - here) for there in value + np.diag(width)], axis=1) / width
    slope = 0.5 * (slope + slope.T)
    found = balanced(lambda value, at: (excess(costs, value, at), rise), value, moment, (low, high), slope, goal)
    if found is None:
        return None
    worth[costly], moment, off = found
    if (worth < crowd.least).any() or (worth > crowd.most).any():
        return None
    return Place(moment, worth, np.where(costly, _TRUST * off * widths(worth), 0.0))


def cut(crowd: LargeInstance, low: float, high: float, goal: float) -> Place:
    """Return the same by cutting planes, from anywhere."""
    costs = NeedCosts(crowd)
    worth, side, bound = _start(crowd)
    inverse = np.divide(1.0, crowd.capacity)
    moving = inverse > 0
    moment, radius = high, worth if moving.sum() > 1 else np.zeros(len(worth))
    for _ in range(_CUTS):
        price = worth * inverse
        moment = costs.passed(price, low, moment, _NEAR * goal)
        excess = np.where(moving, costs.demand(price, moment) * inverse - 1.0, 0.0)
        above = dot(excess, worth) + dot(3 * np.abs(excess - dot(excess, worth)), radius)
        if (excess <= 0).all() or (moment >= high > low and above < 0):
            fits = moment >= high > low
            return Place(moment, np.zeros_like(worth) if fits else worth, radius)
        side, bound = np.concatenate((side, excess[None])), np.append(bound, dot(excess, worth))
        worth, radius = _centre(side, bound, worth, moving)
        if (radius <= goal * np.maximum(worth, 0.5 / crowd.columns)).all():
            break
    return Place(moment, worth, radius)


def errors(crowd: LargeInstance, worth: Floats, moment: float, noise: float, one: float) -> tuple[Floats, float]:
    """Return by how much worth (column,) and the moment, relative, are off if the crowd is a sample.

    Loads that a sample gives are off by about √(load of `one` row · load) each, and the answer by as much as undoes
    that: loads are looked at again at prices and moments that differ by twice the noise.
    """
    costs = NeedCosts(crowd)
    inverse = np.divide(1.0, crowd.capacity)
    some = np.flatnonzero(worth > 0)
    if len(some) == 0:
        return np.zeros(len(worth)), noise
    step = 2 * noise
    price = worth * inverse
    tilt = np.empty((len(some), len(some) + 1))
    for at, k in enumerate(some):
        factor = np.ones(len(worth))
        factor[k] = 1 + step
        change = costs.demand(price * factor, moment) - costs.demand(price / factor, moment)
        tilt[:, at] = (change * inverse)[some] / (2 * step)
    change = costs.demand(price, moment * (1 + step)) - costs.demand(price, moment / (1 + step))
    tilt[:, -1] = (change * inverse)[some] / (2 * step)
    chosen = np.maximum(costs.demand(price, moment) - costs.at(moment)[2], 0.0) * inverse
    answer = pseudo_inverse(tilt, rcond=1e-4) * np.sqrt(chosen * one * inverse)[some]
    off = np.minimum(np.sqrt((answer**2).sum(axis=1)), 1.0)
    error = np.zeros(len(worth))
    error[some] = worth[some] * off[:-1]
    return error, float(off[-1])


def _start(crowd: LargeInstance) -> tuple[Floats, Floats, Floats]:
    """Return a point inside the crowd's bounds of worth, and these as side · q ≥ bound."""
    costly = np.isfinite(crowd.capacity)
    least, most = np.where(costly, crowd.least, 0.0), np.where(costly, crowd.most, 0.0)
    room = most.sum() - least.sum()
    worth = least + (most - least) * ((1 - least.sum()) / room if room > 0 else 0.0)
    unit = np.eye(len(worth))[costly]
    return worth, np.concatenate((unit, -unit)), np.concatenate((least[costly] - 1e-12, -most[costly] - 1e-12))


def _centre(side: Floats, bound: Floats, worth: Floats, moving: Bools) -> tuple[Floats, Floats]:
    """Return the analytic centre of side · q > bound, Σ q = 1, from a point on its last side, and its radii."""
    some = np.flatnonzero(moving)
    side = np.ascontiguousarray(side[:, some])
    length = np.maximum(np.abs(side).max(axis=1), 1e-300)
    q, radius = _newton(side / length[:, None], bound / length, worth[some])
    result, radii = np.zeros_like(worth), np.zeros_like(worth)
    result[some], radii[some] = q / q.sum(), radius
    return result, radii


@kernel()
def _newton(side: Floats, bound: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Return the centre and the square roots of its inverse curvature's diagonal, by Newton's steps from `start`."""
    cuts, n = side.shape
    q, room, step, pull = np.empty(n), np.empty(cuts), np.empty(n), np.empty(n)
    left, inverse = np.empty((n, n)), np.empty((n, n))
    for k in range(n):
        q[k] = start[k]
    _room(side, bound, q, room)
    _curvature(side, room, cuts - 1, left, inverse)
    _times(inverse, side[cuts - 1], step)
    length = 0.7 / np.sqrt(max(inner_product(side[cuts - 1], step), 1e-300))
    for k in range(n):
        q[k] += length * step[k]
    for _ in range(_NEWTON):
        _room(side, bound, q, room)
        least = room[0]
        for cut in range(cuts):
            least = min(least, room[cut])
        if least <= 0.0:
            break
        _curvature(side, room, cuts, left, inverse)
        for k in range(n):
            pull[k] = 0.0
            for cut in range(cuts):
                pull[k] += side[cut, k] / room[cut]
        _times(inverse, pull, step)
        decrement = np.sqrt(max(inner_product(pull, step), 0.0))
        short = 1e300
        for cut in range(cuts):
            toward = inner_product(side[cut], step)
            short = min(short, 0.95 * room[cut] / max(-toward, 1e-300))
        length = min(1.0 if decrement < 0.5 else 1 / (1 + decrement), short)
        for k in range(n):
            q[k] += length * step[k]
        if decrement < 0.05:
            break
    radius = np.empty(n)
    for k in range(n):
        radius[k] = np.sqrt(max(inverse[k, k], 0.0))
    return q, radius


@kernel()
def _room(side: Floats, bound: Floats, q: Floats, room: Floats) -> None:
    for cut in range(len(bound)):
        room[cut] = inner_product(side[cut], q) - bound[cut]


@kernel()
def _times(matrix: Floats, vector: Floats, found: Floats) -> None:
    for k in range(len(vector)):
        found[k] = inner_product(matrix[k], vector)


@kernel()
def _curvature(side: Floats, room: Floats, cuts: int, left: Floats, inverse: Floats) -> None:
    """Write the inverse of the barrier's curvature on Σ dq = 0, of the first cuts."""
    n = side.shape[1]
    for k in range(n):
        for other in range(n):
            left[k, other] = 0.0
            inverse[k, other] = 0.0
        inverse[k, k] = 1.0
    for cut in range(cuts):
        for k in range(n):
            times = side[cut, k] / (room[cut] * room[cut])
            for other in range(n):
                left[k, other] += side[cut, other] * times
    for k in range(n):  # Gauss and Jordan; it is positive definite, so no row need change its place
        pivot = max(left[k, k], 1e-300)
        for j in range(n):
            left[k, j] /= pivot
            inverse[k, j] /= pivot
        for other in range(n):
            if other != k:
                times = left[other, k]
                for j in range(n):
                    left[other, j] -= times * left[k, j]
                    inverse[other, j] -= times * inverse[k, j]
    whole, of_all = np.zeros(n), 0.0
    for k in range(n):
        for j in range(n):
            whole[j] += inverse[k, j]
            of_all += inverse[k, j]
    for k in range(n):
        times = whole[k] / of_all
        for j in range(n):
            inverse[k, j] -= whole[j] * times
