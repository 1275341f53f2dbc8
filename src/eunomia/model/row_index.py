"""Who keeps rows of jobs of their own, and reads what others say of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from eunomia.model.arrays import Ints
from eunomia.model.job_ids import JobIdList


class RowIndex:
    """The ids of jobs by row, in order of submission.

    Others keep rows in that order too, so their `Names` mostly need no reading: a table that begins as this one does
    is taken at its rows. Each id is compared once; a table that differs is read by id.
    """

    __slots__ = ("_agreed", "_differs", "_row_of", "_table", "ids")

    def __init__(self, ids: Iterable[str] = ()):
        self.ids: list[str] = list(ids)
        self._row_of = {name: row for row, name in enumerate(self.ids)}
        self._table: Sequence[str] = ()  # the table that was last compared, and up to where it agrees
        self._agreed, self._differs = 0, False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def by_id(self) -> Mapping[str, int]:
        """Return the row of each job by its id."""
        return self._row_of

    def add(self, job_id: str) -> int:
        """Open a row for a job that is new; return its row in any case."""
        row = self._row_of.setdefault(job_id, len(self.ids))
        if row == len(self.ids):
            self.ids.append(job_id)
        return row

    def row(self, job_id: str) -> int:
        """Return the row of a job. Raises KeyError for one that is not known."""
        return self._row_of[job_id]

    def rows(self, names: Sequence[str]) -> Ints:
        """Return the rows of these jobs, (job,); -1 for nobody. Raises KeyError for one that is not known."""
        if isinstance(names, JobIdList) and self._agrees(names.table):
            return names.rows
        return np.array([self._row_of[name] if name else -1 for name in names], dtype=np.int64)

    def names(self, rows: Ints) -> JobIdList:
        """Return these jobs as others read them."""
        return JobIdList(rows, self.ids)

    def _agrees(self, table: Sequence[str]) -> bool:
        """Say whether rows of `table` are rows of this one. Only lists grow, and are worth comparing."""
        if table is not self._table:
            if not isinstance(table, list):
                return False
            self._table, self._agreed, self._differs = table, 0, False
        end = len(table)
        if end == self._agreed or self._differs:
            return not self._differs
        end = min(end, len(self.ids))
        self._differs = table[self._agreed : end] != self.ids[self._agreed : end]
        self._agreed = end
        return not self._differs
