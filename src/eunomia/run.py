"""The loop: moment → decisions → world. Simulated or real, the core cannot tell."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Protocol

from eunomia.backends.door import Backend
from eunomia.core.scheduler import Scheduler
from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.decisions import Ask, Decision
from eunomia.model.events import Answered, Moment
from eunomia.model.policy import Policy


class Observer(Protocol):
    """Somebody who hears everything and changes nothing: metrics, a record, a progress bar."""

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Hear of one moment and of what was decided then."""
        ...


class Adviser(Protocol):
    """Who answers the core's questions."""

    def answer(self, ask: Ask) -> Answer:
        """Answer one question."""
        ...


class InlineAdviser:
    """Asks the policy at once, in this process, and keeps count of what that costs."""

    def __init__(self, policy: Policy):
        self._policy = policy
        self.asks = 0
        self.cpu_s = 0.0
        self.latency_s = array("d")  # of each answer, on a clock at the wall

    def answer(self, ask: Ask) -> Answer:
        """Return what the policy decides. Raises InvalidAnswer when that is no answer, such as a forgotten return."""
        before, begun = time.process_time(), time.perf_counter()
        answer = self._policy.decide(ask.view)
        if not isinstance(answer, Answer):
            name, kind = self._policy.info.name, type(answer).__name__
            raise InvalidAnswer(f"policy {name!r} answered {kind}; it answers Shares, Order or Grants")
        self.latency_s.append(time.perf_counter() - begun)
        self.cpu_s += time.process_time() - before
        self.asks += 1
        return answer


def run(scheduler: Scheduler, backend: Backend, adviser: Adviser, observers: Iterable[Observer] = ()) -> None:
    """Drive `backend` until nothing more happens. A question is answered before the next moment is taken."""
    observers = tuple(observers)
    for moment in backend.moments():
        following: Moment | None = moment
        while following is not None:
            following = _handle(scheduler, backend, adviser, observers, following)


def _handle(
    scheduler: Scheduler, backend: Backend, adviser: Adviser, observers: Sequence[Observer], moment: Moment
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
