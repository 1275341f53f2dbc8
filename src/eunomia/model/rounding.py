"""Numbers rounded on purpose, so that a last digit decides nothing.

Ties among best answers are broken by one rule: keys are rounded to 30 bits (nine digits), and of equal ones the lower
row comes first, and of equal types the first. A difference of one unit in the last place then changes no decision,
whether it comes from a processor, a library or another order of a sum.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints

BITS = 30  # of a key that ranks
SEEN_BITS = 40  # of what a policy sees
DRAWN_BITS = 40  # of what is drawn by functions of a library that takes logarithms


def rounded(key: Any, *, bits: int = BITS) -> Floats:
    """Return numbers rounded to so many bits; what is not finite stays, and so do numbers above 1e300.

    By G. W. Veltkamp's splitting: a product and two differences.
    """
    key = np.asarray(key, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = key * (2.0 ** (53 - bits) + 1.0)
        near = wide - (wide - key)
    return np.asarray(near if np.isfinite(near).all() else np.where(np.isfinite(near), near, key))


@overload
def drawn(values: float) -> float: ...
@overload
def drawn(values: Array) -> Floats: ...
def drawn(values: Any) -> Any:
    """Return what a generator's exponential or normal distribution gave, to 40 bits (twelve digits).

    Their tails take logarithms of the system's library, whose last digit differs from machine to machine.
    """
    found = rounded(values, bits=DRAWN_BITS)
    return found if found.ndim else float(found)


def rising(key: Array) -> Ints:
    """Return rows in order of rounded keys, of equal ones the lower row first."""
    return np.argsort(rounded(key), kind="stable")


def straight(x: Any, at: Any, values: Any) -> Any:
    """Return values at x on straight lines between the points `at`, which rise; the first and last reach beyond."""
    at, values = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
    x = np.asarray(x, dtype=np.float64)
    if len(at) == 1:
        return np.full(x.shape, values[0])
    left = np.clip(np.searchsorted(at, x, side="right") - 1, 0, len(at) - 2)
    slope = (values[left + 1] - values[left]) / (at[left + 1] - at[left])
    found = np.where(x >= at[-1], values[-1], slope * (x - at[left]) + values[left])
    return np.where(x < at[0], values[0], found)
