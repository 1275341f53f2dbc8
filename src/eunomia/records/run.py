"""The loop of every run, simulated or real: moment → decisions → backend."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol

from eunomia.backends.protocol import Backend
from eunomia.core.scheduler import Scheduler
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask, Decision
from eunomia.model.events import Answered, Moment
from eunomia.model.moment_batch import INSTANT_S, Instant, MomentBatch
from eunomia.model.policy import Policy
from eunomia.records.policy_call import ask_policy

MEASURED_ASKS, EVERY = 100, 64  # asks whose CPU time is measured each, and after how many from then on
MAX_MOMENTS = 1_000  # in one instant
MAX_MOMENTS_PER_JOB = 10  # in addition, for every job submitted so far, as jobs may start and end at one instant


class Observer(Protocol):
    """Receives every moment and its decisions and changes nothing: metrics, a record, a progress bar."""

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Receive one moment and its decisions."""
        ...


class PolicyRunner(Protocol):
    """Answers the scheduler's asks."""

    def answer(self, ask: Ask) -> Answer:
        """Return the answer to one ask."""
        ...


class InlinePolicyRunner:
    """Asks the policy immediately, in this process, and measures its cost."""

    def __init__(self, policy: Policy):
        self._policy = policy
        self.asks = 0
        self.cpu_s = 0.0  # estimated, where there are many asks
        self._every = 1
        self.latency_s = array("d")  # of each answer, wall-clock

    def answer(self, ask: Ask) -> Answer:
        """Return the policy's answer. Raises InvalidAnswer and PolicyFailed as `ask_policy` does."""
        begun = time.perf_counter()
        before = time.process_time() if self.asks % self._every == 0 else -1.0
        answer = ask_policy(self._policy, ask.view)
        self.latency_s.append(time.perf_counter() - begun)
        if before >= 0.0:  # the clock of the processor is dear: many quick answers are measured by a sample
            self.cpu_s += (time.process_time() - before) * self._every
            self._every = 1 if self.asks < MEASURED_ASKS else EVERY
        self.asks += 1
        return answer


class StalledClock:
    """Counts the moments and asks of one instant, to end a run in which time stops advancing.

    A backend that plays moments by itself counts them in `instant`.
    """

    def __init__(self) -> None:
        self.instant = Instant()

    def check(self, at: float, asked: bool, scheduler: Scheduler) -> str:
        """Return why the run must end after this moment; "" while it may continue."""
        instant = self.instant
        if at - instant.since >= INSTANT_S:
            instant.since, instant.moments, instant.asks = at, 0, 0
        instant.moments += 1
        instant.asks += asked
        most = MAX_MOMENTS
        if instant.moments <= most or instant.moments <= most + MAX_MOMENTS_PER_JOB * len(scheduler.state.jobs):
            return ""
        return (
            f"given up: at {at:,.9g} s time stopped advancing; {instant.moments:,} moments passed within "
            f"{INSTANT_S:g} s, in which policy {scheduler.info.name!r} was asked {instant.asks:,} times. An answer has "
            "to hold for a while: let `again_at` and the leases it grants end later, and let a search wait before it "
            "asks for a change again"
        )


def run(scheduler: Scheduler, backend: Backend, runner: PolicyRunner, observers: Iterable[Observer] = ()) -> str:
    """Run `backend` to its end. An ask is answered before the next moment.

    Returns why the run was ended early, if time stopped advancing; else "".
    """
    asks, answer = asks_of(scheduler, backend, observers), None
    while True:
        try:
            ask = next(asks) if answer is None else asks.send(answer)
        except StopIteration as end:
            return str(end.value)
        answer = runner.answer(ask)


def asks_of(scheduler: Scheduler, backend: Backend, observers: Iterable[Observer] = ()) -> Generator[Ask, Answer, str]:
    """Yield the asks of a run of `backend` to its end, each of which is sent its answer.

    Moments that the backend can play by itself, as their decisions need no ask, come in batches (`implied`). If every
    observer takes batches, those are among them whose answer follows from what the policy ranks by.
    Returns why the run was ended early, if time stopped advancing; else "".
    """
    observers, clock = tuple(observers), StalledClock()
    implied: Callable[[Scheduler, bool, Instant], Iterable[MomentBatch]] = getattr(backend, "implied", lambda *_: ())
    observe_batch = [_batch_hearer(observer) for observer in observers]
    ranked = all(hasattr(observer, "observe_batch") for observer in observers)  # a record has asks and answers, too
    for moment in backend.moments():
        following: Moment | None = moment
        while following is not None:
            now, following = following, None
            decisions = scheduler.handle(now)
            for observer in observers:
                observer.observe(now, decisions)
            for decision in decisions:
                if isinstance(decision, Ask):
                    answer = yield decision
                    following = Moment(now.at, (Answered(decision.asked, answer),))
                else:
                    backend.carry_out(decision)
            if why := clock.check(now.at, following is not None, scheduler):
                return why
        for batch in implied(scheduler, ranked, clock.instant):
            for observe in observe_batch:
                observe(batch)
    return ""


def _batch_hearer(observer: Observer) -> Callable[[MomentBatch], None]:
    """Return how an observer receives many moments: by its `observe_batch` if it has one, else one by one."""

    def observe_each(batch: MomentBatch) -> None:
        for moment, decisions in batch:
            observer.observe(moment, decisions)

    observe: Callable[[MomentBatch], None] = getattr(observer, "observe_batch", observe_each)
    return observe
