"""What jobs waited for: each second of waiting has one cause, the one that the policy named last.

A policy that tells its causes apart begins the text of `Answer.why` with `fair share` or `fragmentation`; what it says
nothing of, and the time until its first answer, is `other`.
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

CAUSES = ("fair_share", "fragmentation", "other")
COLUMNS = tuple(f"wait_{cause}_s" for cause in CAUSES)
OTHER = len(CAUSES) - 1


class _Lives(GrowingColumns):
    seconds: Floats  # (job, cause)
    since: Floats  # how far the wait is written down
    cause: Ints
    told: Ints  # scratch: what an answer says, `OTHER` between answers
    waits: Bools
    alive: Bools
    epoch: Ints  # of the run that is going on; -1 = it waits

    def __init__(self) -> None:
        super().__init__(
            {
                "seconds": (np.float64, 0.0, len(CAUSES)),
                "since": (np.float64, 0.0),
                "cause": (np.int64, OTHER),
                "told": (np.int64, OTHER),
                "waits": (np.bool_, True),
                "alive": (np.bool_, True),
                "epoch": (np.int64, -1),
            }
        )


class WaitCauses:
    """An observer that splits the waits of every job. Rows are jobs in order of submission.

    An answer costs as much as there are jobs that wait, however many have come and gone.
    """

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._register = RowIndex()
        self._lives = _Lives()
        self._waiting: set[int] = set()
        self._active: list[int] = []  # ascending
        self._paused: set[int] = set()
        self._asked: list[int] = []

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
                    self._fail(self._register.row(name), at, epoch, over=name in given_up(decisions))
                case JobCancelled(name):
                    self._leave(self._register.row(name), at)
                case JobPaused(name):
                    self._pause(self._register.row(name), at)
                case JobResumed(name):
                    self._resume(self._register.row(name), at)
                case Answered(answer=answer):
                    self._learn(answer, at)
        for decision in decisions:
            match decision:
                case Ask():
                    self._asked = self._active.copy()
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
        rows = self._rows_waiting()
        lives = self._lives
        self._write(rows, np.maximum(end_s, lives.since[rows]))
        return lives.seconds[: len(lives)].copy()

    def columns(self, end_s: float) -> dict[str, Floats]:
        """Return the same as columns of jobs.csv."""
        return dict(zip(COLUMNS, self.seconds(end_s).T, strict=True))

    def _submit(self, job: Job, at: float) -> None:
        row = self._lives.add()
        self._register.add(job.job_id)
        self.jobs.append(job)
        self._lives.since[row] = at
        self._waiting.add(row)
        self._active.append(row)

    def _learn(self, answer: Answer, at: float) -> None:
        """The policy says anew why jobs wait; who waits for the same as before needs no writing down."""
        if not self._waiting and not answer.why:
            return
        lives, waiting = self._lives, self._rows_waiting()
        named = np.array([self._asked[m] for m in answer.why], dtype=np.int64)
        lives.told[named] = _causes_of(answer.why)
        told = lives.told[waiting]
        changed = told != lives.cause[waiting]
        self._write(waiting[changed], np.full(int(changed.sum()), at))
        lives.cause[waiting] = told
        lives.cause[named], lives.told[named] = lives.told[named], OTHER

    def _rows_waiting(self) -> Ints:
        return np.fromiter(self._waiting, np.int64, len(self._waiting))

    def _write(self, rows: Ints, at: Floats) -> None:
        lives = self._lives
        lives.seconds[rows, lives.cause[rows]] += at - lives.since[rows]
        lives.since[rows] = at

    def _write_one(self, row: int, at: float) -> None:
        lives = self._lives
        lives.seconds[row, lives.cause[row]] += at - lives.since[row]
        lives.since[row] = at

    def _sit(self, rows: Sequence[int], epochs: Sequence[int], at: float) -> None:
        lives = self._lives
        for row, epoch in zip(rows, epochs, strict=True):
            if row >= 0:
                self._write_one(row, at)
                lives.waits[row], lives.epoch[row] = False, epoch
                self._waiting.discard(row)

    def _wait(self, row: int, at: float) -> None:
        lives = self._lives
        if lives.alive[row] and not lives.waits[row]:
            lives.waits[row], lives.since[row], lives.epoch[row] = True, at, -1
            self._waiting.add(row)

    def _fail(self, row: int, at: float, epoch: int, *, over: bool) -> None:
        lives = self._lives
        if epoch == lives.epoch[row] and not lives.waits[row]:
            lives.cause[row] = OTHER
            if over:
                self._leave(row, at)
            else:
                self._wait(row, at)

    def _pause(self, row: int, at: float) -> None:
        """A job rests, which is no waiting for the cluster."""
        if self._lives.alive[row]:
            self._leave(row, at)
            self._lives.epoch[row] = -1
            self._paused.add(row)

    def _resume(self, row: int, at: float) -> None:
        """A job that rested waits again, for a reason that is not known yet."""
        if row in self._paused:
            self._paused.remove(row)
            self._lives.alive[row], self._lives.cause[row] = True, OTHER
            insort(self._active, row)
            self._wait(row, at)

    def _leave(self, row: int, at: float, epoch: int | None = None) -> None:
        """A job is over; with `epoch` only if that is the run that is going on."""
        self._paused.discard(row)
        lives = self._lives
        if not lives.alive[row] or (epoch is not None and epoch != lives.epoch[row]):
            return
        if lives.waits[row]:
            self._write_one(row, at)
        lives.alive[row] = lives.waits[row] = False
        self._waiting.discard(row)
        del self._active[bisect_left(self._active, row)]


def _causes_of(why: Mapping[int, str]) -> list[int]:
    """Return the cause that each text names; few texts are told of many jobs."""
    cause_by_text = {text: _cause_of(text) for text in set(why.values())}
    return [cause_by_text[text] for text in why.values()]


def _cause_of(text: str) -> int:
    for cause, name in enumerate(CAUSES[:OTHER]):
        if text.startswith(name.replace("_", " ")):
            return cause
    return OTHER
