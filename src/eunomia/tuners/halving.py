"""Successive halving, Hyperband and ASHA: trials compete at rungs, and one in η goes on.

With n trials of R steps there are s = ⌊log_η n⌋ rungs, at R η^{i−s} steps, i = 0 … s − 1; of ⌊n η^{−i}⌋ trials that may
stand on rung i the best ⌊n η^{−i−1}⌋ go on, and those run to R. Nobody is paused: a trial runs on until it is known
that enough others are better at a rung it has passed, which ends with the same survivors. ASHA does not wait: a trial
goes on if it is among the best 1/η of those that have reached the rung so far.

K. Jamieson and A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016;
L. Li et al., "Hyperband", JMLR 2018; L. Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.model.events import JobUpdated
from eunomia.model.job import Job
from eunomia.tuners.trials import Trials
from eunomia.tuners.tuner import NOTHING, Wish, Wishes

_ROUNDING = 1e-9  # of a logarithm


def rungs_of(trials: int, eta: int) -> int:
    """Return how many rungs there are below the top."""
    return math.floor(math.log(trials, eta) + _ROUNDING) if trials > 1 else 0


def brackets_of(trials: int, eta: int) -> list[tuple[int, int]]:
    """Return Hyperband's brackets (trials, rungs) of so many trials, the most halving first.

    The brackets of a search with R = η^s have ⌈(s + 1) / (k + 1) η^k⌉ trials for k = s … 0; the trials that there are
    are dealt out in those proportions.
    """
    most = rungs_of(trials, eta)
    wanted = [-(-(most + 1) * eta**k // (k + 1)) for k in range(most, -1, -1)]
    ends = [round(trials * sum(wanted[: i + 1]) / sum(wanted)) for i in range(len(wanted))]
    sizes = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    return [(size, min(k, rungs_of(size, eta))) for size, k in zip(sizes, range(most, -1, -1), strict=True) if size]


class Bracket:
    """Trials that compete with each other."""

    def __init__(self, trials: Sequence[Job], rungs: int, eta: int, *, waits: bool):
        self._eta, self._rungs, self._waits = eta, rungs, waits
        self._jobs = {job.job_id: job for job in trials}
        self._rung = dict.fromkeys(self._jobs, 0)  # the next one that it comes to
        self._board: list[dict[str, float]] = [{} for _ in range(rungs)]  # losses at each rung
        self._out: set[str] = set()

    def steps(self, job_id: str) -> float:
        """Return the steps at which the trial comes to its next rung; inf = there is none below its end."""
        rung = self._rung[job_id]
        total = self._jobs[job_id].total_steps
        return total * float(self._eta) ** (rung - self._rungs) if rung < self._rungs else math.inf

    def expected(self, job_id: str) -> float:
        """Return the steps that a trial is expected to do in all, if one in η goes on at each rung to come."""
        total, first = self._jobs[job_id].total_steps, self._rung[job_id]
        marks = [total * float(self._eta) ** (rung - self._rungs) for rung in range(self._rungs + 1)]
        gone = marks[first - 1] if first else 0.0
        steps = gone
        for i, mark in enumerate(marks[first:]):
            steps += (mark - gone) * float(self._eta) ** -i
            gone = mark
        return steps

    def report(self, job_id: str, loss: float) -> list[str]:
        """Note a trial's loss at its next rung, inf = it will never come to it; return who is out of the race now."""
        rung = self._rung[job_id]
        if rung == self._rungs:
            return []
        self._board[rung][job_id] = loss
        self._rung[job_id] += 1
        out = self._beaten() if self._waits else self._late(job_id, self._board[rung])
        fresh = [name for name in out if name not in self._out]
        self._out.update(fresh)
        return fresh

    def _beaten(self) -> list[str]:
        """Return all who are surely not among the best of their rung, rung by rung as far as it is known who stands."""
        out: list[str] = []
        standing = list(self._jobs)
        for board in self._board:
            ranked = sorted((name for name in standing if name in board), key=lambda name: (board[name], name))
            keep = max(len(standing) // self._eta, 1)
            out += ranked[keep:]
            if len(ranked) < len(standing):
                break
            standing = ranked[:keep]
        return out

    def _late(self, job_id: str, board: dict[str, float]) -> list[str]:
        """Return the trial if it is not among the best of those who came so far."""
        better = sum((loss, name) < (board[job_id], job_id) for name, loss in board.items())
        return [job_id] if better >= max(len(board) // self._eta, 1) else []


class Halving(Trials):
    """Successive halving; with several brackets Hyperband, and where nobody waits ASHA."""

    def __init__(self, eta: int, *, brackets: bool = False, waits: bool = True):
        super().__init__()
        self._eta, self._many, self._waits = eta, brackets, waits
        self._bracket: dict[str, Bracket] = {}

    def begin(self, app: str, trials: Sequence[Job]) -> Wishes:
        """Deal the trials to brackets and watch them all at their first rungs."""
        super().begin(app, trials)
        count = len(trials)
        dealt = brackets_of(count, self._eta) if self._many else [(count, rungs_of(count, self._eta))]
        first = 0
        for size, rungs in dealt:
            mine = trials[first : first + size]
            bracket = Bracket(mine, rungs, self._eta, waits=self._waits)
            self._bracket |= {job.job_id: bracket for job in mine}
            first += size
        steps = {name: bracket.steps(name) for name, bracket in self._bracket.items()}
        return Wishes({name: mark for name, mark in steps.items() if mark < math.inf})

    def submitted(self, job: Job) -> Wishes:
        """Say how much of its steps a trial is expected to do."""
        steps = self._bracket[job.job_id].expected(job.job_id)
        return Wishes(events=(JobUpdated(job.job_id, total_steps=steps),) if steps < job.total_steps else ())

    def measured(self, job_id: str, steps: float, loss: float) -> Wishes:
        """Judge those who stand on the rung."""
        if job_id not in self.alive:
            return NOTHING
        bracket = self._bracket[job_id]
        events: list[Wish] = [*self.drop(bracket.report(job_id, loss)), *self.finish()]
        if job_id not in self.alive:
            return Wishes(events=events)
        mark = bracket.steps(job_id)
        events.append(JobUpdated(job_id, total_steps=bracket.expected(job_id)))
        return Wishes({job_id: mark} if mark < math.inf else {}, events)

    def ended(self, job_id: str, loss: float) -> Wishes:
        """One that ended before its time will be on no further rung, so others need not wait for it."""
        was_alive = job_id in self.alive
        self.alive.pop(job_id, None)
        out = self._bracket[job_id].report(job_id, math.inf) if was_alive and math.isnan(loss) else []
        dropped = self.drop(out)
        return Wishes(events=[*dropped, *super().ended(job_id, loss).events])
