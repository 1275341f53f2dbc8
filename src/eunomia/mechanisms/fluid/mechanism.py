"""Applies shares exactly, on a backend that can divide time: takes events, returns `SetShares`.

State, ledger and belief are the core's, so that records, metrics and explanations read them as they read those of
leases. A job runs while it has a share, and waits while it has none; it never holds a seat.
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.core.answer_rows import PendingAsk, job_columns, sizes_of
from eunomia.core.event_handlers import apply_event
from eunomia.core.mechanism import Core, Mechanism
from eunomia.mechanisms.fluid.config import Fluid
from eunomia.mechanisms.fluid.current_shares import FluidShares
from eunomia.model.answers import Answer, InvalidAnswer, Shares
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.tolerance import RELATIVE
from eunomia.model.wait_reason import Reason


class FluidMechanism(Mechanism):
    """The fluid of one scheduler. `shares` are the present ones."""

    def __init__(self, fluid: Fluid, core: Core) -> None:
        super().__init__(core)
        self.shares = FluidShares(self.sched)
        self._gap_s, self._every_s = fluid.solve_gap_s, fluid.ask_every_s
        self._candidates: PendingAsk | None = None
        self._is_fresh = False  # an answer came whose shares do not hold yet

    def receive(self, moment: Moment, decisions: list[Decision]) -> None:
        """Advance time and apply events; no job has seats, so none has to be stopped."""
        self.shares.flow_to(moment.at)
        for event in moment.events:
            apply_event(event, moment.at, self.sched)

    def opens(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether shares may change: always."""
        return True

    def asks(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether jobs came or went, or the policy wants to be asked, and the last ask is long enough ago."""
        if self.asked.pending is not None or self.state.alive == 0:
            return False
        return self._is_due(at) and at >= self.asked.last_at + self._gap_s

    def _is_due(self, at: float) -> bool:
        return self.asked.is_stale or at >= self.asked.again_at

    def order(self, answer: Answer, question: PendingAsk, at: float) -> None:
        """Name the candidates by rows of the job table. Raises InvalidAnswer for anything but shares."""
        if not isinstance(answer, Shares):
            kind = type(answer).__name__
            raise InvalidAnswer(f"policy {self.info.name!r} answered {kind}; the mechanism ideal takes Shares alone")
        self._candidates, self._is_fresh = job_columns(answer, question, self.state), True
        self.asked.again_at = min(self.asked.again_at, at + self._every_s)

    def settle(self, at: float, decisions: list[Decision]) -> bool:
        """Apply the shares of an answer from now on."""
        if self._is_fresh and self._candidates is not None:
            named, self._is_fresh = self._candidates, False
            self.shares.turn(named, sizes_of(named.job, named.shape, self.state))
            decisions.append(self.shares.order())
        return False

    def set_timer(self, at: float, decisions: list[Decision]) -> None:
        """Leave out the shares of jobs that have ended, and wake when an ask is due."""
        ended = self.shares.ended()
        if ended.any():
            self.shares.remove(ended)
            if self.asked.pending is None:  # else the answer comes at this instant, with shares for all
                decisions.append(self.shares.order())
        wake = math.inf
        if self.state.alive:
            gap_ends = self.asked.last_at + self._gap_s if self._is_due(at) else math.inf
            wake = min(when for when in (self.asked.again_at, gap_ends, math.inf) if when > at)
        self._wake_at(wake, at, decisions)

    # ---- explanations and checks -----------------------------------------------------------------------------

    @property
    def free(self) -> Ints:
        """Whole accelerators of each type that no job uses, (type,)."""
        return np.floor(self.state.capacity * (1 + RELATIVE) - self.shares.used()).astype(np.int64)

    def wait_reason(self, row: int, at: float) -> Reason | None:
        """Return why a job has no share: it came after the last ask, or the answer gives it none."""
        if self.state.jobs.submitted[row] > self.asked.last_at:
            return Reason("next_question", numbers=(self.asked.last_at + self._gap_s,))
        return Reason("no_share")

    def check(self) -> None:
        """Raise `BrokenInvariant` unless jobs and shares agree."""
        self.shares.check()
