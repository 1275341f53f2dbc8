"""Choice among the optima of a linear objective: a vertex, the closest to the present seats, or a central one.

    maximise Σ_m Σ_j c[m,j] X[m,j]   subject to   Σ_j T[m,j] X[m,j] ≥ f_m

`any` is a vertex; `closest` moves the fewest jobs from their present seats; `central` is inside the optimal face and
treats identical jobs alike. The last two solve a second program over distinct jobs on the optimal face, which the
prices of the first define.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.view import View
from eunomia.policies.shares.max_min_program import seats
from eunomia.policies.shares.options import LinearPoint
from eunomia.solvers.linear import LinearResult
from eunomia.solvers.optimal_face import Face, central, closest


def choose_optimum(
    view: View,
    worth: Floats,
    optimum: LinearResult,
    point: LinearPoint,
    *,
    rate: Floats | None = None,
    floor: Floats | None = None,
) -> Floats:
    """Return X (job, type) among the optima; worth c, rate T (job, type) and floor f (job,) are those of `optimum`."""
    if point == "any":
        return optimum.x
    face = Face.of_prices(
        worth,
        view.scale_factor.astype(float),
        view.capacity,
        optimum.price,
        rate=rate,
        floor=floor,
        floor_price=None if floor is None else optimum.floor_price,
    )
    return np.asarray(central(face) if point == "central" else closest(face, seats(view)))
