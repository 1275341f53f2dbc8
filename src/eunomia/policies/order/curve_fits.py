"""Learning curves that a policy fits to the losses that it is shown, and keeps until more are told.

A policy with `curves=fitted` remembers the curve of each job (`model.curve_fits`) and up to which steps it knew losses
then, so that an answer fits those jobs alone of which something new was told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from eunomia.model.arrays import Array, Floats
from eunomia.model.curve_fits import PARTS, fitted, known_curves
from eunomia.model.curves import Curve
from eunomia.model.policy import Policy
from eunomia.model.view import View

Curves = Literal["oracle", "fitted"]
_NAMES = tuple(f"curve_{part}" for part in PARTS)
_KNOWN = "curve_known"  # steps of the last loss that the curve knows
REMEMBERS = {**dict.fromkeys(_NAMES, 0.0), _KNOWN: -1.0}  # with c = 0 it is no curve


def fits(policy: Policy, curves: str) -> None:
    """Let a policy see losses and remember curves where it is to fit them. For a `__post_init__`; needs no slots.

    Raises ValueError for a spelling that is not one of `Curves`.
    """
    if curves not in ("oracle", "fitted"):
        raise ValueError(
            f"curves is {curves!r}; it is 'oracle' (they are known) or 'fitted' (to losses that were told)"
        )
    if curves == "fitted":
        info = policy.info
        needs = info.needs - {"loss_curve"} | {"losses"}
        object.__setattr__(policy, "info", replace(info, needs=needs, remembers={**info.remembers, **REMEMBERS}))


def median_curves(view: View) -> Floats:
    """Return what is believed of jobs of which nothing is known, (job, 5)."""
    return known_curves(np.tile(Curve(), (view.jobs, 1)), view.total)


def fitted_curves(view: View, *, slaq: bool) -> tuple[Floats, dict[str, Array]]:
    """Return the curve of each job, (job, 5) as in `model.curve_fits`, nan = not known yet; and what to remember."""
    curves = np.stack([view.memory[name] for name in _NAMES], axis=1)
    curves[curves[:, PARTS.index("c")] == 0] = np.nan
    told = np.nan_to_num(view.losses[:, :, 0], nan=-1.0).max(axis=1, initial=-1.0)
    fresh = np.flatnonzero(told > view.memory[_KNOWN])
    if len(fresh):
        curves[fresh] = fitted(view.losses[fresh], slaq=slaq)
    kept = np.nan_to_num(curves, nan=0.0)
    return curves, {**dict(zip(_NAMES, kept.T, strict=True)), _KNOWN: told}
