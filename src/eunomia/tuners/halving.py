"""Successive halving, Hyperband and ASHA: trials compete at rungs, and one in η goes on (`tuners.brackets`).

Successive halving has one bracket, Hyperband several with more and less halving. In both a trial that comes to a rung
is paused until the others have come to it, unless it is said that nobody is: then trials run on until they are beaten,
with the same survivors. ASHA never waits.

K. Jamieson and A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016;
L. Li et al., "Hyperband", JMLR 2018; L. Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.model.events import JobPaused, JobResumed, JobUpdated
from eunomia.model.job import Job
from eunomia.tuners.brackets import Asynchronous, Bracket, RungDecision, brackets_of, rungs_of
from eunomia.tuners.synchronous_rungs import SynchronousRungs
from eunomia.tuners.trials import Trials
from eunomia.tuners.tuner import NOTHING, TunerRequests, Wish

_SAME = 1e-9  # relative: steps that differ by rounding alone


class Halving(Trials):
    """Successive halving; with several brackets Hyperband, and where nobody waits ASHA.

    `pauses` says whether trials rest on their rungs. `parallel` and `most` limit the trials as `Trials` says; who waits
    for others needs them all at once, so `parallel` goes with ASHA alone.
    """

    def __init__(
        self,
        eta: int,
        *,
        brackets: bool = False,
        waits: bool = True,
        pauses: bool = True,
        parallel: int | None = None,
        most: int | None = None,
    ):
        super().__init__(parallel=parallel, most=most)
        self._eta, self._many = eta, brackets
        self._kind = Asynchronous if not waits else SynchronousRungs if pauses else Bracket
        self._bracket: dict[str, Bracket] = {}
        self._resting: set[str] = set()

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Deal the trials to brackets and watch them all at their first rungs."""
        super().begin(app, trials)
        jobs = list(self.jobs.values())
        dealt = brackets_of(len(jobs), self._eta) if self._many else [(len(jobs), rungs_of(len(jobs), self._eta))]
        first = 0
        for size, rungs in dealt:
            mine = jobs[first : first + size]
            bracket = self._kind(mine, rungs, self._eta)
            self._bracket |= {job.job_id: bracket for job in mine}
            first += size
        return TunerRequests(self._marks(self._bracket))

    def submitted(self, job: Job) -> TunerRequests:
        """Say how much of its steps a trial is expected to do."""
        steps = self._bracket[job.job_id].expected(job.job_id)
        return TunerRequests(events=(JobUpdated(job.job_id, total_steps=steps),) if steps < job.total_steps else ())

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Judge those who stand on the rung; a report from below it tells nothing."""
        if job_id not in self.alive or steps < self._bracket[job_id].steps(job_id) * (1 - _SAME):
            return NOTHING
        return self._carried_out(self._bracket[job_id].report(job_id, loss))

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """One that ended before its time will be on no further rung, so others need not wait for it."""
        was_alive, bracket = job_id in self.alive, self._bracket.get(job_id)
        self.alive.pop(job_id, None)
        self._resting.discard(job_id)
        left = was_alive and bracket is not None and (math.isnan(loss) or bracket.steps(job_id) < math.inf)
        wishes = self._carried_out(bracket.leave(job_id)) if left and bracket is not None else NOTHING
        return TunerRequests(wishes.watch, [*wishes.events, *super().ended(job_id, loss).events])

    def _carried_out(self, verdict: RungDecision) -> TunerRequests:
        """Return what follows from a verdict: who is given up, who is paused, who goes on and to where."""
        go = [name for name in verdict.go if name in self.alive]
        events: list[Wish] = [*self.drop(verdict.out), *self.finish()]
        events += [JobPaused(name) for name in verdict.rest]
        events += [JobResumed(name) for name in go if name in self._resting]
        events += [JobUpdated(name, total_steps=self._bracket[name].expected(name)) for name in go]
        self._resting = self._resting.difference(verdict.out, go).union(verdict.rest)
        return TunerRequests(self._marks(go), events)

    def _marks(self, names: Sequence[str] | dict[str, Bracket]) -> dict[str, float]:
        """Return the steps of the next rung of each trial that has one."""
        steps = {name: self._bracket[name].steps(name) for name in names}
        return {name: mark for name, mark in steps.items() if mark < math.inf}
