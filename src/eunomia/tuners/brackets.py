"""Brackets of trials: the rungs at which trials are compared, and the trials that are stopped there.

With n trials of R steps there are s = ⌊log_η n⌋ rungs, at R η^{i−s} steps, i = 0 … s − 1; of at most ⌊n η^{−i}⌋ trials
on rung i the best ⌊n η^{−i−1}⌋ are promoted, and after the last rung run to R. The three kinds of bracket:

    SynchronousRungs  a trial is paused on its rung until all other trials on the rung have reached it or have ended
    Bracket           a trial runs until enough others are known to be better at a rung that it has passed
    Asynchronous      a trial is promoted if it is among the best 1/η of the trials that have reached the rung so far,
                      and else stopped; `tuners.late_promotion` has the kind in which it may be promoted later

The first two have the same survivors. References: see `tuners.halving`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eunomia.model import elementary
from eunomia.model.job import Job

_ROUNDING = 1e-9  # of a logarithm


def rungs_of(trials: int, eta: int) -> int:
    """Return the number of rungs below the full number of steps."""
    return math.floor(elementary.log(trials) / elementary.log(eta) + _ROUNDING) if trials > 1 else 0


def brackets_of(trials: int, eta: int) -> list[tuple[int, int]]:
    """Return Hyperband's brackets (trials, rungs) for a number of trials, most rungs first.

    With R = η^s, brackets have ⌈(s + 1) / (k + 1) η^k⌉ trials for k = s … 0; the trials are split in those proportions.
    """
    most = rungs_of(trials, eta)
    wanted = [-(-(most + 1) * eta**k // (k + 1)) for k in range(most, -1, -1)]
    ends = [round(trials * sum(wanted[: i + 1]) / sum(wanted)) for i in range(len(wanted))]
    sizes = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    return [(size, min(k, rungs_of(size, eta))) for size, k in zip(sizes, range(most, -1, -1), strict=True) if size]


@dataclass(frozen=True, slots=True)
class RungDecision:
    """The consequences of a report: trials to stop, to pause, and to promote to their next rung."""

    stop: Sequence[str] = ()
    pause: Sequence[str] = ()
    promote: Sequence[str] = ()


class Bracket:
    """Trials that compete with each other without pausing."""

    def __init__(self, trials: Sequence[Job], rungs: int, eta: int):
        self._eta, self._rungs = eta, rungs
        self._jobs = {job.job_id: job for job in trials}
        self._rung = dict.fromkeys(self._jobs, 0)  # the next rung of each trial
        self._losses: list[dict[str, float]] = [{} for _ in range(rungs)]  # of each rung, by trial
        self._stopped: set[str] = set()

    def steps(self, job_id: str) -> float:
        """Return the steps of a trial's next rung; inf if there is none."""
        rung = self._rung[job_id]
        total = self._jobs[job_id].total_steps
        return total * elementary.power(self._eta, rung - self._rungs) if rung < self._rungs else math.inf

    def expected(self, job_id: str) -> float:
        """Return the expected total steps of a trial, if 1/η of the trials are promoted at each further rung."""
        total, first = self._jobs[job_id].total_steps, self._rung[job_id]
        marks = [total * elementary.power(self._eta, rung - self._rungs) for rung in range(self._rungs + 1)]
        done = marks[first - 1] if first else 0.0
        steps = done
        for i, mark in enumerate(marks[first:]):
            steps += (mark - done) * elementary.power(self._eta, -i)
            done = mark
        return steps

    def report(self, job_id: str, loss: float) -> RungDecision:
        """Record a trial's loss at its next rung."""
        rung = self._rung[job_id]
        if rung == self._rungs:
            return RungDecision()
        self._losses[rung][job_id] = loss
        self._rung[job_id] += 1
        stop = [name for name in self._beaten(job_id, rung) if name not in self._stopped]
        self._stopped.update(stop)
        return RungDecision(stop=stop, promote=[] if job_id in stop else [job_id])

    def leave(self, job_id: str) -> RungDecision:
        """Record that a trial has ended and will reach no further rung."""
        return RungDecision(stop=self.report(job_id, math.inf).stop)

    def _beaten(self, job_id: str, rung: int) -> list[str]:
        """Return all trials that are certainly not among the best of their rung, up to the first incomplete rung."""
        beaten: list[str] = []
        trials = list(self._jobs)
        for losses in self._losses:
            ranked = sorted((name for name in trials if name in losses), key=lambda name: (losses[name], name))
            keep = max(len(trials) // self._eta, 1)
            beaten += ranked[keep:]
            if len(ranked) < len(trials):
                break
            trials = ranked[:keep]
        return beaten


class Asynchronous(Bracket):
    """Trials of ASHA as Ray Tune has it: each is compared once on a rung, with those that reached it before."""

    def _beaten(self, job_id: str, rung: int) -> list[str]:
        """Return the trial if it is not among the best that have reached the rung."""
        losses = self._losses[rung]
        better = sum((loss, name) < (losses[job_id], job_id) for name, loss in losses.items())
        return [job_id] if better >= max(len(losses) // self._eta, 1) else []


class SynchronousRungs(Bracket):
    """Trials of successive halving: they are paused on every rung until the rung is complete.

    Then the best ⌊n η^{−i−1}⌋ of rung i are promoted together and the others stopped; a trial that ended early is not
    counted.
    """

    def __init__(self, trials: Sequence[Job], rungs: int, eta: int):
        super().__init__(trials, rungs, eta)
        # Trials of each rung, whether or not they have reached it yet.
        self._on_rung = [set(self._jobs), *(set[str]() for _ in range(rungs))]

    def report(self, job_id: str, loss: float) -> RungDecision:
        """Record a trial's loss at its next rung; pause the trial unless the rung is complete."""
        rung = self._rung[job_id]
        if rung == self._rungs or job_id in self._losses[rung]:
            return RungDecision()
        self._losses[rung][job_id] = loss
        return self._complete(rung) or RungDecision(pause=[job_id])

    def leave(self, job_id: str) -> RungDecision:
        """Record that a trial has ended, so that no other trial waits for it."""
        rung = self._rung[job_id]
        self._on_rung[rung].discard(job_id)
        if rung == self._rungs:
            return RungDecision()
        self._losses[rung].pop(job_id, None)
        return self._complete(rung) or RungDecision()

    def _complete(self, rung: int) -> RungDecision | None:
        """Return the trials to stop and to promote; None while the rung is incomplete or empty."""
        trials, losses = self._on_rung[rung], self._losses[rung]
        if not trials or len(losses) < len(trials):
            return None
        ranked = sorted(trials, key=lambda name: (losses[name], name))
        keep = max(len(self._jobs) // self._eta ** (rung + 1), 1)
        for name in ranked[:keep]:
            self._rung[name] += 1
        self._on_rung[rung + 1].update(ranked[:keep])
        trials.clear()
        return RungDecision(stop=ranked[keep:], promote=ranked[:keep])
