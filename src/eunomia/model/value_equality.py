"""Equality of frozen dataclasses with array fields."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np


class ValueEqual:
    """Compares dataclasses field by field, and arrays by value, those of dicts too; nan equals nan.

    A base for frozen dataclasses with `eq=False`.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]


class PlainValue(ValueEqual):
    """Compares dataclasses of plain values so that nan equals nan, which since Python 3.13 it does not by itself.

    A base for frozen dataclasses with `eq=False`, which may be keys.
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return hash(tuple(None if isinstance(value, float) and math.isnan(value) else value for value in values))


def _equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        one, other = np.asarray(a), np.asarray(b)
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f"))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)
