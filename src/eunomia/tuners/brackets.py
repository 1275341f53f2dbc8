"""Rungs and brackets: which trials compete with each other, where they are compared, and who is out of the race.

With n trials of R steps there are s = ⌊log_η n⌋ rungs, at R η^{i−s} steps, i = 0 … s − 1; of ⌊n η^{−i}⌋ trials that may
stand on rung i the best ⌊n η^{−i−1}⌋ go on, and those run to R. Three brackets differ in who waits:

    Waiting  a trial rests on its rung until all others that stand there have come to it (`tuners.waiting`)
    Bracket  a trial runs on until it is known that enough others were better at a rung that it has passed
    Asynchronous  a trial goes on if it is among the best 1/η of those that have come to the rung so far

The first two end with the same survivors. References: see `tuners.halving`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eunomia.model import elementary
from eunomia.model.job import Job

_ROUNDING = 1e-9  # of a logarithm


def rungs_of(trials: int, eta: int) -> int:
    """Return how many rungs there are below the top."""
    return math.floor(elementary.log(trials) / elementary.log(eta) + _ROUNDING) if trials > 1 else 0


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


@dataclass(frozen=True, slots=True)
class RungDecision:
    """What follows from a report: who is out of the race, who rests on its rung, and who goes on to the next."""

    out: Sequence[str] = ()
    rest: Sequence[str] = ()
    go: Sequence[str] = ()


class Bracket:
    """Trials that compete with each other, none of which waits for others."""

    def __init__(self, trials: Sequence[Job], rungs: int, eta: int):
        self._eta, self._rungs = eta, rungs
        self._jobs = {job.job_id: job for job in trials}
        self._rung = dict.fromkeys(self._jobs, 0)  # the next one that it comes to
        self._board: list[dict[str, float]] = [{} for _ in range(rungs)]  # losses at each rung
        self._out: set[str] = set()

    def steps(self, job_id: str) -> float:
        """Return the steps at which the trial comes to its next rung; inf = there is none below its end."""
        rung = self._rung[job_id]
        total = self._jobs[job_id].total_steps
        return total * elementary.power(self._eta, rung - self._rungs) if rung < self._rungs else math.inf

    def expected(self, job_id: str) -> float:
        """Return the steps that a trial is expected to do in all, if one in η goes on at each rung to come."""
        total, first = self._jobs[job_id].total_steps, self._rung[job_id]
        marks = [total * elementary.power(self._eta, rung - self._rungs) for rung in range(self._rungs + 1)]
        gone = marks[first - 1] if first else 0.0
        steps = gone
        for i, mark in enumerate(marks[first:]):
            steps += (mark - gone) * elementary.power(self._eta, -i)
            gone = mark
        return steps

    def report(self, job_id: str, loss: float) -> RungDecision:
        """Note a trial's loss at its next rung."""
        rung = self._rung[job_id]
        if rung == self._rungs:
            return RungDecision()
        self._board[rung][job_id] = loss
        self._rung[job_id] += 1
        fresh = [name for name in self._judged(job_id, rung) if name not in self._out]
        self._out.update(fresh)
        return RungDecision(out=fresh, go=[] if job_id in fresh else [job_id])

    def leave(self, job_id: str) -> RungDecision:
        """Note that a trial has ended and will come to no further rung."""
        return RungDecision(out=self.report(job_id, math.inf).out)

    def _judged(self, job_id: str, rung: int) -> list[str]:
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


class Asynchronous(Bracket):
    """Trials of ASHA: each is judged once on every rung, by those that were there before it."""

    def _judged(self, job_id: str, rung: int) -> list[str]:
        """Return the trial if it is not among the best of those who came so far."""
        board = self._board[rung]
        better = sum((loss, name) < (board[job_id], job_id) for name, loss in board.items())
        return [job_id] if better >= max(len(board) // self._eta, 1) else []
