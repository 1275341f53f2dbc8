"""When a job was preempted, and by which jobs: those that got its accelerators at that moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model.arrays import NO_INTS, Ints
from eunomia.model.events import Event, Moment, NodeLost
from eunomia.model.job_lifecycle import Stage
from eunomia.model.wait_reason import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """A stop of a running job that the policy decided."""

    at: float
    by: tuple[str, ...]  # jobs that started at that moment on its accelerators, or else on others of the type
    ranked: bool  # the policy's order then had all of these before it
    moved: bool  # it went on at the same moment on other accelerators, or with others

    def reason(self, policy: str, names: tuple[str, ...]) -> Reason:
        """Return why the job has waited since, of the policy that stopped it; these of the jobs may be named."""
        return Reason("preempted", names, (len(self.by),), (policy if self.ranked else "",))


def takers(scheduler: Scheduler, row: int, seats: Ints, at: float) -> list[int]:
    """Return the jobs that started now on these seats, from the state after a decision; if none did, on their types."""
    state = scheduler.state
    running = state.running()
    started = running[(scheduler.ledger.since[running] == at) & (running != row)]
    holders = np.unique(state.holder[seats])
    mates = state.jobs.partner[holders[holders >= 0]]
    direct = started[np.isin(started, holders) | np.isin(started, mates)]
    if len(direct):
        return [int(one) for one in direct]
    types = np.unique(state.topology.type[seats])
    return [int(one) for one in started[np.isin(state.jobs.on_type[started], types)]]


def preemption_of(scheduler: Scheduler, row: int, seats: Ints, at: float) -> Preemption:
    """Return the preemption of a job that held these seats before the last decision."""
    state, last = scheduler.state, scheduler.mechanism.candidates
    by = takers(scheduler, row, seats, at)
    ranked = False
    if by and last is not None:
        first = [np.flatnonzero(last.job == one)[:1] for one in (*by, row)]
        ranked = all(len(place) for place in first) and all(place[0] < first[-1][0] for place in first[:-1])
    moved = bool(state.jobs.stage[row] == Stage.RUNNING)
    names = () if moved else tuple(state.ids[one] for one in by)
    return Preemption(at=at, by=names, ranked=ranked and not moved, moved=moved)


def stops_for_events(events: Sequence[Event], job_id: str) -> bool:
    """Say whether a job that ran may have been stopped by what happened, and not by the policy."""
    return any(isinstance(event, NodeLost) or getattr(event, "job_id", None) == job_id for event in events)


@dataclass(slots=True)
class PreemptionLog:
    """The preemptions of one job, from the states after each moment."""

    found: list[Preemption] = field(default_factory=list)
    _seats: Ints = field(default_factory=lambda: NO_INTS)  # before this moment
    _epoch: int = 0

    def note(self, moment: Moment, scheduler: Scheduler, row: int) -> None:
        """Note what became of the job in one moment."""
        state = scheduler.state
        stage, epoch = state.jobs.stage[row], int(state.jobs.epoch[row])
        stopped = stage == Stage.WAITING or (stage == Stage.RUNNING and epoch != self._epoch)
        if len(self._seats) and stopped and not stops_for_events(moment.events, state.ids[row]):
            self.found.append(preemption_of(scheduler, row, self._seats, moment.at))
        self._epoch = epoch
        self._seats = _seats_of(scheduler, row) if stage == Stage.RUNNING else NO_INTS


def _seats_of(scheduler: Scheduler, row: int) -> Ints:
    """Return the seats of a running job, also of the second of a pair; none where time is divided without seats."""
    state = scheduler.state
    holder = row if state.jobs.first_device[row] >= 0 else int(state.jobs.partner[row])
    return state.seats_of(holder) if holder >= 0 else NO_INTS
