"""The one tolerance of sums: how far a computed number may miss a bound and still keep it.

Shares, floors, deadlines and capacities are sums and quotients of floating-point numbers. A bound is kept where it is
missed by no more than `RELATIVE` of its own size. Ties between sort keys are another matter: `rounding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RELATIVE = 1e-9  # of the bound
# Of a share, and of the accelerators of a type: what an optimiser's answer may be over, as a policy's may be that stops
# at such a gap. More than that is a mistake.
SOLVED = 1e-6


def is_at_most(value: Any, bound: Any) -> Any:
    """Return whether values keep an upper bound, but for rounding; arrays elementwise, NaN never."""
    return value <= bound + RELATIVE * np.abs(bound)


def is_at_least(value: Any, bound: Any) -> Any:
    """Return whether values keep a lower bound, but for rounding; arrays elementwise, NaN never."""
    return value >= bound - RELATIVE * np.abs(bound)
