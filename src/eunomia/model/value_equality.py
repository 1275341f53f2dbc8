"""Frozen values that hold arrays."""

from __future__ import annotations

from dataclasses import fields

import numpy as np


class ValueEqual:
    """What holds arrays is equal when all that it says is. A base for frozen dataclasses made with `eq=False`."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _same(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)  # type: ignore[arg-type]
        )

    __hash__ = None  # type: ignore[assignment]


def _same(mine: object, other: object) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(np.asarray(mine), np.asarray(other)))
    return bool(mine == other)
