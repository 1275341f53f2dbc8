"""Gavel's rounds as a mechanism of the core: the clock decides when and where jobs run.

State and belief are the core's, so that records, metrics and explanations read them as they read those of leases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.core.answer_rows import PendingAsk, job_columns, sizes_of
from eunomia.core.event_handlers import UnknownEvent, apply_event
from eunomia.core.mechanism import Core, Mechanism
from eunomia.kernels import kernel
from eunomia.mechanisms.gavel_rounds.config import GavelRounds
from eunomia.mechanisms.gavel_rounds.progress_accounting import DROPPED
from eunomia.mechanisms.gavel_rounds.round_decisions import RoundSeats
from eunomia.mechanisms.gavel_rounds.round_progress import RoundClock
from eunomia.model.answers import Answer, InvalidAnswer, Order, Shares
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.decisions import Decision, Refuse, SetTimer, Stop
from eunomia.model.events import (
    Answered,
    AppFinished,
    JobCancelled,
    JobFinished,
    JobSubmitted,
    JobUpdated,
    Measured,
    Moment,
    Progressed,
    TimerFired,
)
from eunomia.model.job_lifecycle import Cause, Stage
from eunomia.model.wait_reason import Reason

_PATIENCE = 20  # asks at one instant; gangs without a step to do are dropped after fewer
# Gavel's simulator runs gangs until a round ends, without pauses, failures or lost machines; the clock counts steps.
_COUNTED = (JobFinished, JobUpdated, Measured, AppFinished, TimerFired)


class GavelMechanism(Mechanism):
    """Gavel's rounds of one scheduler. `clock` holds their accounts."""

    def __init__(self, rounds: GavelRounds, core: Core) -> None:
        super().__init__(core)
        self.rounds = rounds
        self.clock = RoundClock(rounds, self.state.topology, core.seed, self._beside)
        self._seats = RoundSeats(self.sched)
        self._candidates: PendingAsk | None = None
        self._by_right: Ints = np.full(0, -1, dtype=np.int64)  # (job,) type that the last order gave it whole
        self._stood, self._still = -1.0, 0  # an instant at which nothing could begin, and how often
        self._wake_at_end = False  # a round has just begun
        self._came = False  # jobs came since the last round was opened, or no job is left to come

    # ---- what happened ---------------------------------------------------------------------------------------

    def receive(self, moment: Moment, decisions: list[Decision]) -> None:
        """Apply events to the state and to the clock."""
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    decisions += apply_event(event, moment.at, self.sched)
                    last = len(self.state.jobs) - 1
                    row = self.clock.submit(job.scale_factor, job.total_steps, self.belief.throughput[last])
                    assert row == last
                    self._came = True
                case JobCancelled(name):
                    row = self.state.row_of[name]
                    if self.state.jobs.stage[row] in (Stage.RUNNING, Stage.WAITING):
                        self.clock.withdraw(row)
                    decisions += apply_event(event, moment.at, self.sched)
                case Progressed() | Answered():
                    pass
                case _ if isinstance(event, _COUNTED):
                    decisions += apply_event(event, moment.at, self.sched)
                case _:
                    raise UnknownEvent(event, "the mechanism gavel")

    # ---- from round to round ---------------------------------------------------------------------------------

    def opens(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether a round may begin now; end the open round, if any."""
        if self.asked.pending is not None or not (at >= self.clock.end if self.clock.running else self._came):
            return False
        for row in self.clock.close().tolist():
            if self.clock.jobs.outcome[row] == DROPPED and self.state.jobs.stage[row] == Stage.RUNNING:
                self._drop(row, at, decisions)
        self.clock.admit()
        self._came = False
        return True

    def asks(self, at: float, decisions: list[Decision]) -> bool:
        """Return whether the policy is to be asked before the round begins."""
        if not self.clock.due(at):
            return False
        self.clock.count_afresh(at)  # restart the ask interval even when there are no jobs
        return self.state.alive > 0

    def settle(self, at: float, decisions: list[Decision]) -> bool:
        """Begin a round and plan its end."""
        found = self.clock.open(at)
        decisions += self._seats.decisions(found, at)
        if self.clock.end <= at and (found.second >= 0).all():
            self.clock.close()  # pairs without a step to do are never dropped, and time would stand still
        if self.clock.running:
            self._wake_at_end = True
        elif self.state.alive and len(self.state.jobs) == self.rounds.expected:
            self.clock.forget_last_reset()  # no job is left to come, and time would stand still
            if self.clock.due(at):
                self._demand_steps(at)
                self._came = True
                return True
        return False

    def set_timer(self, at: float, decisions: list[Decision]) -> None:
        """Wake when the round ends that has just begun."""
        if self._wake_at_end:
            decisions.append(SetTimer(self.clock.end))
            self._wake_at_end = False

    def _demand_steps(self, at: float) -> None:
        """Raise InvalidAnswer when the policy is asked once more at an instant at which nothing can begin."""
        self._still = self._still + 1 if self._stood == at else 0
        self._stood = at
        if self._still > _PATIENCE:
            names = ", ".join(self.state.names(self.state.active[:3]))
            raise InvalidAnswer(
                f"time stands still at {at} s: no job that is given seats has a step to do in {self.rounds.round_s} s "
                f"({names}, …); lengthen round_s"
            )

    def _drop(self, row: int, at: float, decisions: list[Decision]) -> None:
        name, epoch = self.state.submitted[row].job_id, int(self.state.jobs.epoch[row])
        self.sched.leave(row, at, Cause.STOPPED)
        self.sched.leave(row, at, Cause.REFUSED)
        why = f"one of its workers had no step to do in {self.rounds.most_failures} rounds in a row"
        decisions += [Stop((name,), (epoch,)), Refuse(name, why)]

    # ---- the allocation --------------------------------------------------------------------------------------

    def order(self, answer: Answer, question: PendingAsk, at: float) -> None:
        """Adopt shares, or an order as whole shares. Raises InvalidAnswer for grants."""
        if isinstance(answer, Order):
            named = self._whole(answer, question)
        elif isinstance(answer, Shares):
            named = job_columns(answer, question, self.state)
        else:
            raise InvalidAnswer(f"policy {self.info.name!r} grants seats; Gavel's rounds take shares or an order")
        self._candidates = named
        self.clock.adopt(question.active, named.job, named.partner, named.type, named.x)

    def _whole(self, answer: Order, question: PendingAsk) -> PendingAsk:
        named = job_columns(answer.rows, question, self.state)
        size = sizes_of(named.job, named.shape, self.state)
        given = whole_shares(named.job, named.type, size, self.state.capacity, answer.misfit != "skip")
        self._by_right = np.full(len(self.state.jobs), -1, dtype=np.int64)
        self._by_right[named.job[given]] = named.type[given]
        columns = named.job[given], named.type[given], named.partner[given], named.shape[given]
        return PendingAsk(named.asked, named.active, *columns, x=np.ones(int(given.sum())))

    def columns(self, at: float, rows: Ints) -> dict[str, Any]:
        """Return what the policy needs to see; progress and seats as Gavel accounts them."""
        jobs = self.clock.jobs
        columns = super().columns(at, rows)
        if self.info.answer_type == "order":  # a job that fills in for a round holds no seats
            mine = np.full(len(self.state.jobs), -1, dtype=np.int64)
            mine[: len(self._by_right)] = self._by_right
            on_type = mine[rows]
        else:
            on_type = self.state.jobs.on_type[rows]
        own = {
            "remaining": (jobs.total - jobs.done)[rows],
            "held_time_by_type": jobs.held[rows],
            "service": jobs.held[rows].sum(axis=1) * jobs.size[rows],
            "on_type": on_type,
            "running": on_type >= 0,
        }
        return columns | {name: column for name, column in own.items() if name in self.info.needs}

    @property
    def candidates(self) -> PendingAsk | None:
        """The candidates of the last answer."""
        return self._candidates

    def wait_reason(self, row: int, at: float) -> Reason | None:
        """Return why a job waits though seats are free, or came after they were given: rounds are kept to."""
        now, state = self.clock.now, self.state
        if now is None:
            return None
        size = int(state.jobs.scale_factor[row])
        room = np.where(self.belief.throughput[row] > 0, state.floor.free, 0)
        if room.max() < size and state.jobs.submitted[row] <= now.at:
            return None
        return Reason("round_full" if at == now.at else "next_round", numbers=(size, int(room.max()), now.end))

    def _beside(self, mine: int, other: int) -> Floats:
        """Return steps/s of one job beside another of its size, (type,)."""
        jobs = self.state.submitted
        return self.belief.speeds.packed_throughput(jobs[mine].job_type, jobs[other].job_type, jobs[mine].scale_factor)


@kernel()
def whole_shares(job: Ints, type: Ints, size: Ints, capacity: Floats, stops: bool) -> Bools:
    """Return which rows get all of their time, (row,); rows of one job stand together, the best first.

    With `stops` no job passes one for which no type has enough accelerators left. A job that finds room only on types
    that its rows do not name, where it cannot run, gets nothing and delays no other: so the published queue does it.
    """
    free = capacity.copy()
    given = np.zeros(len(job), np.bool_)
    row = 0
    while row < len(job):
        last = row
        while last < len(job) and job[last] == job[row]:
            last += 1
        if stops and (free < size[row]).all():
            break
        for k in range(row, last):
            if free[type[k]] >= size[k]:
                free[type[k]] -= size[k]
                given[k] = True
                break
        row = last
    return given
