"""Job ids as rows of a table, looked up when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from eunomia.model.arrays import NO_INTS, Ints


class JobIdList(Sequence[str]):
    """The ids of some jobs, as rows of the table of all jobs in order of submission.

    A backend with the same table reads `rows` and no text. Row -1 means no job and reads as "". `table` may grow.
    """

    __slots__ = ("_table", "rows")

    def __init__(self, rows: Ints, table: Sequence[str]):
        self.rows, self._table = rows, table

    @property
    def table(self) -> Sequence[str]:
        """Return the ids that `rows` are rows of."""
        return self._table

    @classmethod
    def of(cls, *names: str) -> JobIdList:
        """Return these ids as a table of their own."""
        return cls(np.arange(len(names)), names) if names else cls(NO_INTS, ())

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> JobIdList: ...
    def __getitem__(self, at: int | slice) -> str | JobIdList:
        if isinstance(at, slice):
            return JobIdList(self.rows[at], self._table)
        row = int(self.rows[at])
        return self._table[row] if row >= 0 else ""

    def __iter__(self) -> Iterator[str]:
        table = self._table
        return iter([table[row] if row >= 0 else "" for row in self.rows.tolist()])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, JobIdList | tuple | list):
            return list(self) == list(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))
