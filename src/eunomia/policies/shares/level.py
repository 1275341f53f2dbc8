"""The level program of the Gavel family as an answer, and which of its optima is returned.

    maximise t   subject to   Σ_j T[m,j] X[m,j] ≥ r_m(t),  r_m(t) = need · t / (base - age · t)

Where many X reach the same t: `any` is the corner that the prices lead to, with what is left over spent on
Σ_m Σ_j T[m,j] X[m,j] / max_j T[m,j]; `closest` moves the fewest jobs from where they sit now, and spends nothing more;
`central` lies inside all optima and treats alike jobs alike. The last two solve a second program over distinct jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.view import View
from eunomia.policies.shares.believed import answered, of_fastest
from eunomia.solvers.face import central, closest, of_level
from eunomia.solvers.level import highest_level

Point = Literal["any", "closest", "central"]


def check_point(point: str, space_sharing: bool) -> None:
    """Raise ValueError for a spelling that is not one of `Point`, and for a choice that pairs do not offer."""
    if point not in ("any", "closest", "central"):
        raise ValueError(f"point is {point!r}; it is 'any', 'closest' (fewest moves) or 'central'")
    if point != "any" and space_sharing:
        raise ValueError(f"point={point} and space_sharing=true: pairs have one point only; leave one of the two out")


def needs_of(point: Point) -> frozenset[str]:
    """Return the columns that a choice of point reads besides."""
    return frozenset({"on_type"}) if point == "closest" else frozenset()


def level_shares(
    view: View,
    T: Floats,
    need: Floats,
    *,
    base: Floats | None = None,
    age: Floats | None = None,
    point: Point = "any",
    read: Callable[[float], float] = float,
) -> Shares:
    """Return X (job, type) for T (job, type) and need, base, age (job,); `read` turns t into the policy's unit."""
    z, C = view.scale_factor.astype(float), view.capacity
    found = highest_level(T, z, C, need, base=base, age=age, second=of_fastest(T) if point == "any" else None)
    x, which = found.x, point if found.spent_best else f"{point}; spare time is given out place by place"
    if point != "any" and need.any():
        face = of_level(T, z, C, x)
        x = central(face) if point == "central" else closest(face, _seats(view))
    return answered(x, found.objective, found.bound, price=found.price, binding=found.binding, point=which, read=read)


def _seats(view: View) -> Floats:
    """Return who sits where now as shares, (job, type)."""
    return np.asarray(view.on_type[:, None] == np.arange(len(view.types)), dtype=float)
