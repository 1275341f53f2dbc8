"""Counting rows that are alike: rows with equal entries in every column given are one class.

A program whose objective is concave and does not tell such rows apart has an optimum that does not either: the mean
over all ways to swap them is feasible and as good. So one variable for each class and its count stand for them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Ints

_FREE = -1
_WIDTHS = (3, 6)  # columns compared at a time, as tuples of each length are compiled separately


@dataclass(frozen=True, slots=True)
class Classes:
    """Which rows are alike. Classes are numbered in the order in which their first rows stand."""

    of: Ints  # (row,) class of each row
    count: Ints  # (class,) rows in it, at least 1
    representative: Ints  # (class,) its first row

    def __len__(self) -> int:
        return len(self.count)

    def members(self) -> tuple[Ints, Ints]:
        """Return all rows, class by class and in order within one, and where each class starts, (class + 1,)."""
        start = np.concatenate(([0], np.cumsum(self.count)))
        narrow = np.uint16 if len(self) < 2**16 else np.int64  # numpy sorts 16 bits by counting
        return np.argsort(self.of.astype(narrow), kind="stable"), start


def later_members(of: Ints, count: Ints) -> Ints:
    """Return how many rows of its class come after each row, (row,); of (row,) class, count (class,) rows in it."""
    later = np.empty(len(of), dtype=np.int64)
    later[np.argsort(of, kind="stable")] = np.repeat(np.cumsum(count), count) - 1 - np.arange(len(of))
    return later


def group(*columns: Array) -> Classes:
    """Return the classes of rows that are equal in all columns, each (row,) numbers without NaN; 0.0 equals -0.0."""
    words = [_words(column) for column in columns]
    widest = max(_WIDTHS)
    of, representative, classes = _find(_padded(words[:widest]), len(words[0]))
    for first in range(widest, len(words), widest - 1):
        of, representative, classes = _find(_padded([of, *words[first : first + widest - 1]]), len(of))
    count = np.bincount(of, minlength=classes)
    return Classes(of, count, representative[:classes].copy())


def _padded(words: list[Ints]) -> tuple[Ints, ...]:
    """Return the columns and, up to one of the compiled widths, the last one again, which tells no rows apart."""
    missing = next(width for width in _WIDTHS if width >= len(words)) - len(words)
    return (*words, *words[-1:] * missing)


def _words(column: Array) -> Ints:
    """Return 64 bits for each entry, equal where the entries are."""
    if np.issubdtype(column.dtype, np.floating):
        return (np.ascontiguousarray(column, dtype=np.float64) + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return np.ascontiguousarray(column, dtype=np.int64)


@kernel()
def _hash(words: Any, row: int) -> int:
    """Mix the entries of a row into one number; no product leaves 63 bits, so plain Python does the same."""
    found = 0
    for column in words:
        word = int(column[row])
        found = ((found ^ word ^ (word >> 32)) & 0x7FFFFFFF) * 0x45D9F3B
        found ^= found >> 27
    return found


@kernel()
def _equal(words: Any, row: int, other: int) -> bool:
    for column in words:  # noqa: SIM110 - numba compiles no generator over a tuple
        if column[row] != column[other]:
            return False
    return True


@kernel()
def _find(words: Any, rows: int) -> tuple[Ints, Ints, int]:
    """Return class of each row, first row of each class, number of classes: a table of open addresses that doubles."""
    of = np.empty(rows, np.int64)
    representative = np.empty(rows, np.int64)
    table = np.full(1024, _FREE, np.int64)  # class
    classes = 0
    for row in range(rows):
        place = _hash(words, row) & (len(table) - 1)
        while table[place] != _FREE and not _equal(words, row, representative[table[place]]):
            place = (place + 1) & (len(table) - 1)
        if table[place] == _FREE:
            table[place] = classes
            representative[classes] = row
            classes += 1
            if 2 * classes > len(table):
                table = _wider(table, words, representative, classes)
            of[row] = classes - 1
        else:
            of[row] = table[place]
    return of, representative, classes


@kernel()
def _wider(table: Ints, words: Any, representative: Ints, classes: int) -> Ints:
    """Return the table with four times as many places."""
    wider = np.full(4 * len(table), _FREE, np.int64)
    for each in range(classes):
        place = _hash(words, representative[each]) & (len(wider) - 1)
        while wider[place] != _FREE:
            place = (place + 1) & (len(wider) - 1)
        wider[place] = each
    return wider
