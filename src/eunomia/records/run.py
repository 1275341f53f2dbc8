"""The loop: moment → decisions → world. Simulated or real, the core cannot tell."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Protocol

from eunomia.backends.protocol import Backend
from eunomia.core.scheduler import Scheduler
from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.decisions import Ask, Decision
from eunomia.model.events import Answered, Moment
from eunomia.model.policy import Policy

INSTANT_S = 1e-3  # moments less than this apart from the first of them are taken to be at one instant
MEASURED_ASKS, EVERY = 100, 64  # asks whose CPU time is measured each, and after how many from then on
MOMENTS = 1_000  # that one instant may have, and
MOMENTS_PER_JOB = 10  # further ones for every job submitted so far: jobs may start and end at one instant


class Observer(Protocol):
    """Somebody who hears everything and changes nothing: metrics, a record, a progress bar."""

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Hear of one moment and of what was decided then."""
        ...


class PolicyRunner(Protocol):
    """Who answers the core's questions."""

    def answer(self, ask: Ask) -> Answer:
        """Answer one question."""
        ...


class InlinePolicyRunner:
    """Asks the policy at once, in this process, and keeps count of what that costs."""

    def __init__(self, policy: Policy):
        self._policy = policy
        self.asks = 0
        self.cpu_s = 0.0  # estimated, where there are many asks
        self._every = 1
        self.latency_s = array("d")  # of each answer, on a clock at the wall

    def answer(self, ask: Ask) -> Answer:
        """Return what the policy decides. Raises InvalidAnswer when that is no answer, such as a forgotten return."""
        begun = time.perf_counter()
        before = time.process_time() if self.asks % self._every == 0 else -1.0
        answer = self._policy.decide(ask.view)
        if not isinstance(answer, Answer):
            name, kind = self._policy.info.name, type(answer).__name__
            raise InvalidAnswer(f"policy {name!r} answered {kind}; it answers Shares, Order or Grants")
        self.latency_s.append(time.perf_counter() - begun)
        if before >= 0.0:  # the clock of the processor is dear: many quick answers are measured by a sample
            self.cpu_s += (time.process_time() - before) * self._every
            self._every = 1 if self.asks < MEASURED_ASKS else EVERY
        self.asks += 1
        return answer


class StalledClock:
    """Counts the moments of one instant, and the asks among them, to end a run in which time stops advancing."""

    def __init__(self) -> None:
        self._since = -math.inf
        self._moments = self._asks = 0

    def gives_up(self, at: float, asked: bool, scheduler: Scheduler) -> str:
        """Return why the run cannot go on after this moment; the empty string while it can."""
        if at - self._since >= INSTANT_S:
            self._since, self._moments, self._asks = at, 0, 0
        self._moments += 1
        self._asks += asked
        if self._moments <= MOMENTS or self._moments <= MOMENTS + MOMENTS_PER_JOB * len(scheduler.state.jobs):
            return ""
        return (
            f"given up: at {at:,.9g} s time stopped advancing; {self._moments:,} moments passed within "
            f"{INSTANT_S:g} s, in which policy {scheduler.info.name!r} was asked {self._asks:,} times. An answer has "
            "to hold for a while: let `again_at` and the leases it grants end later, and let a search wait before it "
            "asks for a change again"
        )


def run(scheduler: Scheduler, backend: Backend, adviser: PolicyRunner, observers: Iterable[Observer] = ()) -> str:
    """Drive `backend` until nothing more happens. A question is answered before the next moment is taken.

    Returns why the run was ended early, when time stopped advancing; else the empty string.
    """
    observers, clock = tuple(observers), StalledClock()
    for moment in backend.moments():
        following: Moment | None = moment
        while following is not None:
            at, following = following.at, _handle(scheduler, backend, adviser, observers, following)
            if why := clock.gives_up(at, following is not None, scheduler):
                return why
    return ""


def _handle(
    scheduler: Scheduler, backend: Backend, adviser: PolicyRunner, observers: Sequence[Observer], moment: Moment
) -> Moment | None:
    """Handle one moment; return the one that brings an answer, if something was asked."""
    decisions = scheduler.handle(moment)
    for observer in observers:
        observer.hear(moment, decisions)
    following = None
    for decision in decisions:
        if isinstance(decision, Ask):
            following = Moment(moment.at, (Answered(decision.asked, adviser.answer(decision)),))
        else:
            backend.carry_out(decision)
    return following
