"""Where the prices of a crowd are: cutting planes, each from one look at all its rows.

With worth q[k] = price[k] · N[k], Σ q = 1, and g[k] = D[k] / N[k] − 1 from the loads D at one q, every better q' has
g · q' ≥ g · q: costs are concave in prices and D is their gradient. The next look is at the analytic centre of what is
left, and its ellipsoid says how large that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.solvers.crowd import Costs, Crowd

_CUTS = 400
_NEWTON = 40


@dataclass(frozen=True, slots=True)
class Place:
    """A moment that cannot be passed, and about which worth it was found."""

    moment: float
    worth: Floats  # (column,) sum 1; zeros where everything fits to `moment`
    radius: Floats  # (column,)


def localise(crowd: Crowd, low: float, high: float, goal: float) -> Place:
    """Return where the last moment in [low, high] is, its prices to about a relative error `goal`."""
    costs = Costs(crowd)
    worth, side, bound = _start(crowd)
    inverse = np.divide(1.0, crowd.capacity)
    moving = inverse > 0
    moment, radius = high, worth if moving.sum() > 1 else np.zeros(len(worth))
    for _ in range(_CUTS):
        price = worth * inverse
        moment = costs.passed(price, low, moment)
        excess = np.where(moving, costs.demand(price, moment) * inverse - 1.0, 0.0)
        above = excess @ worth + 3 * np.abs(excess - excess @ worth) @ radius
        if (excess <= 0).all() or (moment >= high > low and above < 0):
            fits = moment >= high > low
            return Place(moment, np.zeros_like(worth) if fits else worth, radius)
        side, bound = np.concatenate((side, excess[None])), np.append(bound, excess @ worth)
        worth, radius = _centre(side, bound, worth, moving)
        if (radius <= goal * np.maximum(worth, 0.5 / crowd.columns)).all():
            break
    return Place(moment, worth, radius)


def _start(crowd: Crowd) -> tuple[Floats, Floats, Floats]:
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
    side = side[:, some]
    length = np.maximum(np.abs(side).max(axis=1), 1e-300)
    side, bound, q = side / length[:, None], bound / length, worth[some].copy()
    before = _curvature(side[:-1], side[:-1] @ q - bound[:-1])
    inward = before @ side[-1]
    q += 0.7 / np.sqrt(max(side[-1] @ inward, 1e-300)) * inward
    inverse = before
    for _ in range(_NEWTON):
        room = side @ q - bound
        if (room <= 0).any():
            break
        inverse = _curvature(side, room)
        pull = (side / room[:, None]).sum(axis=0)
        step = inverse @ pull
        decrement = np.sqrt(max(pull @ step, 0.0))
        toward = side @ step
        short = (0.95 * room / np.maximum(-toward, 1e-300)).min()
        q += min(1.0 if decrement < 0.5 else 1 / (1 + decrement), short) * step
        if decrement < 0.05:
            break
    result, radius = np.zeros_like(worth), np.zeros_like(worth)
    result[some], radius[some] = q / q.sum(), np.sqrt(np.maximum(np.diag(inverse), 0.0))
    return result, radius


def _curvature(side: Floats, room: Floats) -> Floats:
    """Return the inverse of the barrier's curvature on Σ dq = 0."""
    scaled = side / room[:, None]
    inverse = np.linalg.inv(scaled.T @ scaled)
    whole = inverse.sum(axis=0)
    found: Floats = inverse - np.outer(whole, whole) / whole.sum()
    return found
