"""How sure a number is that several seeds came to, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.metrics.statistics import estimate


def range_note(values: Sequence[float]) -> str:
    """Return the interval of the average over seeds, one value for each that has one."""
    found = estimate(np.array(values))
    if found is None:
        return "none was drawn"
    if found.low is None or found.high is None:
        return "one seed"
    return f"95 % interval {found.low:.4g} to {found.high:.4g} over {found.seeds} seeds"
