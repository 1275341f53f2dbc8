"""Arrays as what differs from arrays before them, of which rows have gone and others have come.

Whoever reads needs only the array before. Values are compared bit by bit, so nan is itself and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from eunomia.model.arrays import NO_INTS, Array, Bools, Ints

Change: TypeAlias = Mapping[str, Any]  # of plain values and arrays, as `packed_objects` writes them
GONE, NONE = -2, -1  # of a row that is no row now, and of no row
MANY = 0.7  # of all rows: where more changed, all are written
MOST_KEYS = 2**62  # of entries of a list


def narrow(values: Ints) -> Array:
    """Return integers in the fewest bytes that hold them, in an array of its own."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return values.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)), copy=True)


def wide(values: Array) -> Ints:
    """Invert `narrow`."""
    found: Ints = values.astype(np.int64)
    return found


@dataclass(frozen=True, slots=True)
class RowMap:
    """Which rows before are which rows now; those that stay keep their order.

    before: (row,) which row before it was, NONE of one that has come.
    now: (row before + 1,) which row it is now, GONE of one that has gone; the last is NONE, so that NONE stays NONE.
    """

    before: Ints
    now: Ints

    @classmethod
    def between(cls, old: Ints, new: Ints) -> RowMap:
        """Return it for rows that are known by rising numbers; numbers that do not rise have all gone or come.

        An old row of number NONE has gone.
        """
        known = old[old != NONE]
        if not (_rises(known) and _rises(new)):
            return cls._of(len(old), len(new), np.arange(len(old)), np.arange(len(new)))
        gone, come = old == NONE, ~np.isin(new, known, assume_unique=True)
        gone[~gone] = ~np.isin(known, new, assume_unique=True)
        return cls._of(len(old), len(new), np.flatnonzero(gone), np.flatnonzero(come))

    @classmethod
    def _of(cls, old: int, new: int, gone: Ints, come: Ints) -> RowMap:
        stays, is_old = np.ones(old, dtype=bool), np.ones(new, dtype=bool)
        stays[gone] = is_old[come] = False
        before, now = np.full(new, NONE), np.full(old + 1, GONE)
        before[is_old], now[:-1][stays], now[-1] = np.flatnonzero(stays), np.flatnonzero(is_old), NONE
        return cls(before, now)

    def written(self) -> Change:
        """Return it as `read` takes it."""
        gone, come = np.flatnonzero(self.now[:-1] == GONE), np.flatnonzero(self.before == NONE)
        return {"rows": [len(self.now) - 1, len(self.before)]} | {
            name: narrow(np.diff(rows, prepend=0)) for name, rows in (("gone", gone), ("come", come)) if len(rows)
        }

    @classmethod
    def read(cls, change: Change) -> RowMap:
        """Invert `written`. Raises ValueError or IndexError for what it does not write."""
        gone, come = (wide(change[name]).cumsum() if name in change else NO_INTS for name in ("gone", "come"))
        old, new = change["rows"]
        return cls._of(old, new, gone, come)


def _rises(rows: Ints) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


# ---- columns: one value a row ----------------------------------------------------------------------------------------


def column_change(old: Array | None, new: Array, before: Ints | None) -> Change | None:
    """Return what of an array differs from the one before, None for nothing.

    before: (row,) which row of `old` each row was, NONE = it has come; None: rows are not known, only the whole is.
    """
    if old is None or old.dtype != new.dtype or old.shape[1:] != new.shape[1:] or not new.ndim:
        return {"all": new.copy()}
    if before is None:
        is_same = old.shape == new.shape and not _differ(old, new).any()
        return None if is_same else {"all": new.copy()}
    has_come = before == NONE
    changed = has_come.copy()
    stay = ~has_come
    changed[stay] = _differ(old[before[stay]], new[stay])
    rows = np.flatnonzero(changed)
    if not len(rows):
        return None
    if len(rows) > MANY * len(new):
        return {"all": new.copy()}
    return {"at": narrow(np.diff(rows, prepend=0)), "to": new[rows]}


def changed_column(old: Array | None, change: Change | None, before: Ints | None) -> Array:
    """Invert `column_change`. Raises ValueError or IndexError for what it does not write."""
    if change is not None and "all" in change:
        whole: Array = change["all"]
        return whole
    if old is None:
        raise ValueError("a column has changed that was not there before")
    if before is None:
        return old.copy()
    found = np.zeros((len(before), *old.shape[1:]), dtype=old.dtype)
    stay = before != NONE
    found[stay] = old[before[stay]]
    if change is not None:
        found[wide(change["at"]).cumsum()] = change["to"]
    return found


def _differ(one: Array, other: Array) -> Bools:
    """Return in which rows two arrays of one shape and type differ, (row,)."""
    if one.dtype.kind == "f":
        kind = f"u{one.dtype.itemsize}"
        one, other = np.ascontiguousarray(one).view(kind), np.ascontiguousarray(other).view(kind)
    differ: Bools = np.asarray(one != other)
    return differ if differ.ndim == 1 else np.asarray(differ.any(axis=tuple(range(1, differ.ndim))))


# ---- lists of rows: in which order, and which ------------------------------------------------------------------------


def list_change(old: Sequence[Ints], new: Sequence[Ints]) -> tuple[Change | None, Ints]:
    """Return what of a list differs from the one before, None for nothing, and (entry,) which each was, or NONE.

    A list is given by its columns, at least one, as many as before. It is written as pieces of the one before and the
    entries that were not in it.
    """
    source = _sources(old, new)
    if len(source) == len(old[0]) and (source == np.arange(len(source))).all():
        return None, source
    goes_on = (source[1:] == source[:-1] + 1) & (source[:-1] != NONE) | (source[1:] == NONE) & (source[:-1] == NONE)
    first = np.flatnonzero(np.concatenate(([True], ~goes_on)))[: len(source)]
    size = np.diff(np.append(first, len(source)))
    fresh = source == NONE
    change: dict[str, Any] = {"from": narrow(source[first]), "size": narrow(size)}
    if fresh.any():
        change["new"] = [narrow(column[fresh]) for column in new]
    return change, source


def changed_list(old: Sequence[Ints], change: Change | None) -> tuple[list[Ints], Ints]:
    """Invert `list_change`: return the columns, and (entry,) which entry before each was, or NONE."""
    if change is None:
        return [column.copy() for column in old], np.arange(len(old[0]))
    first, size = wide(change["from"]), wide(change["size"])
    within = np.arange(int(size.sum())) - np.repeat(size.cumsum() - size, size)
    begin = np.repeat(first, size)
    source = np.where(begin == NONE, NONE, begin + within)
    fresh = source == NONE
    columns = []
    for number, column in enumerate(old):
        found = np.empty(len(source), dtype=np.int64)
        found[~fresh] = column[source[~fresh]]
        if fresh.any():
            found[fresh] = change["new"][number]
        columns.append(found)
    return columns, source


def _sources(old: Sequence[Ints], new: Sequence[Ints]) -> Ints:
    """Return which entry before each entry was, (entry,), NONE where none was like it."""
    n, m = len(old[0]), len(new[0])
    source, least = np.full(m, NONE), min(n, m)
    same = np.logical_and.reduce([a[:least] == b[:least] for a, b in zip(old, new, strict=True)])
    begin = least if same.all() else int(same.argmin())
    source[:begin] = np.arange(begin)
    same = np.logical_and.reduce(
        [a[n - least + begin :][::-1] == b[m - least + begin :][::-1] for a, b in zip(old, new, strict=True)]
    )
    end = len(same) if same.all() else int(same.argmin())  # entries at the end that are the same
    source[m - end :] = np.arange(n - end, n)
    middle, rest = _keys([c[begin : m - end] for c in new], [c[begin : n - end] for c in old])
    if not len(middle) or not len(rest):
        return source
    order = np.argsort(rest, kind="stable")
    found = order[np.minimum(np.searchsorted(rest[order], middle), len(rest) - 1)]
    source[begin : m - end] = np.where(rest[found] == middle, begin + found, NONE)
    return source


def _keys(new: Sequence[Ints], old: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return a number for each entry of two lists, the same for the same; none where it would be too large."""
    keys = np.zeros(len(new[0]), dtype=np.int64), np.zeros(len(old[0]), dtype=np.int64)
    values = 1
    for one, other in zip(new, old, strict=True):
        low = min(int(one.min(initial=0)), int(other.min(initial=0)))
        span = max(int(one.max(initial=0)), int(other.max(initial=0))) - low + 1
        values *= span
        if values > MOST_KEYS:
            return NO_INTS, NO_INTS
        keys = keys[0] * span + (one - low), keys[1] * span + (other - low)
    return keys
