"""A hash of whole numbers that never leaves 62 bits, so that it is the same compiled and not."""

from __future__ import annotations

from typing import Any

from eunomia.kernels import kernel

_HALF = 0x7FFFFFFF


@kernel()
def mixed(x: Any) -> Any:
    """Return a number of 62 bits that looks drawn; x is at least 0 and below 2 ** 62."""
    for _ in range(2):
        x = ((x & _HALF) * 0x5BD1E995) ^ (((x >> 31) & _HALF) * 0x27D4EB2D)
        x = x ^ (x >> 29)
    return x
