"""Waiting time of jobs by cause: each second of waiting counts for the cause that the policy named last.

A policy names a cause by a reason of `Answer.why` whose kind is `quota` or `fragmentation`. Other reasons, jobs without
one, and the time until the first answer count as `other`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.model.answers import Answer
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.decisions import Ask, Decision, Refuse, Start, Starts, Stop, given_up
from eunomia.model.events import (
    Answered,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
)
from eunomia.model.job import Job
from eunomia.model.row_index import RowIndex
from eunomia.model.wait_reason import Reason, WaitReasons

CAUSES = ("fair_share", "fragmentation", "other")
COLUMNS = tuple(f"wait_{cause}_s" for cause in CAUSES)
OTHER = len(CAUSES) - 1
_BY_KIND = {"quota": 0, "fragmentation": 1}


class _Jobs(GrowingColumns):
    seconds: Floats  # (job, cause)
    since: Floats  # time up to which the wait is counted
    cause: Ints
    named: Ints  # scratch: cause named by the answer at hand, `OTHER` between answers
    waits: Bools
    present: Bools  # waiting or running
    epoch: Ints  # of the present run; -1 = it waits

    def __init__(self) -> None:
        super().__init__(
            {
                "seconds": (np.float64, 0.0, len(CAUSES)),
                "since": (np.float64, 0.0),
                "cause": (np.int64, OTHER),
                "named": (np.int64, OTHER),
                "waits": (np.bool_, True),
                "present": (np.bool_, True),
                "epoch": (np.int64, -1),
            }
        )


class WaitCauses:
    """An observer that splits the waits of every job by cause. Rows are jobs in order of submission.

    An answer costs time in proportion to the jobs that wait, not to all jobs so far.
    """

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._rows = RowIndex()
        self._columns = _Jobs()
        self._waiting: set[int] = set()
        self._active: list[int] = []  # ascending
        self._paused: set[int] = set()
        self._asked: list[int] = []

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Record which jobs begin and cease to wait, and the causes that an answer names."""
        at = moment.at
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    self._submit(job, at)
                case JobFinished(name, epoch):
                    self._leave(self._rows.row(name), at, epoch)
                case JobFailed(name, epoch):
                    self._fail(self._rows.row(name), at, epoch, over=name in given_up(decisions))
                case JobCancelled(name):
                    self._leave(self._rows.row(name), at)
                case JobPaused(name):
                    self._pause(self._rows.row(name), at)
                case JobResumed(name):
                    self._resume(self._rows.row(name), at)
                case Answered(answer=answer):
                    self._apply_answer(answer, at)
        for decision in decisions:
            match decision:
                case Ask():
                    self._asked = self._active.copy()
                case Starts(jobs=jobs, epochs=epochs):
                    self._start(self._rows.rows(jobs).tolist(), epochs.tolist(), at)
                    self._start(self._rows.rows(decision.partners).tolist(), decision.partner_epochs.tolist(), at)
                case Start():
                    self._start([self._rows.row(decision.job_id)], [decision.epoch], at)
                case Stop(job_ids=names):
                    for row in self._rows.rows(names).tolist():
                        self._wait(row, at)
                case Refuse(name):
                    self._leave(self._rows.row(name), at)

    def seconds(self, end_s: float) -> Floats:
        """Return the seconds of waiting, (job, cause), of a run that ended then."""
        rows = self._waiting_rows()
        jobs = self._columns
        self._advance(rows, np.maximum(end_s, jobs.since[rows]))
        return jobs.seconds[: len(jobs)].copy()

    def columns(self, end_s: float) -> dict[str, Floats]:
        """Return the same as columns of jobs.csv."""
        return dict(zip(COLUMNS, self.seconds(end_s).T, strict=True))

    def _submit(self, job: Job, at: float) -> None:
        row = self._columns.add()
        self._rows.add(job.job_id)
        self.jobs.append(job)
        self._columns.since[row] = at
        self._waiting.add(row)
        self._active.append(row)

    def _apply_answer(self, answer: Answer, at: float) -> None:
        """Set the causes that an answer names; only jobs whose cause changes are counted up to now."""
        if not self._waiting and not answer.why:
            return
        jobs, waiting = self._columns, self._waiting_rows()
        rows, causes = _causes_of(answer.why)
        named = np.array(self._asked, dtype=np.int64)[rows]
        jobs.named[named] = causes
        cause = jobs.named[waiting]
        changed = cause != jobs.cause[waiting]
        self._advance(waiting[changed], at)
        jobs.cause[waiting] = cause
        jobs.cause[named], jobs.named[named] = jobs.named[named], OTHER

    def _waiting_rows(self) -> Ints:
        return np.fromiter(self._waiting, np.int64, len(self._waiting))

    def _advance(self, rows: Ints | int, at: Floats | float) -> None:
        """Count the waits of different rows up to `at`."""
        jobs = self._columns
        jobs.seconds[rows, jobs.cause[rows]] += at - jobs.since[rows]
        jobs.since[rows] = at

    def _start(self, rows: Sequence[int], epochs: Sequence[int], at: float) -> None:
        jobs = self._columns
        for row, epoch in zip(rows, epochs, strict=True):
            if row >= 0:
                self._advance(row, at)
                jobs.waits[row], jobs.epoch[row] = False, epoch
                self._waiting.discard(row)

    def _wait(self, row: int, at: float) -> None:
        jobs = self._columns
        if jobs.present[row] and not jobs.waits[row]:
            jobs.waits[row], jobs.since[row], jobs.epoch[row] = True, at, -1
            self._waiting.add(row)

    def _fail(self, row: int, at: float, epoch: int, *, over: bool) -> None:
        jobs = self._columns
        if epoch == jobs.epoch[row] and not jobs.waits[row]:
            jobs.cause[row] = OTHER
            if over:
                self._leave(row, at)
            else:
                self._wait(row, at)

    def _pause(self, row: int, at: float) -> None:
        """Pause a job: a paused job does not wait for the cluster."""
        if self._columns.present[row]:
            self._leave(row, at)
            self._columns.epoch[row] = -1
            self._paused.add(row)

    def _resume(self, row: int, at: float) -> None:
        """Resume a paused job: it waits again, for an unknown cause."""
        if row in self._paused:
            self._paused.remove(row)
            self._columns.present[row], self._columns.cause[row] = True, OTHER
            insort(self._active, row)
            self._wait(row, at)

    def _leave(self, row: int, at: float, epoch: int | None = None) -> None:
        """Remove a job from the present ones; with `epoch` only if that is its present run."""
        self._paused.discard(row)
        jobs = self._columns
        if not jobs.present[row] or (epoch is not None and epoch != jobs.epoch[row]):
            return
        if jobs.waits[row]:
            self._advance(row, at)
        jobs.present[row] = jobs.waits[row] = False
        self._waiting.discard(row)
        del self._active[bisect_left(self._active, row)]


def _causes_of(why: Mapping[int, Reason | str]) -> tuple[Ints, Ints]:
    """Return the jobs that have a reason, and the cause of each; many jobs share few reasons."""
    if isinstance(why, WaitReasons):
        rows, causes = np.flatnonzero(why.code), np.array([_cause_of(reason) for reason in why.reasons])
        return rows, causes[why.code[rows] - 1]
    by_reason = {reason: _cause_of(reason) for reason in set(why.values())}
    return np.array(list(why), dtype=np.int64), np.array([by_reason[reason] for reason in why.values()], dtype=np.int64)


def _cause_of(said: Reason | str) -> int:
    return _BY_KIND.get(Reason.of(said).kind, OTHER)
