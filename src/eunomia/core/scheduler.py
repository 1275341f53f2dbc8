"""Decides who runs where. Its state is a function of the moments so far, and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eunomia.core.answer_rows import PendingAsk, job_columns, sizes_of
from eunomia.core.apply_answer import AnswerPlacer, place_one_gang
from eunomia.core.belief import Belief
from eunomia.core.check import check
from eunomia.core.columns import GrowingColumns
from eunomia.core.event_handlers import apply_event
from eunomia.core.lease_extension import extend_leases, settle_extensions
from eunomia.core.mechanisms.dues import Dues
from eunomia.core.mechanisms.leases import Leases
from eunomia.core.scheduler_state import SchedulerState
from eunomia.core.view_builder import build_view
from eunomia.model.answers import Answer, Grants, InvalidAnswer, Order, Shares
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.decisions import Ask, Decision, Refuse, Renew, WakeAt
from eunomia.model.events import Answered, Moment
from eunomia.model.job_lifecycle import Cause, Stage
from eunomia.model.policy import PolicyInfo
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology
from eunomia.model.view import View


class Scheduler:
    """Events in, decisions out. `handle` alone changes the state.

    With `checked` every moment ends with the invariants (`core.check`), which raise when one is broken. A job of
    which `comes_again` says, by tenant and reason, that it would fail again is not tried again; it is told of every
    failure and may remember them. Left out: every job is tried again while it has retries.
    """

    def __init__(
        self,
        topology: Topology,
        info: PolicyInfo,
        mechanism: Leases,
        belief: Belief,
        *,
        seed: int = 0,
        checked: bool = False,
        price: Floats | None = None,
        tenants: Mapping[str, Tenant] | None = None,
        comes_again: Callable[[str, str], bool] | None = None,
    ):
        self.info, self.mechanism, self.seed = info, mechanism, seed
        self._books = SchedulerState(topology, belief, price, tenants)
        self._books.comes_again = comes_again or self._books.comes_again
        self.state, self.ledger, self.belief = self._books.state, self._books.ledger, belief
        self.state.keep_claims(info.needs)
        self.state.lease = mechanism.length
        self.dues = Dues(len(topology.types))
        self._told: tuple[Ints, Mapping[int, str]] = (NO_INTS, {})  # what the last answer says of waits, and of whom
        self.certificate: Certificate | None = None  # of the last answer, where it was optimised
        self._last_order: PendingAsk | None = None
        self._line: Ints | None = None  # of dues: the last pass went by it
        self._memory = GrowingColumns({name: (np.float64, value) for name, value in info.remembers.items()})
        self._kept: dict[str, np.ndarray] = {}
        self._checked = checked
        endless = info.complete and info.door == "order" and math.isinf(mechanism.length)
        self._unasked = endless and not (mechanism.recall and len(topology.types) > 1)
        self._question: PendingAsk | None = None  # asked and not yet answered
        self._asked, self._asked_at = 0, -math.inf  # questions so far, and when the last one was asked
        self._known = 0  # what of `changes` in the books the last ask knew
        self._again_at = self._wake = math.inf
        self._plain = True  # the last answer named no other shape and no partner
        self._passed = (-math.inf, 0)  # when shares last seated anybody, and what of `changes` was known
        self._resting = False  # leases may run on through quiet rounds

    def handle(self, moment: Moment) -> list[Decision]:
        """Take in all that happened at one instant, then decide once."""
        orders: list[Decision] = []
        answer: Answer | None = None
        self._books.reckon(moment.at)
        for event in moment.events:
            if isinstance(event, Answered):
                answer = self._matching(event)
            else:
                orders += apply_event(event, moment.at, self._books)
        if self.info.remembers:
            while len(self._memory) < len(self.state.jobs):
                self._memory.add()
        if self.info.renews:
            self._note_calm(moment.at)
        if answer is not None:
            self._adopt(answer, moment.at, orders)
        elif self._question is None and self._must_ask(moment.at):
            if not self._seat_unasked(moment.at, orders):
                orders.append(self._ask(moment.at))
        elif self.info.door == "shares" and self._seats_may_change(moment.at):
            self._settle_shares(moment.at, orders)
        self._set_wake(moment.at, orders)
        if self._checked:
            check(self.state)
        return orders

    @property
    def why(self) -> dict[int, str]:
        """What the last answer says of each job's wait, by row."""
        rows, told = self._told
        return {int(rows[m]): text for m, text in told.items()}

    @property
    def _stale(self) -> bool:
        """Jobs or devices came or went since the last ask."""
        return self._books.changes != self._known

    @property
    def _calm(self) -> bool:
        """Nobody waits, and then everybody goes on, by what the policy promises."""
        return self.info.renews and self.state.waiting == 0 and not self.state.ends_apart

    @property
    def last_order(self) -> PendingAsk | None:
        """The candidates of the last pass, best first, for explanations."""
        if self._line is not None:
            throughput = self.belief.throughput[self.state.active]
            self._last_order, self._line = self.dues.in_line(self._line, self.state, throughput), None
        return self._last_order

    @last_order.setter
    def last_order(self, named: PendingAsk) -> None:
        self._last_order, self._line = named, None

    @property
    def free(self) -> Ints:
        """Accelerators of each type that nobody uses, (type,)."""
        return self.state.floor.free

    def holdup(self, row: int, at: float) -> tuple[str, str] | None:
        """Return the reason and the words if a job waits for the way time is cut and not for others; else None."""
        return None

    # ---- asking ----------------------------------------------------------------------------------------------

    def _note_calm(self, at: float) -> None:
        """Know all that happened while nobody waits; else let leases end when they are due again."""
        if self._calm:
            self._known, self._again_at = self._books.changes, math.inf
        elif not self.mechanism.aligned:
            settle_extensions(self.state, at, self.mechanism.length)

    def _must_ask(self, at: float) -> bool:
        """Say whether an answer is needed and could change anything now."""
        state, cut = self.state, self.mechanism
        if self._unasked and not state.ends_apart:
            due = state.waiting > 0 and (self._stale or at >= self._again_at)
            return due and (cut.recall or bool(state.floor.free.any()))
        if state.alive == 0 or self._calm:
            return False
        rounds, due = cut.is_boundary(at), self._stale or at >= self._again_at
        if self.info.door == "shares":
            return due and (rounds or not cut.aligned) and at >= self._asked_at + cut.solve_gap
        if (rounds or cut.next_end(state) <= at) and (due or at > self._asked_at):
            return True  # once: what else happens at this instant may come of the answer itself
        if due and self.info.door == "order" and self._plain:
            free = bool(state.floor.free.any())
            if state.waiting:
                return cut.recall or free
            return cut.recall and free and len(state.capacity) > 1  # somebody may move to a faster type
        return due

    def _seat_unasked(self, at: float, orders: list[Decision]) -> bool:
        """Do without an answer that could only say one thing; False when the policy must be asked.

        That is so when a single waiting job fits and nobody can be moved, by what its policy promises: who else waits
        is passed over (separable), or there is nobody else (complete).
        """
        state, cut = self.state, self.mechanism
        if not self._unasked or (not (self.info.separable and not cut.recall) and state.waiting > 1):
            return False
        fits, start = place_one_gang(self._books, at, cut.until(at))
        if fits > 1 or (fits == 0 and cut.recall):
            return False
        if start is not None:
            orders.append(start)
        self._known, self._again_at = self._books.changes, math.inf
        return True

    def _shown(self) -> Ints:
        """Return the jobs that an answer could seat: all, or those that wait where nobody can be moved."""
        active = self.state.active
        if self._unasked and self.info.separable and not self.mechanism.recall:
            return active[self.state.jobs.on_type[active] < 0]
        return active.copy()

    def _ask(self, at: float) -> Ask:
        active = self._shown()
        view = View(
            at=at,
            types=self.state.topology.types,
            jobs=len(active),
            columns=self._columns(at, active),
            seed=(self.seed, self._asked),
            memory={**self._kept, **{name: getattr(self._memory, name)[active] for name in self.info.remembers}},
        )
        self._question = PendingAsk(self._asked, active)
        self._asked += 1
        self._asked_at = at
        self._known, self._again_at = self._books.changes, math.inf
        return Ask(self._question.asked, view)

    def _columns(self, at: float, active: Ints) -> dict[str, Any]:
        """Return what the policy needs to see of these jobs."""
        return build_view(self.info.needs, at, active, self.state, self.ledger, self.belief)

    def _seats_may_change(self, at: float) -> bool:
        """Say whether the last answer's shares can seat anybody anew now."""
        if self._passed == (at, self._books.changes):
            return False  # it has been done, and all that was heard since is that checkpoints were written
        return self._stale or self.mechanism.is_boundary(at) or self.mechanism.next_end(self.state) <= at

    def _matching(self, event: Answered) -> Answer | None:
        """Return the answer if it is the one that is waited for."""
        waited = self._question is not None and self._question.asked == event.asked
        return event.answer if waited else None

    # ---- adopting an answer ----------------------------------------------------------------------------------

    def _adopt(self, answer: Answer, at: float, orders: list[Decision]) -> None:
        question, self._question = self._question, None
        assert question is not None
        if not answer.again_at > at:
            when = f"wants to be asked again at {answer.again_at}, but it is {at}"
            raise InvalidAnswer(f"policy {self.info.name!r} {when}")
        self._again_at = answer.again_at
        self._remember(answer, question)
        self._refuse(answer, question, at, orders)
        self._told = question.active, answer.why
        self.certificate = answer.certificate
        seating = AnswerPlacer(self._books, self.mechanism, at)
        if isinstance(answer, Order):
            named = job_columns(answer.rows, question, self.state)
            self._plain = answer.rows.shape is None and answer.rows.partner is None
            self.last_order = named
            size = sizes_of(named.job, named.shape, self.state)
            seating.follow(named, answer.misfit, np.arange(len(named.job)), size)
        elif isinstance(answer, Grants):
            seating.grant(answer, job_columns(answer.rows, question, self.state), question)
            if seating.put_out:  # they wait from now on, which the policy could not see when it was asked
                self._again_at = at
        elif isinstance(answer, Shares):
            self.dues.advance(at)
            self.dues.adopt(job_columns(answer, question, self.state), answer.fill, self.state)
            self._settle_shares(at, orders)
            return
        else:
            raise InvalidAnswer(f"policy {self.info.name!r} answered {type(answer).__name__}; see model.answers")
        orders += seating.orders

    def _settle_shares(self, at: float, orders: list[Decision]) -> None:
        dues, cut = self.dues, self.mechanism
        seating = AnswerPlacer(self._books, cut, at)
        self._line = line = dues.line(self.state, at, cut.length, self.belief.cost)
        if cut.aligned or cut.recall:
            seating.follow(dues.rows, "skip", line, dues.size, fill=dues.fill)
        else:
            # Leases that end apart leave a wide gang no moment at which enough seats are free: it must collect them.
            named = dues.in_line(line, self.state, self.belief.throughput[self.state.active])
            size = sizes_of(named.job, named.shape, self.state)
            seating.follow(named, "reserve", np.arange(len(named.job)), size)
        orders += seating.orders
        dues.note_seats(self.state)
        self._passed = at, self._books.changes

    def _remember(self, answer: Answer, question: PendingAsk) -> None:
        for name, values in answer.memory.items():
            if name in self.info.remembers:
                getattr(self._memory, name)[question.active] = values
            else:
                self._kept[name] = values

    def _refuse(self, answer: Answer, question: PendingAsk, at: float, orders: list[Decision]) -> None:
        for m, why in answer.refuse.items():
            row = int(question.active[m])
            if self.state.jobs.ran[row]:
                name = self.state.ids[row]
                raise InvalidAnswer(f"policy {self.info.name!r} refused job {name!r}, which has run already")
            if self.state.jobs.stage[row] == Stage.WAITING:
                orders.append(Refuse(self.state.ids[row], why))
                self._books.leave(row, at, Cause.REFUSED)

    # ---- when to wake ----------------------------------------------------------------------------------------

    def _set_wake(self, at: float, orders: list[Decision]) -> None:
        """Ask to be woken when something will change by itself; quiet time is skipped."""
        wake = math.inf
        if self._unasked and not self.state.ends_apart:
            if at < self._again_at < math.inf and self.state.alive:
                wake = self._again_at
        elif self._calm and not self.mechanism.aligned:
            rows = extend_leases(self.state)
            if len(rows):
                orders.append(Renew(self.state.names(rows), math.inf))
        elif self.state.alive:
            coming = (self._again_at, self._gap_ends(at), self.mechanism.next_end(self.state), math.inf)
            wake = min(when for when in coming if when > at)
            if self.mechanism.aligned:
                quiet = self._quiet()
                self._rest(quiet, at, orders)
                wake = wake if quiet else min(wake, self.mechanism.next_boundary(at))
        if wake != self._wake and (wake < math.inf or self._wake > at):
            orders.append(WakeAt(wake))
        self._wake = wake

    def _gap_ends(self, at: float) -> float:
        """Return when a question that is due may be asked again; inf when none waits for that."""
        due = self._stale or self._again_at <= at
        spaced = due and self.info.door == "shares" and not self.mechanism.aligned
        return self._asked_at + self.mechanism.solve_gap if spaced else math.inf

    def _rest(self, quiet: bool, at: float, orders: list[Decision]) -> None:
        """Let leases run on while nobody is woken at their common end, or a real world would see them lapse."""
        if self._question is not None or not (quiet or self._resting):
            return  # an answer may seat somebody else, or nobody rests
        jobs, running = self.state.jobs, self.state.running()
        if quiet and not self.state.ends_apart:
            rows, until = running[jobs.until[running] < math.inf], math.inf
        else:
            rows, until = running[jobs.resting[running]], self.mechanism.next_boundary(at)
        self._resting = quiet
        if len(rows):
            jobs.until[rows], jobs.resting[rows] = until, quiet
            orders.append(Renew(self.state.names(rows), until))

    def _quiet(self) -> bool:
        """Say whether the next common end would change nothing."""
        if self._stale or self._question is not None:
            return False
        if self.info.door == "shares":
            return self.dues.settled(self.state)
        return self.state.waiting == 0 and self._plain  # in another shape somebody may go faster by then
