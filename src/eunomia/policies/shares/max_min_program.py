"""The max-min program of the Gavel family as an answer, and the choice among its optima.

    maximise t   subject to   Σ_j T[m,j] X[m,j] ≥ r_m(t),  r_m(t) = need · t / (base - age · t)

Where many X reach the same t: `any` is a vertex, with time left over spent on Σ_m Σ_j T[m,j] X[m,j] / max_j T[m,j];
`closest` moves the fewest jobs from their present seats, without that second objective; `central` is inside the optimal
face and treats identical jobs alike; both solve a second program over distinct jobs. `interior` is the point at which
an interior-point solver, such as the published artifact's, stops: t is up to a millionth lower, and every entry of X is
above 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.products import row_dots
from eunomia.model.view import View
from eunomia.policies.shares.options import Point
from eunomia.policies.shares.share_inputs import build_answer, clip_shares, relative_speed
from eunomia.solvers.analytic_center import inside
from eunomia.solvers.max_min import highest_level
from eunomia.solvers.optimal_face import central, closest, of_level


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
    """Return X (job, type) for T (job, type) and need, base, age (job,); `read` converts t to the policy's unit."""
    z, C = view.scale_factor.astype(float), view.capacity
    optimum = highest_level(T, z, C, need, base=base, age=age, second=relative_speed if point == "any" else None)
    x, which = optimum.x, point if optimum.spent_best else f"{point}; spare time is given out place by place"
    if point == "interior" and optimum.objective > 0:
        x, level = _interior(T, z, C, need, base, age, optimum.objective)
        return build_answer(
            x, level, optimum.bound, price=optimum.price, binding=optimum.binding, point=which, read=read
        )
    if point == "any":
        x[optimum.edges.places] = clip_shares(x[optimum.edges.places])  # shares of other rows are parts of an edge
    elif need.any():
        face = of_level(T, z, C, x)
        x = central(face) if point == "central" else closest(face, seats(view))
    return build_answer(
        x, optimum.objective, optimum.bound, price=optimum.price, binding=optimum.binding, point=which, read=read,
        within=point == "any",
    )  # fmt: skip


def _interior(
    T: Floats, z: Floats, C: Floats, need: Floats, base: Floats | None, age: Floats | None, t: float
) -> tuple[Floats, float]:
    """Return X near the highest level t, and its level; the needs are linearised at t."""
    b, e = np.ones(len(need)) if base is None else base, np.zeros(len(need)) if age is None else age
    active = (need > 0) & (T > 0).any(axis=1)
    left = np.where(active, b - e * t, 1.0)
    slope = need * b / left**2
    x = inside(T, z, C, np.where(active, slope, 0.0), need * t / left - slope * t, t)
    rate = row_dots(T, x)[active]
    return x, float((rate * b[active] / (need[active] + e[active] * rate)).min())


def seats(view: View) -> Floats:
    """Return the present seats as shares, (job, type)."""
    return np.asarray(view.on_type[:, None] == np.arange(len(view.types)), dtype=float)
