"""The lease mechanism: when the policy is asked, which leases end, and how long new ones last.

Leases are extended while no job waits: no timer fires at their ends, which keep their phase. The backend gets leases
without an end, or they would lapse there. `until` keeps the agreed end, so that once a job waits each lease ends where
it would have ended, had it been renewed time and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eunomia.core.answer_rows import PendingAsk, job_columns, sizes_of
from eunomia.core.apply_answer import AnswerPlacer, apply_implied
from eunomia.core.mechanism import Core, ImpliedRule, Mechanism
from eunomia.core.placement_pass import ASK, KEPT, STARTED
from eunomia.core.ranked_pass import rank_of
from eunomia.core.state import State
from eunomia.mechanisms.leases.config import Leases
from eunomia.mechanisms.service_deficits import ServiceDeficits
from eunomia.model.answers import Answer, Grants, Order, Shares
from eunomia.model.arrays import NO_INTS, Ints
from eunomia.model.decisions import Decision, Renew
from eunomia.model.events import JobUpdated, Moment
from eunomia.model.rank import UNKNOWN
from eunomia.placement.selection import RESERVE, SKIP, STOP

HELD_ASK_S = (
    60.0  # least time to the next ask that no event asks for, while a job holds seats that cannot be reassigned
)


class LeaseMechanism(Mechanism):
    """Leases of one scheduler."""

    def __init__(self, leases: Leases, core: Core) -> None:
        super().__init__(core)
        self.leases = leases
        self.deficits = ServiceDeficits(len(self.state.topology.types))
        untimed = math.isinf(leases.length) and math.isinf(leases.ask_every)
        endless = untimed and self.info.promises.covers_all_jobs and self.info.answer_type == "order"
        # The policy's promises say what it would answer, unless running jobs may move to a faster type.
        may_move = leases.recall and len(self.state.topology.types) > 1
        self._may_skip_asks = endless and not may_move
        promises, by = self.info.promises, rank_of(self.info)
        rank, misfit = promises.rank, SKIP if promises.jobs_independent else RESERVE if promises.reserves else STOP
        alone, moves = misfit != SKIP or leases.recall, not self._may_skip_asks
        self._rule, self._ranked = ImpliedRule(alone, leases.recall), None
        # Reservations are known where seats of one type come free at the ends of jobs alone.
        known = misfit != RESERVE or (not leases.recall and len(self.state.topology.types) == 1)
        if endless and rank is not None and by != UNKNOWN and known:
            self._ranked = ImpliedRule(alone, leases.recall, by, rank.quantum, misfit, moves)
        elif self.info.promises.lone_starts and leases.recall and not may_move and untimed:
            self._ranked = ImpliedRule(True, True, spread_up_to=self.info.promises.spread_up_to)
        self._fresh: tuple[Answer, PendingAsk] | None = None  # an answer and its candidates, not carried out yet
        self._candidates: PendingAsk | None = None
        self._line: Ints | None = None  # rows of the deficits that the last pass went by
        self._single_shapes = True  # the last answer named no other shape and no partner
        self._last_pass = (-math.inf, 0)  # when shares last seated a gang, and `changes` then
        self._is_extending = False  # leases run on through quiet rounds

    def receive(self, moment: Moment, decisions: list[Decision]) -> None:
        """Apply events to the state; while no job waits, count them as known to the policy."""
        super().receive(moment, decisions)
        if self.state.has_uninterruptible:
            self._note_who_can_save(moment, decisions)
        if not self.info.promises.renews_leases:
            return
        if self._no_contention:
            self.asked.note_changes()
        elif not self.leases.aligned:
            settle_extensions(self.state, moment.at, self.leases.length)

    def _note_who_can_save(self, moment: Moment, decisions: list[Decision]) -> None:
        """End leases of jobs that have shown that they can save, and let those go on that may be stopped no more."""
        state, at = self.state, moment.at
        kept = state.hold_what_is_due(at) if state.restartable else NO_INTS
        updates = [event for event in moment.events if isinstance(event, JobUpdated)]
        if not updates and not len(kept):
            return
        pinned = _rows(state, updates, "keeps_seats")
        kept = np.union1d(kept, pinned[state.jobs.held[pinned]])
        rows = _rows(state, updates, "can_save")
        mates = state.jobs.partner[rows]
        both = np.unique(np.concatenate((rows, mates[mates >= 0])))
        freed = both[(state.jobs.on_type[both] >= 0) & ~state.jobs.held[both]]
        state.jobs.until[freed] = self.leases.until(at)
        for changed, until in ((kept, math.inf), (freed, self.leases.until(at))):
            if len(changed) and math.isfinite(self.leases.length):
                decisions.append(Renew(state.names(changed), until))

    # ---- when the policy is asked ----------------------------------------------------------------------------

    def opens(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether seats may be reassigned now: at any moment, those of ended leases."""
        return True

    def asks(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether an answer is needed that could change anything now, and could say more than one thing."""
        if self.asked.pending is not None:
            return False
        if self._may_skip_asks and not self.state.own_lease_ends:
            return self._is_due(at) and self._apply_implied(at, decisions) == ASK
        return self._must_ask(at)

    def shown(self) -> Ints:
        """Return the jobs that an answer could seat: all, or those that wait where no running job can be moved."""
        active = self.state.active
        if self._may_skip_asks and self.info.promises.jobs_independent and not self.leases.recall:
            return active[self.state.jobs.on_type[active] < 0]
        return active.copy()

    @property
    def _no_contention(self) -> bool:
        """Whether no job waits; every running job then keeps its seats, by what the policy promises."""
        return self.info.promises.renews_leases and self.state.waiting == 0 and not self.state.own_lease_ends

    def _is_due(self, at: float) -> bool:
        """Return whether something changed since the last ask, or its answer holds no longer."""
        return self.asked.is_stale or at >= self.asked.again_at

    def _must_ask(self, at: float) -> bool:
        """Return whether an answer is needed and could change anything now."""
        state, cut, due = self.state, self.leases, self._is_due(at)
        if state.alive == 0 or self._no_contention:
            return False
        rounds = cut.is_boundary(at)
        if self.info.answer_type == "shares":
            return due and (rounds or not cut.aligned) and at >= self.asked.last_at + cut.solve_gap
        if (rounds or cut.next_end(state) <= at) and (due or at > self.asked.last_at):
            return True  # once: what else happens at this instant may come of the answer itself
        if due and self.info.answer_type == "order" and self._single_shapes:
            free = bool(state.floor.free.any())
            if state.waiting:
                return cut.recall or free
            return cut.recall and free and len(state.capacity) > 1  # a running job may move to a faster type
        return due

    def _apply_implied(self, at: float, decisions: list[Decision]) -> int:
        """Apply an answer that could only say one thing; return a constant of `core.placement_pass`."""
        implied, start = apply_implied(self.sched, at, math.inf, alone=self._rule.alone, recall=self._rule.recall)
        if start is not None:
            decisions.append(start)
        if implied in (KEPT, STARTED):
            self.asked.note_changes()
        return implied

    def implied_rule(self, *, ranked: bool) -> ImpliedRule | None:
        """Return how events are followed whose answer is implied, while no answer is pending."""
        if self.info.promises.renews_leases or self.state.own_lease_ends or self.asked.pending is not None:
            return None
        if self.state.restartable:  # each moment looks for those that may be stopped no more
            return None
        exact = self._single_shapes and not (self.leases.recall and self.state.has_uninterruptible)
        if ranked and self._ranked is not None and exact and not self.belief.estimates:
            return self._ranked
        return self._rule if self._may_skip_asks else None

    # ---- placement -------------------------------------------------------------------------------------------

    def order(self, answer: Answer, question: PendingAsk, at: float) -> None:
        """Name the candidates by rows of the job table; those of shares are ranked by what they are owed."""
        if isinstance(answer, Order):
            named = job_columns(answer.rows, question, self.state)
            self._single_shapes = answer.rows.shape is None and answer.rows.partner is None
            self._candidates, self._line = named, None
        elif isinstance(answer, Grants):
            named = job_columns(answer.rows, question, self.state)
        elif isinstance(answer, Shares):
            named = job_columns(answer, question, self.state)
            self.deficits.advance(at)
            self.deficits.adopt(named, answer.fill, self.state)
        self._fresh = answer, named
        self.asked.again_at = min(self.asked.again_at, at + self.leases.ask_every)
        if self.state.has_uninterruptible and self.state.jobs.held[self.state.running()].any():
            # The answer says when to ask again as if all seats could change hands, which may be any time soon.
            self.asked.again_at = max(self.asked.again_at, at + HELD_ASK_S)

    def settle(self, at: float, decisions: list[Decision]) -> bool:
        """Give seats by the last answer; of shares, also when leases ended since."""
        fresh, self._fresh = self._fresh, None
        if fresh is None:
            if self.info.answer_type == "shares" and self._seats_may_change(at):
                self._settle_shares(at, decisions)
            return False
        answer, named = fresh
        if isinstance(answer, Order):
            line, size = np.arange(len(named.job)), self.state.jobs.scale_factor[named.job]
            if not self._single_shapes:
                size = sizes_of(named.job, named.shape, self.state)
            self._seating(at, decisions).follow(named, answer.misfit, line, size)
        elif isinstance(answer, Grants):
            seating = self._seating(at, decisions)
            seating.grant(answer, named)
            if seating.has_unnamed_ends:  # jobs wait from now on, which the policy could not see when it was asked
                self.asked.again_at = at
        else:
            self._settle_shares(at, decisions)
        return False

    def _seating(self, at: float, decisions: list[Decision]) -> AnswerPlacer:
        return AnswerPlacer(self.sched, at, self.leases.until(at), self.leases.opening(at), decisions)

    def _seats_may_change(self, at: float) -> bool:
        """Return whether the last answer's shares can seat a gang anew now."""
        if self._last_pass == (at, self.sched.changes):
            return False  # already done; only checkpoint reports arrived since
        return self.asked.is_stale or self.leases.is_boundary(at) or self.leases.next_end(self.state) <= at

    def _settle_shares(self, at: float, decisions: list[Decision]) -> None:
        deficits, cut = self.deficits, self.leases
        seating = self._seating(at, decisions)
        line = deficits.line(self.state, at, cut.length, self.belief.cost)
        self._line, self._candidates = line, None
        if cut.aligned or cut.recall:
            seating.follow(deficits.rows, "skip", line, deficits.size, fill=deficits.fill)
        else:
            # Leases that end apart leave a wide gang no moment at which enough seats are free: it must collect them.
            named = deficits.in_line(line, self.state, self.belief.throughput[self.state.active])
            size = sizes_of(named.job, named.shape, self.state)
            seating.follow(named, "reserve", np.arange(len(named.job)), size)
        deficits.note_seats(self.state)
        self._last_pass = at, self.sched.changes

    # ---- when to wake ----------------------------------------------------------------------------------------

    def set_timer(self, at: float, decisions: list[Decision]) -> None:
        """Wake when something will change by itself; quiet time is skipped."""
        wake, again_at = math.inf, self.asked.again_at
        if self._may_skip_asks and not self.state.own_lease_ends:
            if at < again_at < math.inf and self.state.alive:
                wake = again_at
        elif self._no_contention and not self.leases.aligned:
            rows = extend_leases(self.state)
            if len(rows):
                decisions.append(Renew(self.state.names(rows), math.inf))
        elif self.state.alive:
            coming = (again_at, self._gap_ends(at), self.leases.next_end(self.state), math.inf)
            wake = min(when for when in coming if when > at)
            if self.leases.aligned:
                quiet = self._is_quiet()
                self._extend_rounds(quiet, at, decisions)
                wake = wake if quiet else min(wake, self.leases.next_boundary(at))
        self._wake_at(wake, at, decisions)

    def _gap_ends(self, at: float) -> float:
        """Return when an ask that is due may be made again; inf when none waits for that."""
        due = self.asked.is_stale or self.asked.again_at <= at
        spaced = due and self.info.answer_type == "shares" and not self.leases.aligned
        return self.asked.last_at + self.leases.solve_gap if spaced else math.inf

    def _extend_rounds(self, quiet: bool, at: float, decisions: list[Decision]) -> None:
        """Extend leases while nothing wakes the core at their common end, or a real world would see them lapse."""
        if self.asked.pending is not None or not (quiet or self._is_extending):
            return  # an answer may seat other jobs, or no lease is extended
        jobs, running = self.state.jobs, self.state.running()
        if quiet and not self.state.own_lease_ends:
            rows, until = running[jobs.until[running] < math.inf], math.inf
        else:
            rows, until = running[jobs.lease_extended[running]], self.leases.next_boundary(at)
        self._is_extending = quiet
        if len(rows):
            jobs.until[rows], jobs.lease_extended[rows] = until, quiet
            decisions.append(Renew(self.state.names(rows), until))

    def _is_quiet(self) -> bool:
        """Return whether the next common end would change nothing."""
        if self.asked.is_stale or self.asked.pending is not None:
            return False
        if self.info.answer_type == "shares":
            return self.deficits.settled(self.state)
        return self.state.waiting == 0 and self._single_shapes  # in another shape a job may go faster by then

    def named(self) -> Sequence[PendingAsk]:
        """Return the candidates of the last answer."""
        return [self.deficits.rows] if self._candidates is None else [self.deficits.rows, self._candidates]

    # ---- explanations ----------------------------------------------------------------------------------------

    @property
    def candidates(self) -> PendingAsk | None:
        """The candidates of the last pass, the highest priority first."""
        if self._line is not None:
            throughput = self.belief.throughput[self.state.active]
            self._candidates, self._line = self.deficits.in_line(self._line, self.state, throughput), None
        return self._candidates

    def spent_share(self, row: int) -> Sequence[tuple[int, float]]:
        """Return type and share of a job that has received all that it is owed by now; else nothing."""
        deficits = self.deficits
        mine = deficits.job == row
        if self.info.answer_type != "shares" or not mine.any() or (deficits.lag[mine] > 0).any():
            return ()
        return list(zip(deficits.type[mine].tolist(), deficits.x[mine].tolist(), strict=True))


def _rows(state: State, updates: Sequence[JobUpdated], what: str) -> Ints:
    """Return the jobs of which that is said."""
    rows = (state.row(event.job_id) for event in updates if getattr(event, what))
    return np.array([row for row in rows if row is not None], dtype=np.int64)


def extend_leases(state: State) -> Ints:
    """Return and mark the running jobs whose leases still have an end for the backend."""
    jobs, running = state.jobs, state.running()
    rows = running[~jobs.lease_extended[running] & (jobs.until[running] < math.inf)]
    jobs.lease_extended[rows] = True
    return rows


def settle_extensions(state: State, at: float, length: float) -> None:
    """Set the ends of extended leases of `length` seconds to their first renewal from `at` on."""
    running = state.running()
    late = running[state.jobs.until[running] < at]
    until = state.jobs.until[late]
    state.jobs.until[late] = until + np.ceil((at - until) / length) * length
