"""How near a number can be that others printed: to half of its last digit."""

from __future__ import annotations

from decimal import Decimal

from eunomia.model import elementary

ROUNDING = 1e-6  # of half a digit: what binary numbers add


def half_a_digit(written: str) -> float:
    """Return half of the last digit of a finite number as it is written: 0.0005 for `0.266`, 0.5 for `12`."""
    exponent = Decimal(written).as_tuple().exponent
    assert isinstance(exponent, int)  # it is finite
    return 0.5 * elementary.power(10.0, min(exponent, 0)) * (1 + ROUNDING)
