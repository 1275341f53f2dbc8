"""Decides which jobs run where. Its state is a function of the moments so far, and of nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from eunomia.core.asking import Asks
from eunomia.core.belief import Belief
from eunomia.core.ended_jobs import forget_ended
from eunomia.core.mechanism import Core, ImpliedRule, MechanismConfig
from eunomia.core.recent_events import MOMENTS, Happened, last_events
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.certificate import Certificate
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import IllegalStep
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.policy import PolicyInfo
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology


class Scheduler:
    """Events in, decisions out. `handle` alone changes the state; `mechanism` says how time is cut.

    With `checked` every moment ends with the invariants, which raise when one is broken. `comes_again` says, by tenant
    and reason, whether a job that failed would fail again and so is not tried again; it is called for every failure
    and may remember them. Left out: every job is tried again while it has retries.
    """

    def __init__(
        self,
        topology: Topology,
        info: PolicyInfo,
        mechanism: MechanismConfig,
        belief: Belief,
        *,
        seed: int = 0,
        checked: bool = False,
        price: Floats | None = None,
        tenants: Mapping[str, Tenant] | None = None,
        comes_again: Callable[[str, str], bool] | None = None,
    ):
        sched = SchedulerState(topology, belief, price, tenants)
        sched.comes_again = comes_again or sched.comes_again
        self._sched, self._checked, self._history = sched, checked, deque[Happened](maxlen=MOMENTS)
        self.info, self.state, self.ledger, self.belief = info, sched.state, sched.ledger, belief
        self.state.keep_entitlements(info.needs, info.usage_half_life_s)
        self.state.lease = mechanism.lease_s
        self.asks = Asks(info, sched, seed)
        self.mechanism = mechanism.bind(Core(sched, self.asks, seed))

    def handle(self, moment: Moment) -> list[Decision]:
        """Apply all events of one instant, then decide once.

        Raises InvalidAnswer for an answer that breaks a rule; nothing of it is used.
        """
        at, mechanism, asks = moment.at, self.mechanism, self.asks
        decisions: list[Decision] = []
        self._history.append((moment, decisions))
        try:
            self._sched.advance_to(at)
            mechanism.receive(moment, decisions)
            asks.note_abandoned(moment)
            answer, more = None if asks.pending is None else asks.answer_in(moment), True
            if answer is not None and asks.pending is not None:
                asks.check(answer, asks.pending, asks.last_at, at)
                mechanism.order(answer, asks.accept(answer, at, decisions), at)
                more = mechanism.settle(at, decisions)
                more = more or (at > asks.last_at and asks.is_stale)  # what came since the ask needs one of its own
            while more and mechanism.opens(at, decisions):
                if mechanism.asks(at, decisions):
                    rows = mechanism.shown()
                    decisions.append(asks.ask(at, rows, mechanism.columns(at, rows)))
                    break
                more = mechanism.settle(at, decisions)
            mechanism.set_timer(at, decisions)
        except IllegalStep as error:
            text = f"{error}; its last events: {last_events(self._history, error.job_id)}"
            raise IllegalStep(error.job_id, text) from error
        if self._checked:
            mechanism.check()
        return decisions

    def expect(self, jobs: int) -> None:
        """Make room for so many jobs in all, where that is known; more may come."""
        self._sched.expect(jobs)

    def forget_ended(self) -> Ints | None:
        """Drop the rows of jobs that have ended, once they are about half; no decision depends on it.

        Returns the new number of each row, -1 = dropped; None where all stay as they are.
        """
        return forget_ended(self._sched, self.asks, self.mechanism)

    def copy(self) -> Scheduler:
        """Return a scheduler with the same state that knows nothing of what happens to this one from now on.

        Jobs, topology, speeds and what else never changes are shared. The last events, which only messages name, are
        not copied.
        """
        belief = self.belief
        shared: list[Any] = [*belief.estimates.values(), self.state.topology, belief.speeds]
        shared += [self.info, self._sched.comes_again]
        memo: dict[int, Any] = {id(one): one for one in shared}
        memo[id(self._history)] = deque[Happened](maxlen=MOMENTS)
        return deepcopy(self, memo)

    # ---- many moments at once ----------------------------------------------------------------------------------

    def implied_rule(self, *, ranked: bool) -> ImpliedRule | None:
        """Return how events are followed whose decision needs no ask; None if every moment has to be handled by itself.

        `ranked`: an answer need not be asked for that follows from what the policy ranks by.
        """
        sched = self.state
        if self._checked or sched.entitlements is not None or sched.losses is not None:
            return None
        return self.mechanism.implied_rule(ranked=ranked)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays of the state, for compiled steps; see `core.kernel_arrays`."""
        return self._sched.arrays

    def pass_scratch(self, more: int) -> tuple[Ints, Ints]:
        """Return scratch arrays for a pass over all active jobs and so many more, and for its seats."""
        return self._sched.kernel_scratch(more)[:2]

    def foresee(self, jobs: Sequence[Job]) -> int:
        """Write the columns of jobs that will be submitted next; return of how many. See `SchedulerState.foresee`."""
        return self._sched.foresee(jobs)

    def apply_implied(self, batch: MomentBatch, known: int) -> None:
        """Add moments that compiled steps have played; the last answer holds for the first `known` of them."""
        self._sched.demand_legal()
        self._sched.submit_foreseen(batch.submitted)
        self._sched.changes += known
        if known:
            self.asks.note_changes()
        self._sched.changes += len(batch) - known
        self._history.append(batch)

    def note_played(self, answers: int, answered_at: float, again_at: float, wake: float, passes: int) -> None:
        """Note how many answers compiled steps have given by rank, when the last, what they set, and passes in all."""
        self.asks.note_ranked(answers, answered_at, again_at)
        self.mechanism.timer, self.state.pass_count = wake, passes

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the last answer, where it was optimised."""
        return self.asks.certificate
