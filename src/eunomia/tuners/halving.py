"""Successive halving, Hyperband and ASHA: trials are compared at rungs, and 1/η of them promoted (`tuners.brackets`).

Successive halving has one bracket, Hyperband several with different numbers of rungs. In both, trials are paused on a
rung until it is complete; without pauses they run until they are beaten, with the same survivors. ASHA here is Ray
Tune's variant: it never pauses, but judges a trial once, when it reaches a rung, and cancels it or lets it go on. The
published ASHA, which promotes trials later too, is in `tuners.late_promotion`.

K. Jamieson and A. Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016;
L. Li et al., "Hyperband", JMLR 2018; L. Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.model.events import JobPaused, JobResumed, JobUpdated
from eunomia.model.job import Job
from eunomia.tuners.brackets import Asynchronous, Bracket, RungDecision, SynchronousRungs, brackets_of, rungs_of
from eunomia.tuners.tuner import NOTHING, Trials, TunerRequests, Wish

TOLERANCE = 1e-9  # of steps, relative


class Halving(Trials):
    """Successive halving; with `brackets` Hyperband, and without `waits` ASHA.

    `pauses`: whether trials are paused on incomplete rungs. `parallel` and `most` limit the trials as in `Trials`; as
    synchronous trials need all others, only ASHA may set `parallel`.
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
        self._paused: set[str] = set()

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Assign trials to brackets and watch their first rungs."""
        super().begin(app, trials)
        jobs = list(self.jobs.values())
        brackets = brackets_of(len(jobs), self._eta) if self._many else [(len(jobs), rungs_of(len(jobs), self._eta))]
        first = 0
        for size, rungs in brackets:
            members = jobs[first : first + size]
            bracket = self._make_bracket(members, rungs)
            self._bracket |= {job.job_id: bracket for job in members}
            first += size
        return TunerRequests(self._marks(self._bracket))

    def _make_bracket(self, trials: Sequence[Job], rungs: int) -> Bracket:
        return self._kind(trials, rungs, self._eta)

    def submitted(self, job: Job) -> TunerRequests:
        """Update the total steps of a trial to those expected."""
        steps = self._bracket[job.job_id].expected(job.job_id)
        return TunerRequests(events=(JobUpdated(job.job_id, total_steps=steps),) if steps < job.total_steps else ())

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Compare the trials on the rung; reports below it are ignored."""
        if job_id not in self.alive or steps < self._bracket[job_id].steps(job_id) * (1 - TOLERANCE):
            return NOTHING
        return self._apply(self._bracket[job_id].report(job_id, loss))

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Remove an ended trial from its rung, so that no other trial waits for it."""
        was_alive, bracket = job_id in self.alive, self._bracket.get(job_id)
        recorded = super().ended(job_id, loss)  # first, as leaving its rung may end the app
        self._paused.discard(job_id)
        requests = NOTHING
        if was_alive and bracket is not None and (math.isnan(loss) or bracket.steps(job_id) < math.inf):
            requests = self._apply(bracket.leave(job_id))
        return TunerRequests(requests.watch, [*requests.events, *recorded.events])

    def _apply(self, decision: RungDecision) -> TunerRequests:
        """Return the requests that carry out a decision."""
        promoted = [name for name in decision.promote if name in self.alive]
        events: list[Wish] = [*self.drop(decision.stop), *self.finish()]
        events += [JobPaused(name) for name in decision.pause]
        events += [JobResumed(name) for name in promoted if name in self._paused]
        events += [JobUpdated(name, total_steps=self._bracket[name].expected(name)) for name in promoted]
        self._paused = self._paused.difference(decision.stop, promoted).union(decision.pause)
        return TunerRequests(self._marks(promoted), events)

    def _marks(self, names: Sequence[str] | dict[str, Bracket]) -> dict[str, float]:
        """Return the steps of the next rung of each trial that has one."""
        steps = {name: self._bracket[name].steps(name) for name in names}
        return {name: mark for name, mark in steps.items() if mark < math.inf}
