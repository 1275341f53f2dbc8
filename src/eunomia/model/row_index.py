"""Maps the core's job rows to an observer's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from eunomia.model.arrays import Ints
from eunomia.model.job_ids import JobIdList


class RowIndex:
    """The ids of jobs by row, in order of submission.

    Rows of a `JobIdList` whose table has the same order are used as they are: each id is compared once. The ids of
    another table are looked up one by one. Rows by id are entered when the first id is looked up, which most
    simulations never do with most indexes.
    """

    __slots__ = ("_agreed", "_differs", "_row_of", "_table", "ids")

    def __init__(self, ids: Iterable[str] = ()):
        self.ids: list[str] = list(ids)
        self._row_of: dict[str, int] = {}  # of the first ids; see `by_id`
        self._table: Sequence[str] = ()  # the table compared last, and the length up to which it agrees
        self._agreed, self._differs = 0, False

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def by_id(self) -> Mapping[str, int]:
        """Return the row of each job by its id."""
        known = self._row_of
        first, end = len(known), len(self.ids)
        if first < end:
            known.update(zip(self.ids[first:end], range(first, end), strict=True))
        return known

    def add(self, job_id: str) -> int:
        """Return the row of a job, a new one for a new job."""
        row = self.by_id.get(job_id)
        if row is None:
            row = len(self.ids)
            self.ids.append(job_id)
        return row

    def add_all(self, job_ids: Sequence[str]) -> None:
        """Give these new jobs the next rows."""
        self.ids += job_ids

    def row(self, job_id: str) -> int:
        """Return the row of a job. Raises KeyError for an unknown id."""
        return self.by_id[job_id]

    def rows(self, names: Sequence[str]) -> Ints:
        """Return the rows of these jobs, (job,); -1 for an empty id. Raises KeyError for an unknown id."""
        if isinstance(names, JobIdList) and self.agrees(names.table):
            return names.rows
        row_of = self.by_id
        return np.array([row_of[name] if name else -1 for name in names], dtype=np.int64)

    def names(self, rows: Ints) -> JobIdList:
        """Return the ids of these rows."""
        return JobIdList(rows, self.ids)

    def agrees(self, table: Sequence[str]) -> bool:
        """Return whether rows of `table`, a growing list, are rows of this index."""
        if table is self.ids:
            return True
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
