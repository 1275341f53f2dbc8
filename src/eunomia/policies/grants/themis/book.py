"""Gangs with the units that they would sit on, as many as compiled code finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints


class Book(NamedTuple):
    """Gang g would sit on units first[g]:first[g + 1] of `unit`, with `amount` seats each."""

    used: Ints  # (2,) gangs and entries that there are
    job: Ints  # (gang,)
    type: Ints  # (gang,)
    own: Bools  # (gang,) they are the seats that it has
    time: Floats  # (gang,) seconds that the job still needs there
    first: Ints  # (gang + 1,)
    unit: Ints  # (entry,)
    amount: Ints  # (entry,) accelerators


@kernel()
def opened(room: int) -> Book:
    """Return an empty book with room for some gangs; it grows."""
    room = max(room, 8)
    return Book(
        np.zeros(2, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.bool_),
        np.empty(room),
        np.zeros(room + 1, dtype=np.int64),
        np.empty(2 * room, dtype=np.int64),
        np.empty(2 * room, dtype=np.int64),
    )


@kernel()
def pushed(book: Book, job: int, type: int, own: bool, time: float, unit: Ints, count: Ints, n: int) -> Book:
    """Return the book with one more gang, on the first n entries of unit and count."""
    g, e = book.used
    if g == len(book.job):
        book = Book(
            book.used, _wider(book.job), _wider(book.type), _wider(book.own), _wider(book.time), _wider(book.first),
            book.unit, book.amount,
        )  # fmt: skip
    while e + n > len(book.unit):
        book = Book(
            book.used, book.job, book.type, book.own, book.time, book.first, _wider(book.unit), _wider(book.amount)
        )
    book.job[g], book.type[g], book.own[g], book.time[g] = job, type, own, time
    book.unit[e : e + n], book.amount[e : e + n] = unit[:n], count[:n]
    book.first[g + 1] = e + n
    book.used[0], book.used[1] = g + 1, e + n
    return book


@kernel()
def _wider(column: Array) -> Array:
    wider = np.empty(2 * len(column), dtype=column.dtype)
    wider[: len(column)] = column
    return wider
