"""Sums in one fixed order: the same bits interpreted and compiled, on every processor.

A compiler may not change the order in which floating-point numbers are added, so a plain running sum waits for each
addition. The sums here have several strands that do not wait for each other, and one rule for joining them. Loops
over blocks of rows do the same by *lanes*: lane j adds up the rows j, j + block, …, and `summed` joins the lanes.
"""

from __future__ import annotations

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints


@kernel(error_model="numpy")
def summed(v: Floats, m: int) -> float:
    """Return the sum of the first m of v, in eight strands."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = m - m % 8
    for j in range(0, whole, 8):
        a += v[j]
        b += v[j + 1]
        c += v[j + 2]
        d += v[j + 3]
        e += v[j + 4]
        f += v[j + 5]
        g += v[j + 6]
        h += v[j + 7]
    for j in range(whole, m):
        a += v[j]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel(error_model="numpy")
def total(v: Floats) -> float:
    """Return the sum of a vector, from the first entry to the last: numpy's own order depends on the length."""
    found = 0.0
    for j in range(len(v)):
        found += v[j]
    return found


@kernel(error_model="numpy")
def inner_product(v: Floats, w: Floats | Ints) -> float:
    """Return Σ v w, from the first entry to the last."""
    found = 0.0
    for j in range(len(v)):
        found += v[j] * w[j]
    return found


@kernel(error_model="numpy")
def greatest(v: Floats, m: int) -> float:
    """Return the greatest of the first m of v and of 0."""
    found = 0.0
    for j in range(m):
        found = v[j] if v[j] > found else found
    return found
