"""Durations that a published extract cut off."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats


def clamped_note(duration_s: Floats, clamped: Floats) -> tuple[str, ...]:
    """Return the sentence that counts the cut jobs, or none; `clamped` is 1 where a duration was cut."""
    cut = duration_s[clamped == 1]
    if not np.isfinite(cut).any():  # nothing was cut, or what was is wrong, which its reader tells
        return ()
    return (
        f"{len(cut):,} jobs ran longer than the {np.nanmax(cut):,.0f} s at which the published extract cuts durations "
        "off",
    )
