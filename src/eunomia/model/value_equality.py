"""Equality of frozen dataclasses with array fields."""

from __future__ import annotations

from dataclasses import fields

import numpy as np


class ValueEqual:
    """Compares dataclasses field by field, and arrays by value, those of dicts too.

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


def _equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    return bool(a == b)
