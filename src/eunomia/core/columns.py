"""Columns that grow together: one row per job, doubled when full."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints

_FIRST = 56  # rows; doubled and 8 more, which never makes columns a power of two apart: see `Columns`
_PAGE = 512  # rows of 8 bytes in 4 KiB


class GrowingColumns:
    """Arrays of one length, read as attributes: `columns.weight[row]`.

    `spec` maps a name to (dtype, value of a new row) or (dtype, value, width) for a column of vectors. Every array is
    longer than `len(self)`; rows past the end hold the value of a new row. Plain columns of one dtype lie in one
    table (column, row), in the order of `spec`, so that compiled code takes them all as a single array. Columns are no
    multiple of 4 KiB apart, or a step that reads many of one job would find them in each other's place in the cache.
    """

    ints: Ints  # (column, row)
    floats: Floats  # (column, row)
    flags: Bools  # (column, row)

    def __init__(self, spec: dict[str, tuple[Any, ...]]):
        self._spec = spec
        self._length = 0
        self.room = _FIRST  # rows that the arrays have
        self._tables = {
            "ints": _names(spec, np.int64),
            "floats": _names(spec, np.float64),
            "flags": _names(spec, np.bool_),
        }
        self._wide = [name for name, (_, _, *width) in spec.items() if width]
        for table, names in self._tables.items():
            setattr(self, table, self._fresh_table(names, table, _FIRST))
        for name in self._wide:
            setattr(self, name, self._fresh(name, _FIRST))
        self._name_columns()

    def _fresh(self, name: str, rows: int) -> Array:
        dtype, value, *width = self._spec[name]
        return np.full((rows, *width), value, dtype=dtype) if value else np.zeros((rows, *width), dtype=dtype)

    def _fresh_table(self, names: list[str], table: str, rows: int) -> Array:
        dtype = {"ints": np.int64, "floats": np.float64, "flags": np.bool_}[table]
        fresh: Array = np.zeros((len(names), rows), dtype=dtype)  # takes no memory before it is written
        for column, name in zip(fresh, names, strict=True):
            if self._spec[name][1]:
                column[:] = self._spec[name][1]
        return fresh

    def _name_columns(self) -> None:
        for table, names in self._tables.items():
            for column, name in zip(getattr(self, table), names, strict=True):
                setattr(self, name, column)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy tables and name the columns anew: each is a part of its table, which a plain copy would separate."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        parts = {name for names in self._tables.values() for name in names} | {"_spec"}
        for name, value in vars(self).items():
            setattr(made, name, value if name in parts else deepcopy(value, memo))
        made._name_columns()
        return made

    def __len__(self) -> int:
        return self._length

    def add(self) -> int:
        """Open a new row and return its number."""
        if self._length == self.room:
            self._resize(2 * self.room + 8)
        self._length += 1
        return self._length - 1

    def add_many(self, count: int) -> slice:
        """Open so many new rows and return where they are."""
        self.reserve(count)
        self._length += count
        return slice(self._length - count, self._length)

    def reserve(self, count: int) -> slice:
        """Make room for so many more rows and return where they will be."""
        while self._length + count > self.room:
            self._resize(2 * self.room + 8)
        return slice(self._length, self._length + count)

    def keep(self, stays: Bools) -> None:
        """Drop the rows that do not stay, (row,); the order of the others holds."""
        count = int(stays.sum())
        for name in self._spec:
            column = getattr(self, name)
            column[:count] = column[: self._length][stays]
            column[count : self._length] = self._spec[name][1]
        self._length = count

    def compact(self, stays: Bools) -> None:
        """Drop the rows that do not stay, (row,), and room that so few rows would not have taken; none is foreseen."""
        self.keep(stays)
        room = _FIRST
        while room < 2 * self._length:
            room = 2 * room + 8
        if room < self.room:
            self._resize(room)

    def expect(self, count: int) -> None:
        """Make room for so many rows in all, where that is known, so that none is copied later."""
        if count > self.room:
            self._resize(-(-(count + 8) // _PAGE) * _PAGE - 8)

    def _resize(self, room: int) -> None:
        """Give the arrays so many rows; those beyond are dropped."""
        kept = min(room, self.room)
        for table, names in self._tables.items():
            grown = self._fresh_table(names, table, room)
            grown[:, :kept] = getattr(self, table)[:, :kept]
            setattr(self, table, grown)
        for name in self._wide:
            column = self._fresh(name, room)
            column[:kept] = getattr(self, name)[:kept]
            setattr(self, name, column)
        self.room = room
        self._name_columns()


def _names(spec: dict[str, tuple[Any, ...]], dtype: type) -> list[str]:
    """Return the plain columns of one dtype."""
    return [name for name, (kind, _, *width) in spec.items() if kind is dtype and not width]
