"""What the answer of a policy is checked against: the jobs and the cluster that it was asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from eunomia.core.answer_rows import PendingAsk
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.answers import InvalidAnswer
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import PolicyInfo
from eunomia.model.topology import Topology
from eunomia.model.view import View


class AnswerFacts(Protocol):
    """Jobs are rows of the view that was answered; `active` has their rows in the tables by job."""

    info: PolicyInfo
    at: float  # of the ask, in seconds
    types: tuple[str, ...]
    active: Ints  # (job,) rows of the four tables that follow
    stage: Ints  # (row,) above RUNNING = it has ended since the ask
    scale_factor: Ints  # (row,) accelerators
    throughput: Floats  # (row, type) believed steps/s; 0 = cannot run there
    capacity: Floats  # (type,) accelerators that were in service at the ask

    def name(self, m: int) -> str | int:
        """Return the id of a job, or its row where it has none."""
        ...

    def has_run(self, m: int) -> bool:
        """Return whether a job held accelerators before."""
        ...

    def shapes_of(self, job: Ints) -> Ints:
        """Return how many shapes each job has, (row,)."""
        ...

    def size_in(self, job: Ints, shape: Ints) -> Ints:
        """Return the accelerators of each job in one of its shapes, (row,)."""
        ...

    def shape_speeds(self, job: Ints, shape: Ints, type: Ints) -> Floats:
        """Return believed steps/s of each job in one of its shapes, (row,)."""
        ...

    def pair_speeds(self, job: Ints, partner: Ints, type: Ints) -> Floats:
        """Return believed steps/s of each job beside its partner, (row,); 0 = they do not fit."""
        ...

    def topology(self) -> Topology:
        """Return where the accelerators are."""
        ...

    def whole(self) -> Floats:
        """Return the accelerators of each type with all machines in service, (type,)."""
        ...

    def holder(self) -> Ints:
        """Return the job that keeps each device, (device,): -1 = none, -2 = out of service at the ask."""
        ...


def refused(facts: AnswerFacts, rule: str, fix: str) -> InvalidAnswer:
    """Return the refusal of an answer."""
    return InvalidAnswer(rule, fix, facts.info.name, facts.at)


class StateFacts:
    """The facts of an ask of a scheduler."""

    __slots__ = (
        "_now", "_sched", "_stale", "active", "at", "capacity", "info", "scale_factor", "stage", "throughput", "types",
    )  # fmt: skip

    def __init__(
        self, info: PolicyInfo, sched: SchedulerState, question: PendingAsk, asked: float, now: float, *, stale: bool
    ):
        state = sched.state
        self.info, self.at, self.types, self.active = info, asked, state.topology.types, question.active
        self.stage, self.scale_factor = state.jobs.stage, state.jobs.scale_factor
        self.throughput = sched.belief.throughput
        # Of a later answer it is not known what was out of service when it was asked for.
        self.capacity = state.topology.capacity() if stale else state.capacity
        self._sched, self._now, self._stale = sched, now, stale

    def name(self, m: int) -> str:
        return self._sched.state.ids[int(self.active[m])]

    def has_run(self, m: int) -> bool:
        return bool(self._sched.state.jobs.ran[self.active[m]])

    def shapes_of(self, job: Ints) -> Ints:
        return self._sched.state.shapes.counts_of(self.active[job])

    def size_in(self, job: Ints, shape: Ints) -> Ints:
        return self._sched.state.shapes.size_in(self.active[job], shape)

    def shape_speeds(self, job: Ints, shape: Ints, type: Ints) -> Floats:
        speeds = self._sched.belief.shape_throughput(self._sched.state.shapes, self.active[job])
        return np.asarray(speeds[np.arange(len(job)), shape, type])

    def pair_speeds(self, job: Ints, partner: Ints, type: Ints) -> Floats:
        belief = self._sched.belief
        return np.asarray(belief.paired()[belief.kind[self.active[job]], belief.kind[self.active[partner]], type])

    def topology(self) -> Topology:
        return self._sched.state.topology

    def whole(self) -> Floats:
        return self._sched.state.topology.capacity()

    def holder(self) -> Ints:
        state = self._sched.state
        place = np.full(len(state.jobs) + 1, -1)
        place[self.active] = np.arange(len(self.active))
        holder = np.where(state.jobs.until[state.holder] <= self._now, -1, place[state.holder])
        if self._stale:  # a seat that went since then is no mistake: its gang is dropped
            return holder
        return np.where(state.floor.up[state.topology.node] & ~state.taken, holder, -2)


class ColumnFacts:
    """The facts of a view: `columns` are its columns, or more, of which scale_factor, throughput and capacity are read.

    Others are read where the answer is about them; one that is not there, or None, refuses it.
    """

    def __init__(
        self, info: PolicyInfo, view: View, columns: Mapping[str, Any], name: Callable[[int], str | int]
    ) -> None:
        self.info, self.at, self.types, self.active = info, view.at, view.types, np.arange(view.jobs)
        self.stage = np.zeros(view.jobs, dtype=np.int64)
        self.scale_factor, self.throughput = columns["scale_factor"], columns["throughput"]
        self.capacity, self._columns, self.name = columns["capacity"], columns, name
        self._whole = view.whole

    def _column(self, name: str) -> Any:
        found = self._columns.get(name)
        if found is None:
            rule = f"the answer is about {name}, of which nothing is known here"
            raise refused(self, rule, "leave partners, shapes and seats out")
        return found

    def has_run(self, m: int) -> bool:
        first = self._columns.get("first_started")
        return first is not None and bool(first[m] < np.inf)

    def shapes_of(self, job: Ints) -> Ints:
        return np.asarray((self._column("shapes")[job] > 0).sum(axis=1))

    def size_in(self, job: Ints, shape: Ints) -> Ints:
        return np.asarray(self._column("shapes")[job, shape])

    def shape_speeds(self, job: Ints, shape: Ints, type: Ints) -> Floats:
        return np.asarray(self._column("shape_throughput")[job, shape, type])

    def pair_speeds(self, job: Ints, partner: Ints, type: Ints) -> Floats:
        kind = self._column("job_class")
        return np.asarray(self._column("packed_throughput")[kind[job], kind[partner], type])

    def topology(self) -> Topology:
        found: Topology = self._column("topology")
        return found

    def whole(self) -> Floats:
        return np.asarray(self.capacity if self._whole is None else np.maximum(self._whole, self.capacity))

    def holder(self) -> Ints:
        holder = self._column("holder")
        return np.where((holder >= 0) & (self._column("lease_end")[holder] <= self.at), -1, holder)
