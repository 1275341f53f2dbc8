"""The level program of the Gavel family as an answer, and which of its optima is returned.

    maximise t   subject to   Σ_j T[m,j] X[m,j] ≥ r_m(t),  r_m(t) = need · t / (base - age · t)

Where many X reach the same t: `any` is the corner that the prices lead to, with what is left over spent on Σ_m Σ_j
T[m,j] X[m,j] / max_j T[m,j]; `closest` moves the fewest jobs from where they sit now, and spends nothing more;
`central` lies inside all optima and treats alike jobs alike; both solve a second program over distinct jobs. `interior`
stops on the way there where an interior-point solver does (the published artifact's among them): t is up to a millionth
lower, and every place has a trace of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.products import row_dots
from eunomia.model.view import View
from eunomia.policies.shares.options import Point
from eunomia.policies.shares.share_inputs import build_answer, relative_speed
from eunomia.solvers.central import inside
from eunomia.solvers.face import central, closest, of_level
from eunomia.solvers.level import highest_level


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
    """Return X (job, type) for T (job, type) and need, base, age (job,); `read` turns t into the policy's unit.

    It remembers the prices, (1, type), and begins at those of the last answer: of many jobs few have changed.
    """
    z, C = view.scale_factor.astype(float), view.capacity
    second, before = relative_speed(T) if point == "any" else None, view.memory.get("price")
    start = None if before is None else before[0]
    found = highest_level(T, z, C, need, base=base, age=age, second=second, start=start)
    x, which = found.x, point if found.spent_best else f"{point}; spare time is given out place by place"
    if point == "interior" and found.objective > 0:
        x, reached = _interior(T, z, C, need, base, age, found.objective)
        return build_answer(x, reached, found.bound, price=found.price, binding=found.binding, point=which, read=read)
    if point != "any" and need.any():
        face = of_level(T, z, C, x)
        x = central(face) if point == "central" else closest(face, seats(view))
    whole = build_answer(
        x, found.objective, found.bound, price=found.price, binding=found.binding, point=which, read=read
    )
    return replace(whole, memory={"price": found.price[None]})


def _interior(
    T: Floats, z: Floats, C: Floats, need: Floats, base: Floats | None, age: Floats | None, t: float
) -> tuple[Floats, float]:
    """Return X near the highest level t, and the level that it reaches; what levels need is taken as straight there."""
    b, e = np.ones(len(need)) if base is None else base, np.zeros(len(need)) if age is None else age
    asked = (need > 0) & (T > 0).any(axis=1)
    left = np.where(asked, b - e * t, 1.0)
    slope = need * b / left**2
    x = inside(T, z, C, np.where(asked, slope, 0.0), need * t / left - slope * t, t)
    got = row_dots(T, x)[asked]
    return x, float((got * b[asked] / (need[asked] + e[asked] * got)).min())


def seats(view: View) -> Floats:
    """Return who sits where now as shares, (job, type)."""
    return np.asarray(view.on_type[:, None] == np.arange(len(view.types)), dtype=float)
