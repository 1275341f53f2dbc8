"""Durations that a published extract cut off."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats


def clamped_note(duration_s: Floats, clamped: Floats) -> tuple[str, ...]:
    """Return the sentence that counts the cut jobs, or none; `clamped` is 1 where a duration was cut."""
    count = int(np.count_nonzero(clamped == 1))
    if not count:
        return ()
    return (
        f"{count:,} jobs ran longer than the {np.nanmax(duration_s[clamped == 1]):,.0f} s at which the published "
        f"extract cuts durations off",
    )
