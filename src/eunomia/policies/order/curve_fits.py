"""Learning curves that a policy fits to reported losses.

A policy with `curves=fitted` remembers the curve of each job (`model.curve_fits`) and the steps of the last loss in the
fit, so that an answer refits only jobs with new losses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from eunomia.model.arrays import Array, Floats
from eunomia.model.curve_fits import PARTS, fit_curves, to_fitted_form
from eunomia.model.curves import Curve
from eunomia.model.policy import Policy
from eunomia.model.view import View

Curves = Annotated[Literal["oracle", "fitted"], "'oracle' (known) or 'fitted' (to reported losses)"]
_NAMES = tuple(f"curve_{part}" for part in PARTS)
_KNOWN = "curve_known"  # steps of the last loss in the fit
REMEMBERS = {**dict.fromkeys(_NAMES, 0.0), _KNOWN: -1.0}  # c = 0: no curve yet


def declare_curves(policy: Policy, curves: str) -> None:
    """Add losses and remembered curves to a policy that fits them. For a `__post_init__` of a class without slots."""
    if curves == "fitted":
        info = policy.info
        needs = info.needs - {"loss_curve"} | {"losses"}
        object.__setattr__(
            policy, "info", replace(info, needs=needs, memory_columns={**info.memory_columns, **REMEMBERS})
        )


def median_curves(view: View) -> Floats:
    """Return the median curve for each job, (job, 5): the belief about jobs without losses."""
    return to_fitted_form(np.tile(Curve(), (view.jobs, 1)), view.total)


def fitted_curves(view: View, *, slaq: bool) -> tuple[Floats, dict[str, Array]]:
    """Return the curve of each job, (job, 5) as in `model.curve_fits`, nan = not known yet; and the memory."""
    curves = np.stack([view.memory[name] for name in _NAMES], axis=1)
    curves[curves[:, PARTS.index("c")] == 0] = np.nan
    last_steps = np.nan_to_num(view.losses[:, :, 0], nan=-1.0).max(axis=1, initial=-1.0)
    outdated = np.flatnonzero(last_steps > view.memory[_KNOWN])
    if len(outdated):
        curves[outdated] = fit_curves(view.losses[outdated], slaq=slaq)
    stored = np.nan_to_num(curves, nan=0.0)
    return curves, {**dict(zip(_NAMES, stored.T, strict=True)), _KNOWN: last_steps}
