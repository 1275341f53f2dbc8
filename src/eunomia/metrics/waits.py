"""What jobs waited for: each second of waiting has one cause, the one that the policy named last.

A policy that tells its causes apart begins the text of `Answer.why` with `fair share` or `fragmentation`; what it says
nothing of, and the time until its first answer, is `other`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from eunomia.model.answers import Answer
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Ask, Decision, Refuse, Start, Starts, Stop
from eunomia.model.events import Answered, JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.register import Register

CAUSES = ("fair_share", "fragmentation", "other")
COLUMNS = tuple(f"wait_{cause}_s" for cause in CAUSES)
OTHER = len(CAUSES) - 1


class Waits:
    """An observer that splits the waits of every job. Rows are jobs in order of submission."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._register = Register()
        self._seconds: list[list[float]] = []  # (job, cause)
        self._since: list[float] = []  # how far the wait is written down
        self._cause: list[int] = []
        self._waits: list[bool] = []
        self._alive: list[bool] = []
        self._epoch: list[int] = []  # of the run that is going on; -1 = it waits
        self._failures: list[int] = []
        self._asked: Ints = np.empty(0, dtype=np.int64)

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note who began to wait, who stopped waiting, and for what the others wait."""
        at = moment.at
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    self._submit(job, at)
                case JobFinished(name, epoch):
                    self._leave(self._register.row(name), at, epoch)
                case JobFailed(name, epoch):
                    self._fail(self._register.row(name), at, epoch)
                case JobCancelled(name):
                    self._leave(self._register.row(name), at)
                case Answered(answer=answer):
                    self._learn(answer, at)
        for decision in decisions:
            match decision:
                case Ask():
                    self._asked = np.flatnonzero(self._alive)
                case Starts(jobs=jobs, epochs=epochs):
                    self._sit(self._register.rows(jobs).tolist(), epochs.tolist(), at)
                    self._sit(self._register.rows(decision.partners).tolist(), decision.partner_epochs.tolist(), at)
                case Start():
                    self._sit([self._register.row(decision.job_id)], [decision.epoch], at)
                case Stop(job_ids=names):
                    for row in self._register.rows(names).tolist():
                        self._wait(row, at)
                case Refuse(name):
                    self._leave(self._register.row(name), at)

    def seconds(self, end_s: float) -> Floats:
        """Return the seconds of waiting, (job, cause), of a run that ended then."""
        for row in self._waiting():
            self._write(row, max(end_s, self._since[row]))
        return np.array(self._seconds, dtype=float).reshape(-1, len(CAUSES))

    def columns(self, end_s: float) -> dict[str, Floats]:
        """Return the same as columns of jobs.csv."""
        return dict(zip(COLUMNS, self.seconds(end_s).T, strict=True))

    def _submit(self, job: Job, at: float) -> None:
        self._register.add(job.job_id)
        self.jobs.append(job)
        self._seconds.append([0.0] * len(CAUSES))
        self._since.append(at)
        self._cause.append(OTHER)
        self._waits.append(True)
        self._alive.append(True)
        self._epoch.append(-1)
        self._failures.append(0)

    def _learn(self, answer: Answer, at: float) -> None:
        """The policy says anew why jobs wait."""
        for row in self._waiting():
            self._write(row, at)
            self._cause[row] = OTHER
        for m, text in answer.why.items():
            self._cause[int(self._asked[m])] = _cause_of(text)

    def _waiting(self) -> Iterable[int]:
        return np.flatnonzero(np.array(self._waits, dtype=bool)).tolist()

    def _write(self, row: int, at: float) -> None:
        self._seconds[row][self._cause[row]] += at - self._since[row]
        self._since[row] = at

    def _sit(self, rows: Sequence[int], epochs: Sequence[int], at: float) -> None:
        for row, epoch in zip(rows, epochs, strict=True):
            if row >= 0:
                self._write(row, at)
                self._waits[row], self._epoch[row] = False, epoch

    def _wait(self, row: int, at: float) -> None:
        if self._alive[row] and not self._waits[row]:
            self._waits[row], self._since[row], self._epoch[row] = True, at, -1

    def _fail(self, row: int, at: float, epoch: int) -> None:
        if epoch == self._epoch[row] and not self._waits[row]:
            self._failures[row] += 1
            self._cause[row] = OTHER
            if self._failures[row] > self.jobs[row].retries:
                self._leave(row, at)
            else:
                self._wait(row, at)

    def _leave(self, row: int, at: float, epoch: int | None = None) -> None:
        """A job is over; with `epoch` only if that is the run that is going on."""
        if not self._alive[row] or (epoch is not None and epoch != self._epoch[row]):
            return
        if self._waits[row]:
            self._write(row, at)
        self._alive[row] = self._waits[row] = False


def _cause_of(text: str) -> int:
    for cause, name in enumerate(CAUSES[:OTHER]):
        if text.startswith(name.replace("_", " ")):
            return cause
    return OTHER
