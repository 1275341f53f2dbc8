"""Shares carried out to the letter, by a world that can divide time: the same events in, a `Flow` out.

It shares the core's state, ledger and belief, so that records, metrics and explanations read it as they read ours. A
job runs while it has a share, and waits while it has none; it never holds a seat.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.event_handlers import apply_event
from eunomia.core.mechanisms.ideal.settings import Ideal
from eunomia.core.mechanisms.ideal.stream import Stream
from eunomia.core.mechanisms.leases import Leases
from eunomia.core.scheduler import Scheduler
from eunomia.model.answers import Answer, InvalidAnswer, Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision
from eunomia.model.events import Answered, Moment
from eunomia.model.policy import PolicyInfo
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology

_DUST = 1e-9  # of an accelerator


class IdealScheduler(Scheduler):
    """Events in, shares out. `stream` is what holds now."""

    def __init__(
        self,
        topology: Topology,
        info: PolicyInfo,
        ideal: Ideal,
        belief: Belief,
        *,
        seed: int = 0,
        checked: bool = False,
        price: Floats | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ):
        common = Leases(recall=True, solve_gap=ideal.solve_gap_s)
        super().__init__(topology, info, common, belief, seed=seed, checked=checked, price=price, tenants=tenants)
        self.stream = Stream(self._books)

    def handle(self, moment: Moment) -> list[Decision]:
        """Take in all that happened at one instant, then decide once."""
        at, orders = moment.at, list[Decision]()
        answer: Answer | None = None
        self._books.reckon(at)
        self.stream.flow_to(at)
        for event in moment.events:
            if isinstance(event, Answered):
                answer = self._matching(event)
            else:
                apply_event(event, at, self._books)  # nobody sits, so nobody has to be stopped
        while len(self._memory) < len(self.state.jobs):
            self._memory.add()
        if answer is not None:
            self._take_over(answer, at, orders)
        elif self._question is None and self._must_ask(at):
            orders.append(self._ask(at))
        self._let_go(orders)
        self._set_wake(at, orders)
        if self._checked:
            self.stream.check()
        return orders

    @property
    def free(self) -> Ints:
        """Whole accelerators of each type that nobody uses, (type,)."""
        return np.floor(self.state.capacity - self.stream.used() + _DUST).astype(np.int64)

    def holdup(self, row: int, at: float) -> tuple[str, str] | None:
        """Return why a job has no share: it came after the last question, or the answer gives it none."""
        if self.state.jobs.submitted[row] > self._asked_at:
            again = self._asked_at + self.mechanism.solve_gap
            return "next_question", f"it came after the last question; the next one is asked at {again:,.0f} s"
        return "no_share", "the last answer gives it no share of time"

    def _take_over(self, answer: Answer, at: float, orders: list[Decision]) -> None:
        if not isinstance(answer, Shares):
            kind = type(answer).__name__
            raise InvalidAnswer(f"policy {self.info.name!r} answered {kind}; the mechanism ideal takes Shares alone")
        self._adopt(answer, at, orders)

    def _settle_shares(self, at: float, orders: list[Decision]) -> None:
        """Let the answer's shares hold from now on."""
        try:
            self.stream.turn(self.dues.rows, self.dues.size)
        except InvalidAnswer as error:
            raise InvalidAnswer(f"policy {self.info.name!r}: {error}") from error
        orders.append(self.stream.order())

    def _let_go(self, orders: list[Decision]) -> None:
        """Tell the world when somebody who had a share has ended and nothing else was told since."""
        ended = self.stream.ended()
        if ended.any():
            self.stream.leave_out(ended)
            if self._question is None:  # else the answer comes at this instant, with shares for all
                orders.append(self.stream.order())
