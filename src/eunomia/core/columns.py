"""Columns that grow together: one row per job, doubled when full."""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.model.arrays import Array

_FIRST = 64


class Columns:
    """Arrays of one length, read as attributes: `columns.weight[row]`.

    `spec` maps a name to (dtype, value of a new row) or (dtype, value, width) for a column of vectors.
    Every array is longer than `len(self)`; rows past the end hold the value of a new row.
    """

    def __init__(self, spec: dict[str, tuple[Any, ...]]):
        self._spec = spec
        self._length = 0
        for name in spec:
            setattr(self, name, self._fresh(name, _FIRST))

    def _fresh(self, name: str, rows: int) -> Array:
        dtype, value, *width = self._spec[name]
        return np.full((rows, *width), value, dtype=dtype)

    def __len__(self) -> int:
        return self._length

    def add(self) -> int:
        """Open a new row and return its number."""
        room = len(getattr(self, next(iter(self._spec))))
        if self._length == room:
            for name in self._spec:
                setattr(self, name, np.concatenate((getattr(self, name), self._fresh(name, room))))
        self._length += 1
        return self._length - 1
