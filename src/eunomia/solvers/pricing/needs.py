"""What a row asks for at level t, in the three forms that the engines know.

    linear   r(t) = a t               b, e and cap are None
    aged     r(t) = a t / (b − e t)   cap is None; increasing and convex up to t = b / e
    capped   r(t) = min(a t, cap)     b and e are None; a = ALWAYS is a constant

Which arrays are None determines the form, which the compiler sees: each form is compiled to a loop of its own. `needs`
takes arrays of no rows for None, so that a long kernel that reads few rows is compiled once for all forms.
"""

from __future__ import annotations

from typing import TypeAlias

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats

Curve: TypeAlias = Floats | None
HUGE = 1e300  # what stands for no end: sums of it with others stay finite
ALWAYS = 1e250
FIXED = 1e200


@kernel(error_model="numpy")
def needs(
    a: Floats, b: Curve, e: Curve, cap: Curve, first: int, count: int, t: float, r: Floats, slope: Floats, bend: Floats
) -> None:
    """Write r, dr/dt and half of d²r/dt² of rows first … first + count at level t, (count,) each."""
    own = a[first : first + count]
    if b is not None and e is not None and len(b) > 0:
        base, age = b[first : first + count], e[first : first + count]
        for j in range(count):
            room = 1.0 / (base[j] - age[j] * t)
            r[j] = own[j] * t * room
            slope[j] = own[j] * base[j] * room * room
            bend[j] = slope[j] * age[j] * room
    elif cap is not None and len(cap) > 0:
        end = cap[first : first + count]
        for j in range(count):
            below = (own[j] < FIXED) & (own[j] * t < end[j])
            r[j] = own[j] * t if below else end[j]
            slope[j] = own[j] if below else 0.0
            bend[j] = 0.0
    else:
        for j in range(count):
            r[j] = own[j] * t
            slope[j] = own[j]
            bend[j] = 0.0


@kernel(error_model="numpy")
def fullness(best: Floats, a: Floats, b: Curve, e: Curve, cap: Curve, first: int, count: int, full: Floats) -> None:
    """Write 1 / t, t the level at which a row asks for its `best` (count,); 0 if it never does."""
    own = a[first : first + count]
    if b is not None and e is not None:
        base, age = b[first : first + count], e[first : first + count]
        for j in range(count):
            used = own[j] > 0.0 and best[j] > 0.0
            full[j] = (own[j] + best[j] * age[j]) / (best[j] * base[j]) if used else 0.0
    elif cap is not None:
        end = cap[first : first + count]
        for j in range(count):
            full[j] = own[j] / best[j] if end[j] > best[j] and best[j] > 0.0 else 0.0
    else:
        for j in range(count):
            full[j] = own[j] / best[j] if best[j] > 0.0 else 0.0
