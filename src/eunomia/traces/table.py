"""A trace in memory: the jobs of the past as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Trace:
    """The jobs of a trace, one entry per job in every column, in order of (submission, row in the file).

    Times are seconds as in the file. The work of a job is its `total_steps` or its `duration_s`; the other is nan.
    """

    source: str  # file or generator, for messages
    job_id: tuple[str, ...]
    submitted_s: Floats
    scale_factor: Ints  # accelerators
    job_type: tuple[str, ...] | None = None  # None: the trace names none
    total_steps: Floats  # steps over all accelerators of the gang; nan = not given
    duration_s: Floats  # on the reference type; nan = not given
    tenant: tuple[str, ...]  # "" = none
    app: tuple[str, ...]  # "" = none
    weight: Floats
    deadline_s: Floats  # counted like submitted_s; inf = none
    cpus: Floats  # of the whole gang; 0 = none
    memory_gib: Floats  # of the whole gang; 0 = none
    status: tuple[str, ...]  # finished, failed, cancelled, or "" = unknown
    retries: Ints
    command: tuple[tuple[str, ...], ...]  # argv; () = none
    checkpoint_dir: tuple[str, ...]  # "" = none
    interruptible: Bools  # it can save and go on from there; else it is not preempted
    ran_on: tuple[str, ...]  # accelerator type that it had in the schedule as it was; "" = unknown
    started_s: Floats  # its start in that schedule, counted like submitted_s; nan = unknown
    ended_s: Floats  # its end in that schedule, counted like submitted_s; nan = when it had run its duration
    pauses: tuple[tuple[tuple[float, float], ...], ...]  # seconds from its start there in which it held nothing
    eligible_s: Floats  # when it could start at the earliest, counted like submitted_s; nan = at its submission
    row: Ints  # line of the file, the header being line 1
    began: datetime | None = None  # local date and time at 0 s, if the trace has it
    unread: tuple[str, ...] = ()  # columns of the file that are not here
    partly: tuple[str, ...] = ()  # parts of the other columns that are not here, in phrases
    notes: tuple[str, ...] = ()  # counts and estimates of the reader, in sentences

    def __post_init__(self) -> None:
        for name in COLUMNS:
            column = getattr(self, name)
            if column is not None and len(column) != len(self.job_id):
                raise ValueError(f"{self.source}: column {name} has {len(column)} entries for {len(self)} jobs")

    def __len__(self) -> int:
        return len(self.job_id)

    @property
    def may_start_s(self) -> Floats:
        """When each job could start at the earliest, (job,), counted like `submitted_s`."""
        return np.where(np.isnan(self.eligible_s), self.submitted_s, self.eligible_s)

    def __repr__(self) -> str:
        return f"<Trace of {len(self):,} jobs from {self.source}>"

    def frame(self) -> pa.Table:
        """Return the jobs as an Arrow table, one row each, which pandas, polars and duckdb read."""
        import pyarrow as pa  # 36 MiB, which processes that read no table do without

        columns = {name: getattr(self, name) for name in COLUMNS}
        return pa.table({name: pa.array(list(column)) for name, column in columns.items() if column is not None})

    def submitted_at(self, submitted_s: Floats) -> Trace:
        """Return the jobs with these submissions, (job,); all their other times keep the distance to them."""
        moved = {name: submitted_s + (getattr(self, name) - self.submitted_s) for name in TIMES}
        return replace(self, submitted_s=submitted_s, **moved)

    def take(self, keep: Ints) -> Trace:
        """Return the jobs at the positions `keep`, in that order, with the notes of the whole trace."""
        columns: dict[str, Any] = {name: _take(getattr(self, name), keep) for name in COLUMNS}
        return replace(self, **columns)


TIMES = ("deadline_s", "started_s", "ended_s", "eligible_s")  # counted like submitted_s
COLUMNS = tuple(f.name for f in fields(Trace) if f.name not in ("source", "began", "unread", "partly", "notes"))


def _take(column: np.ndarray | Sequence[object] | None, keep: Ints) -> object:
    if column is None or isinstance(column, np.ndarray):
        return column if column is None else column[keep]
    return tuple(map(column.__getitem__, keep.tolist()))


def trace_of(source: str, job_id: Sequence[str], submitted_s: Floats, scale_factor: Ints, **known: Any) -> Trace:
    """Return a trace in which every column that is not `known` has its value for "none", stored once."""
    jobs = len(job_id)
    blank = ("",) * jobs
    nan, zero = np.broadcast_to(np.nan, jobs), np.broadcast_to(0.0, jobs)
    defaults: dict[str, Any] = {
        "total_steps": nan,
        "duration_s": nan,
        "tenant": blank,
        "app": blank,
        "weight": np.broadcast_to(1.0, jobs),
        "deadline_s": np.broadcast_to(np.inf, jobs),
        "cpus": zero,
        "memory_gib": zero,
        "status": blank,
        "retries": np.broadcast_to(np.int64(0), jobs),
        "command": ((),) * jobs,
        "checkpoint_dir": blank,
        "interruptible": np.broadcast_to(np.True_, jobs),
        "ran_on": blank,
        "started_s": nan,
        "ended_s": nan,
        "pauses": ((),) * jobs,
        "eligible_s": nan,
        "row": np.arange(1, jobs + 1),
    }
    columns = {**defaults, **known}
    return Trace(source=source, job_id=tuple(job_id), submitted_s=submitted_s, scale_factor=scale_factor, **columns)


def build_trace(
    sheet: InputTable, job_id: Sequence[str], submitted_s: Floats, scale_factor: Ints, **known: Any
) -> Trace:
    """Return the trace of a table whose columns were read, by submission, with its lines and unread columns.

    Raises InvalidInput with everything that is wrong with the table.
    """
    known = {"row": sheet.line, "unread": sheet.unread(), **known}
    trace = trace_of(sheet.file, job_id, submitted_s, scale_factor, **known)
    sheet.raise_if_any()
    return in_order(trace)


def in_order(trace: Trace) -> Trace:
    """Return the trace by submission; jobs submitted together keep the order of the file."""
    if bool((np.diff(trace.submitted_s) >= 0).all()):
        return trace
    return trace.take(np.argsort(trace.submitted_s, kind="stable"))
