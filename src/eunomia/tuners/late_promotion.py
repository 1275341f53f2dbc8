"""ASHA as published: a trial that is passed over on a rung pauses, and is promoted when it is among the best later.

    a free place goes to the best trial, of the highest rung that has one, that was not promoted yet and is among the
    ⌊n_k / η⌋ best of the n_k trials that have reached rung k; without one, to a new trial on the lowest rung

No trial is cancelled before the search is over, which it is when nothing runs, no trial can be promoted and none is
left to start. If no trial has completed by then, the best one of the highest rung goes on. Reference: L. Li et al., "A
System for Massively Parallel Hyperparameter Tuning", MLSys 2020, algorithm 2; here with a finite number of trials.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from eunomia.model.job import Job
from eunomia.tuners.brackets import Bracket, RungDecision
from eunomia.tuners.halving import Halving
from eunomia.tuners.tuner import TunerRequests


class OpenRungs(Bracket):
    """Trials that pause on every rung until they are promoted; a rung is never complete."""

    def report(self, job_id: str, loss: float) -> RungDecision:
        """Record a trial's loss at its next rung, where it pauses."""
        rung = self._rung[job_id]
        if rung == self._rungs or job_id in self._losses[rung]:
            return RungDecision()
        self._losses[rung][job_id] = loss
        return RungDecision(pause=[job_id])

    def leave(self, job_id: str) -> RungDecision:
        """Record that a trial has ended: on the rung that it was to reach it counts as the worst."""
        rung = self._rung[job_id]
        if rung < self._rungs:
            self._losses[rung].setdefault(job_id, math.inf)
        return RungDecision()

    def promotable(self, waiting: Collection[str]) -> str | None:
        """Return the trial, of those that wait, that a free place goes to; None if none is among the best."""
        for rung in reversed(range(self._rungs)):
            best = self._ranked(rung)[: len(self._losses[rung]) // self._eta]
            for name in best:
                if name in waiting and self._rung[name] == rung:
                    return name
        return None

    def best_of(self, waiting: Collection[str]) -> str:
        """Return the best of trials that wait, on the highest rung where one does."""
        highest = max(self._rung[name] for name in waiting)
        return next(name for name in self._ranked(highest) if name in waiting and self._rung[name] == highest)

    def promote(self, job_id: str) -> None:
        """Send a trial to its next rung."""
        self._rung[job_id] += 1

    def _ranked(self, rung: int) -> list[str]:
        losses = self._losses[rung]
        return sorted(losses, key=lambda name: (losses[name], name))


class LatePromotion(Halving):
    """ASHA that promotes trials later too. `parallel` and `most` limit the trials as in `Trials`.

    Trials that pause hold none of the `parallel` places.
    """

    def __init__(self, eta: int, *, parallel: int | None = None, most: int | None = None):
        super().__init__(eta, waits=False, parallel=parallel, most=most)
        self._open = OpenRungs((), 0, eta)

    def _make_bracket(self, trials: Sequence[Job], rungs: int) -> Bracket:
        self._open = OpenRungs(trials, rungs, self._eta)
        return self._open

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Give the place of an ended trial to another."""
        was_alive = job_id in self.alive
        requests = super().ended(job_id, loss)
        if not was_alive:
            return requests
        more = self._apply(RungDecision())
        return TunerRequests({**requests.watch, **more.watch}, [*requests.events, *more.events])

    def _occupied(self) -> int:
        return len(self._running - self._paused)

    def _apply(self, decision: RungDecision) -> TunerRequests:
        """Return the requests: trials on a rung pause or go on, and trials that wait are promoted to free places."""
        waiting = {name for name in self._paused.union(decision.pause) if name in self.alive}
        running = {name for name in self.alive if name not in waiting}.difference(self._unsubmitted)
        places = math.inf if self.parallel is None else self.parallel
        promoted: list[str] = []
        while len(running) + len(promoted) < places and (name := self._open.promotable(waiting)) is not None:
            self._open.promote(name)
            waiting.remove(name)
            promoted.append(name)
        stop: list[str] = []
        if not running and not promoted and self.alive.keys().isdisjoint(self._unsubmitted):
            if waiting and self._best[0] == math.inf:
                promoted = [self._open.best_of(waiting)]
                self._open.promote(promoted[0])
            else:
                stop = sorted(waiting)
        pause = [name for name in decision.pause if name not in promoted and name not in stop]
        return super()._apply(RungDecision(stop=stop, pause=pause, promote=promoted))
