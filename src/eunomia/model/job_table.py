"""Jobs as columns of their fields. A million `Job` objects take 350 MiB and seconds to make; columns take a third."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain, compress
from typing import Any, overload

import numpy as np

from eunomia.model.arrays import Array
from eunomia.model.job import Job

_PART = 1 << 12  # jobs that are made at a time
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Job)}


class _JobSequence(Sequence[Job]):
    """A sequence of jobs that is compared by its jobs."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _JobSequence | tuple | list):
            return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]


class JobTable(_JobSequence):
    """Jobs whose fields are columns: a `Job` is made each time that one is read, and none is kept.

    `columns` maps a field of `Job` to an array or a tuple, (job,); a field without a column has its default. A part
    of a table shares its columns. Raises InvalidJob for the first job that could never run.
    """

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: Mapping[str, Array | tuple[Any, ...]]):
        self._columns, self._rows = dict(columns), range(len(columns["total_steps"]))
        steps, weight = self.array("total_steps"), self.array("weight")
        wrong = (self.array("scale_factor") < 1) | ~((steps > 0) & (steps < np.inf))
        wrong |= ~((weight > 0) & (weight < np.inf))
        for name in ("cpus", "memory_gib"):
            wrong |= ~((self.array(name) >= 0) & (self.array(name) < np.inf))
        if any(self.values("other_shapes")):
            wrong |= np.array([min(shapes, default=1) < 1 for shapes in self.values("other_shapes")], dtype=bool)
        for row in np.flatnonzero(wrong)[:1].tolist():
            self[row]  # which cannot be made

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Job]: ...
    def __getitem__(self, at: int | slice) -> Job | Sequence[Job]:
        if isinstance(at, slice):
            rows = self._rows[at]
            return self._part(rows) if rows.step == 1 else [self[row] for row in range(len(self))[at]]
        row = self._rows[at]
        columns = self._columns.items()
        return Job(**{name: each.item(row) if isinstance(each, np.ndarray) else each[row] for name, each in columns})

    def __iter__(self) -> Iterator[Job]:
        names = tuple(self._columns)
        for begin in range(0, len(self), _PART):
            part = self._part(self._rows[begin : begin + _PART])
            for values in zip(*(part.values(name) for name in names), strict=True):
                yield Job(**dict(zip(names, values, strict=True)))

    def array(self, name: str) -> Array:
        """Return a field of each job, (job,), which is a number."""
        column = self._columns.get(name)
        if column is None:
            return np.broadcast_to(_DEFAULTS[name], len(self))
        return np.asarray(column[self._rows.start : self._rows.stop])

    def values(self, name: str) -> Sequence[Any]:
        """Return a field of each job, (job,), as Python objects."""
        column = self._columns.get(name)
        if column is None:
            return (_DEFAULTS[name],) * len(self)
        part = column[self._rows.start : self._rows.stop]
        return part.tolist() if isinstance(part, np.ndarray) else part

    def joined(self, after: Sequence[Job]) -> JobTable | None:
        """Return these jobs and those of `after` as one table, if `after` is the part that follows; else None."""
        if isinstance(after, JobTable) and after._columns is self._columns and after._rows.start == self._rows.stop:
            return self._part(range(self._rows.start, after._rows.stop))
        return None

    def _part(self, rows: range) -> JobTable:
        table = JobTable.__new__(JobTable)
        table._columns, table._rows = self._columns, rows
        return table


class SubmittedJobs(_JobSequence):
    """A growing sequence of jobs: objects, and parts of tables, which stay columns."""

    __slots__ = ("_first", "_length", "_parts")

    def __init__(self) -> None:
        self._parts: list[list[Job] | JobTable] = []
        self._first: list[int] = []  # of each part, the place of its first job
        self._length = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> SubmittedJobs:
        """Copy the sequence; jobs never change and are shared."""
        made = SubmittedJobs()
        made._parts = [part if isinstance(part, JobTable) else part.copy() for part in self._parts]
        made._first, made._length = self._first.copy(), self._length
        return made

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> list[Job]: ...
    def __getitem__(self, at: int | slice) -> Job | list[Job]:
        if isinstance(at, slice):
            return [self[row] for row in range(self._length)[at]]
        row = range(self._length)[at]
        place = bisect_right(self._first, row) - 1
        return self._parts[place][row - self._first[place]]

    def __iter__(self) -> Iterator[Job]:
        return chain.from_iterable(self._parts)

    def append(self, job: Job) -> None:
        """Add a job."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, list):
            last.append(job)
        else:
            self._add_part([job])
        self._length += 1

    def extend(self, jobs: Sequence[Job]) -> None:
        """Add many jobs."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, list) and not isinstance(jobs, JobTable):
            last += jobs
        elif isinstance(last, JobTable) and (both := last.joined(jobs)):
            self._parts[-1] = both
        elif jobs:
            self._add_part(jobs if isinstance(jobs, JobTable) else list(jobs))
        self._length += len(jobs)

    def keep(self, stays: Sequence[bool]) -> None:
        """Drop the jobs that do not stay, (job,)."""
        kept = list(compress(self, stays))
        self._parts, self._first, self._length = [], [], 0
        self.extend(kept)

    def array(self, name: str) -> Array:
        """Return a field of each job, (job,), which is a number."""
        arrays = [job_array(part, name) for part in self._parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays) if arrays else np.empty(0)

    def values(self, name: str) -> Sequence[Any]:
        """Return a field of each job, (job,), as Python objects."""
        parts = [job_values(part, name) for part in self._parts]
        return parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))

    def _add_part(self, part: list[Job] | JobTable) -> None:
        self._first.append(self._length)
        self._parts.append(part)


def job_array(jobs: Sequence[Job], name: str, dtype: type | None = None) -> Array:
    """Return a field of each job, (job,), which is a number; it may be a column of a table, which must not change."""
    if isinstance(jobs, JobTable | SubmittedJobs):
        return np.asarray(jobs.array(name), dtype=dtype)
    return np.array([getattr(job, name) for job in jobs], dtype=dtype)


def job_values(jobs: Sequence[Job], name: str) -> Sequence[Any]:
    """Return a field of each job, (job,), as Python objects."""
    return jobs.values(name) if isinstance(jobs, JobTable | SubmittedJobs) else [getattr(job, name) for job in jobs]


def in_order(jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs by submission, then sequence, then id."""
    at, sequence = job_array(jobs, "submitted"), job_array(jobs, "sequence")
    earlier, same = at[:-1] < at[1:], at[:-1] == at[1:]
    if isinstance(jobs, JobTable) and (earlier | (same & (sequence[:-1] < sequence[1:]))).all():
        return jobs
    return sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id))
