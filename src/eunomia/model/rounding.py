"""Rounding of keys, so that a last digit decides nothing.

Ties are broken by one rule: keys are rounded to 30 bits (nine digits); of equal keys the lower row is first, of equal
types the first. So a difference of one unit in the last place, from a processor, a library or another order of a sum,
changes no decision.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints

BITS = 30  # of a sort key
SEEN_BITS = 40  # of the columns of a view
DRAWN_BITS = 40  # of random draws by library functions that take logarithms


def rounded(key: Any, *, bits: int = BITS) -> Floats:
    """Return numbers rounded to so many bits; numbers above 1e300 and those that are not finite stay as they are.

    By G. W. Veltkamp's splitting: a product and two differences.
    """
    key = np.asarray(key, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = key * (2.0 ** (53 - bits) + 1.0)
        near = wide - key
        near = np.subtract(wide, near, out=near if near.ndim else None)
    return np.asarray(near if np.isfinite(near).all() else np.where(np.isfinite(near), near, key))


_KEY_SPLITTER, _SEEN_SPLITTER = (2.0 ** (53 - bits) + 1.0 for bits in (BITS, SEEN_BITS))


@kernel(allocates=False, forceinline=True)
def rounded_key(key: float) -> float:
    """Return one number as `rounded` does."""
    wide = key * _KEY_SPLITTER
    near = wide - (wide - key)
    return near if abs(near) < np.inf else key


@kernel(allocates=False, forceinline=True)
def rounded_as_seen(value: float) -> float:
    """Return one number as `rounded` does with the bits of the columns of a view."""
    wide = value * _SEEN_SPLITTER
    near = wide - (wide - value)
    return near if abs(near) < np.inf else value


@overload
def drawn(values: float) -> float: ...
@overload
def drawn(values: Array) -> Floats: ...
def drawn(values: Any) -> Any:
    """Return exponential or normal draws of a generator, rounded to 40 bits (twelve digits).

    Their tails take logarithms of the system's library, whose last digit differs between machines.
    """
    draws = rounded(values, bits=DRAWN_BITS)
    return draws if draws.ndim else float(draws)


def rising(key: Array) -> Ints:
    """Return rows in order of rounded keys, the lower row first among equal ones."""
    return np.argsort(rounded(key), kind="stable")


def interpolate(x: Any, at: Any, values: Any) -> Any:
    """Return values at x, linear between the rising points `at` and constant beyond the first and the last."""
    at, values = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
    x = np.asarray(x, dtype=np.float64)
    if len(at) == 1:
        return np.full(x.shape, values[0])
    left = np.clip(np.searchsorted(at, x, side="right") - 1, 0, len(at) - 2)
    slope = (values[left + 1] - values[left]) / (at[left + 1] - at[left])
    inside = np.where(x >= at[-1], values[-1], slope * (x - at[left]) + values[left])
    return np.where(x < at[0], values[0], inside)
