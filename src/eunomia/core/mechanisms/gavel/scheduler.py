"""Gavel's scheduler behind the core's door: the same events in, the same decisions out, its own clock between them.

It shares the core's state and belief, so that records, metrics and explanations read it as they read ours; when and
where jobs run is the clock's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eunomia.core.answer_rows import PendingAsk, job_columns, sizes_of
from eunomia.core.belief import Belief
from eunomia.core.check import check
from eunomia.core.mechanisms.gavel.accounts import DROPPED
from eunomia.core.mechanisms.gavel.clock import Clock
from eunomia.core.mechanisms.gavel.orders import Seats
from eunomia.core.mechanisms.gavel.settings import GavelRounds
from eunomia.core.mechanisms.gavel.whole import whole_shares
from eunomia.core.mechanisms.leases import Leases
from eunomia.core.scheduler import Scheduler
from eunomia.model.answers import Answer, InvalidAnswer, Order, Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Refuse, Stop, WakeAt
from eunomia.model.events import (
    Answered,
    Event,
    JobCancelled,
    JobFinished,
    JobPaused,
    JobSubmitted,
    JobUpdated,
    Measured,
    Moment,
)
from eunomia.model.job_lifecycle import Cause, IllegalStep, Stage
from eunomia.model.policy import PolicyInfo
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology

_PATIENCE = 20  # questions at one instant; gangs without a step to do are dropped after fewer


class GavelScheduler(Scheduler):
    """Events in, decisions out, in Gavel's rounds. `clock` holds its books."""

    def __init__(
        self,
        topology: Topology,
        info: PolicyInfo,
        rounds: GavelRounds,
        belief: Belief,
        *,
        seed: int = 0,
        checked: bool = False,
        price: Floats | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ):
        common = Leases(length=rounds.round_s, aligned=True)
        super().__init__(topology, info, common, belief, seed=seed, checked=checked, price=price, tenants=tenants)
        self.rounds = rounds
        self.clock = Clock(rounds, topology, seed, self._beside)
        self._seats = Seats(self._books)
        self._by_right: Ints = np.full(0, -1, dtype=np.int64)  # (job,) type that the last order gave it whole
        self._stood, self._still = -1.0, 0  # an instant at which nothing could begin, and how often
        self._came = False  # somebody came since the last round was opened

    def handle(self, moment: Moment) -> list[Decision]:
        """Take in all that happened at one instant, then decide once."""
        at, orders, answer = moment.at, list[Decision](), None
        self._books.reckon(at)
        for event in moment.events:
            if isinstance(event, Answered):
                answer = self._matching(event)
            else:
                orders += self._hear(event, at)
        if answer is not None:
            self._take_over(answer, at, orders)
            self._open(at, orders)
        elif self._question is None and (at >= self.clock.end if self.clock.running else self._came):
            self._turn(at, orders)
        if self._checked:
            check(self.state)
        return orders

    def holdup(self, row: int, at: float) -> tuple[str, str] | None:
        """Return why a job waits though seats are free, or came after they were given: rounds are kept to."""
        now, state = self.clock.now, self.state
        if now is None:
            return None
        size = int(state.jobs.scale_factor[row])
        room = np.where(self.belief.throughput[row] > 0, state.floor.free, 0)
        if room.max() < size and state.jobs.submitted[row] <= now.at:
            return None
        free = f"{room.max()} are free and it needs {size}, but " if room.max() >= size else ""
        if at == now.at:
            return "not_chosen", f"{free}the round that begins now gives it none; the next begins at {now.end:,.0f} s"
        return "next_round", f"{free}seats are given when a round begins; the next begins at {now.end:,.0f} s"

    # ---- what happened ---------------------------------------------------------------------------------------

    def _hear(self, event: Event, at: float) -> list[Decision]:
        """Write an event into the books. What else can happen to a gang Gavel's simulator does not know."""
        jobs, books = self.state.jobs, self._books
        match event:
            case JobSubmitted(job):
                books.submit(job)
                row = self.clock.submit(job.scale_factor, job.total_steps, self.belief.throughput[len(jobs) - 1])
                assert row == len(jobs) - 1
                if self.info.remembers:
                    self._memory.add()
                self._came = True
            case JobFinished(name, epoch):
                row = self.state.row_of[name]
                if jobs.stage[row] == Stage.RUNNING and jobs.epoch[row] == epoch:
                    books.leave(row, at, Cause.FINISHED)
            case JobCancelled(name):
                row = self.state.row_of[name]
                running, epoch = jobs.stage[row] == Stage.RUNNING, int(jobs.epoch[row])
                if jobs.stage[row] in (Stage.RUNNING, Stage.WAITING):
                    self.clock.withdraw(row)
                    books.leave(row, at, Cause.CANCELLED)
                return [Stop((name,), (epoch,), save=False)] if running else []
            case JobPaused(name):
                raise IllegalStep(f"job {name!r} is paused; Gavel's rounds give seats until they end and know no pause")
            case Measured(name, steps, loss):
                self.state.hear_loss(self.state.row_of[name], steps, loss)
            case JobUpdated(name, weight, total_steps):
                books.update(self.state.row_of[name], weight, total_steps)
        return []

    # ---- from round to round ---------------------------------------------------------------------------------

    def _turn(self, at: float, orders: list[Decision]) -> None:
        """End a round, if one is open, and begin the next."""
        for row in self.clock.close().tolist():
            if self.clock.jobs.fate[row] == DROPPED and self.state.jobs.stage[row] == Stage.RUNNING:
                self._drop(row, at, orders)
        self.clock.admit()
        self._came = False
        asks = self.clock.due(at)
        if asks:  # though nobody be there to ask about: the next question waits from now on
            self.clock.count_afresh(at)
        if asks and self.state.alive:
            orders.append(self._ask(at))
        else:
            self._open(at, orders)

    def _open(self, at: float, orders: list[Decision]) -> None:
        """Begin a round, and say when it ends."""
        found = self.clock.open(at)
        orders += self._seats.decisions(found, at)
        if self.clock.end <= at and (found.second >= 0).all():
            self.clock.close()  # pairs without a step to do are never dropped, and time would stand still
        if self.clock.running:
            orders.append(WakeAt(self.clock.end))
        elif self.state.alive and len(self.state.jobs) == self.rounds.expected:
            self.clock.forget_last_reset()  # nobody is left to come, and time would stand still
            if self.clock.due(at):
                self._demand_steps(at)
                self._turn(at, orders)

    def _demand_steps(self, at: float) -> None:
        """Raise InvalidAnswer when the policy is asked once more at an instant at which nothing can begin."""
        self._still = self._still + 1 if self._stood == at else 0
        self._stood = at
        if self._still > _PATIENCE:
            names = ", ".join(self.state.names(self.state.active[:3]))
            raise InvalidAnswer(
                f"time stands still at {at} s: nobody who is given seats has a step to do in {self.rounds.round_s} s "
                f"({names}, …); lengthen round_s"
            )

    def _drop(self, row: int, at: float, orders: list[Decision]) -> None:
        name, epoch = self.state.submitted[row].job_id, int(self.state.jobs.epoch[row])
        self._books.leave(row, at, Cause.STOPPED)
        self._books.leave(row, at, Cause.REFUSED)
        why = f"one of its workers had no step to do in {self.rounds.most_failures} rounds in a row"
        orders += [Stop((name,), (epoch,)), Refuse(name, why)]

    # ---- the allocation --------------------------------------------------------------------------------------

    def _take_over(self, answer: Answer, at: float, orders: list[Decision]) -> None:
        """Adopt shares, or an order as whole shares. Raises InvalidAnswer for grants."""
        question, self._question = self._question, None
        assert question is not None
        self._remember(answer, question)
        self._refuse(answer, question, at, orders)
        self._told = question.active, answer.why
        self.certificate = answer.certificate
        if isinstance(answer, Order):
            named = self._whole(answer, question)
        elif isinstance(answer, Shares):
            named = job_columns(answer, question, self.state)
        else:
            raise InvalidAnswer(f"policy {self.info.name!r} grants seats; Gavel's rounds take shares or an order")
        self.last_order = named
        self.clock.adopt(question.active, named.job, named.partner, named.type, named.x)

    def _whole(self, answer: Order, question: PendingAsk) -> PendingAsk:
        named = job_columns(answer.rows, question, self.state)
        size = sizes_of(named.job, named.shape, self.state)
        given = whole_shares(named.job, named.type, size, self.state.capacity, answer.misfit != "skip")
        self._by_right = np.full(len(self.state.jobs), -1, dtype=np.int64)
        self._by_right[named.job[given]] = named.type[given]
        columns = named.job[given], named.type[given], named.partner[given], named.shape[given]
        return PendingAsk(named.asked, named.active, *columns, x=np.ones(int(given.sum())))

    def _columns(self, at: float, active: Ints) -> dict[str, Any]:
        """Return what the policy needs to see; progress and seats as Gavel's books have them."""
        jobs = self.clock.jobs
        columns = super()._columns(at, active)
        if self.info.door == "order":  # who fills in for a round does not hold seats
            mine = np.full(len(self.state.jobs), -1, dtype=np.int64)
            mine[: len(self._by_right)] = self._by_right
            on_type = mine[active]
        else:
            on_type = self.state.jobs.on_type[active]
        own = {
            "remaining": (jobs.total - jobs.done)[active],
            "received": jobs.held[active],
            "service": jobs.held[active].sum(axis=1) * jobs.size[active],
            "on_type": on_type,
            "running": on_type >= 0,
        }
        return columns | {name: column for name, column in own.items() if name in self.info.needs}

    def _beside(self, mine: int, other: int) -> Floats:
        """Return steps/s of one job beside another of its size, (type,)."""
        jobs = self.state.submitted
        return self.belief.speeds.beside(jobs[mine].job_type, jobs[other].job_type, jobs[mine].scale_factor)
