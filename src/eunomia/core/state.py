"""Jobs and their seats. Changed by the scheduler alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.core.entitlements import NEEDED_BY, Entitlements
from eunomia.core.job_shapes import JobShapes
from eunomia.core.kernel_arrays import ALIVE, FLAGS, FLOATS, INTS, WAITING
from eunomia.core.tenant_index import TenantIndex
from eunomia.core.training_losses import SeenLosses
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_ids import JobIdList
from eunomia.model.job_lifecycle import Stage
from eunomia.model.job_table import SubmittedJobs, job_array, job_values
from eunomia.model.row_index import RowIndex
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology
from eunomia.placement.free_capacity import FreeCapacity


class Jobs(GrowingColumns):
    """One row per job ever submitted, in order of (submission, sequence)."""

    stage: Ints
    scale_factor: Ints
    weight: Floats
    submitted: Floats
    deadline: Floats
    owner: Ints  # row of its tenant
    epoch: Ints  # number of the last start
    failures: Ints
    ran: Bools  # was started at least once
    on_type: Ints  # type of its seats, -1 = it has none
    shape: Ints
    partner: Ints  # job on the same seats, -1 = none
    lease_size: Ints  # accelerators of its lease; 0 for the second of a pair
    last_pass: Ints  # number of the last pass that chose it
    first_device: Ints  # device; `State.next_device` names the next one
    reassignable: Bools  # its seats may be reassigned (set for one decision)
    until: Floats  # end of its lease
    lease_extended: Bools  # its lease is extended through quiet rounds; it gets the common end again afterwards
    no_checkpoint: Bools  # it left its last seats without a checkpoint
    uninterruptible: Bools  # it cannot save
    held: Bools  # it or its partner cannot save, so that its seats are not reassigned
    end: Floats  # when its seats are believed to come free (filled for one decision)
    first_started: Floats  # inf = never
    demand: Floats  # (job, 2) CPUs and GiB of memory

    def __init__(self) -> None:
        first: dict[str, float] = {"weight": 1.0, "submitted": 0.0, "on_type": -1, "partner": -1, "first_device": -1}
        spec: dict[str, tuple[Any, ...]] = {name: (np.int64, first.get(name, 0)) for name in INTS}
        spec |= {name: (np.float64, first.get(name, math.inf)) for name in FLOATS}
        super().__init__(spec | dict.fromkeys(FLAGS, (np.bool_, False)) | {"demand": (np.float64, 0.0, 2)})


class State:
    """Jobs, seats and leases. `price` is US$ per accelerator-hour (type,), `tenants` the declared tenants."""

    def __init__(
        self, topology: Topology, price: Floats | None = None, tenants: Mapping[str, Tenant] | None = None
    ) -> None:
        self.topology = topology
        self.price = np.zeros(len(topology.types)) if price is None else price
        self.owners = TenantIndex(tenants or {})
        self.entitlements: Entitlements | None = None  # kept for policies that look at them; see `keep_entitlements`
        self.losses: SeenLosses | None = None  # likewise
        self.jobs = Jobs()
        self.submitted = SubmittedJobs()  # what each row was submitted as
        self.shapes = JobShapes(self.submitted)
        self.register = RowIndex()
        self.ids = self.register.ids  # (row,)
        self.holder = np.full(topology.devices, -1, dtype=np.int64)  # first job of the lease, -1 = free
        self.next_device = np.full(topology.devices, -1, dtype=np.int64)  # next seat of the same gang, -1 = none
        self.floor = FreeCapacity(topology, np.ones(topology.devices, dtype=bool))
        self.taken = np.zeros(topology.devices, dtype=bool)  # used by others: not free, though no job holds them
        self.capacity = topology.capacity()  # (type,) in service
        self.rows = np.empty(self.jobs.room, dtype=np.int64)  # the active ones, ascending; see `active`
        self.counts = np.zeros(4, dtype=np.int64)  # see `core.kernel_arrays`: active jobs, those of them that wait, …
        self.own_lease_ends = False  # a policy gave a lease an end of its own
        self.has_uninterruptible = False  # a job that cannot save was submitted
        # Jobs that cannot save, and may still be stopped once; see `hold_what_is_due`.
        self.restartable: dict[str, float] = {}
        self.forgotten = 0  # jobs that ended and whose rows were dropped
        self.forgotten_service: Floats = np.zeros(0)  # (tenant,) accelerator-seconds that they received
        self.pass_count = 0  # choosing passes so far
        self.lease = math.inf  # seconds that a lease given now lasts at most

    def keep_entitlements(self, needs: frozenset[str], half_life_s: float = math.inf) -> None:
        """Keep entitlements, or losses, from now on if one of these columns of a view is made of them.

        `half_life_s`: of tenants' usage; inf = none.
        """
        if needs & NEEDED_BY:
            before = frozenset() if self.entitlements is None else self.entitlements.kept
            self.entitlements = Entitlements(before | (needs & NEEDED_BY), half_life_s)
        if "losses" in needs:
            self.losses = SeenLosses()

    @property
    def row_of(self) -> Mapping[str, int]:
        """The row of each job by its id."""
        return self.register.by_id

    @property
    def active(self) -> Ints:
        """Jobs that wait or run, in row order; valid until the next change."""
        return self.rows[: self.counts[ALIVE]]

    @property
    def alive(self) -> int:
        """How many jobs wait or run."""
        return int(self.counts[ALIVE])

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return int(self.counts[WAITING])

    def running(self) -> Ints:
        """Return the jobs that hold seats, in row order."""
        active = self.active
        return active[self.jobs.on_type[active] >= 0]

    def paused(self) -> Ints:
        """Return the paused jobs, in row order."""
        return np.flatnonzero(self.jobs.stage[: len(self.jobs)] == Stage.PAUSED)

    def names(self, rows: Ints) -> JobIdList:
        """Return the ids of these jobs."""
        return JobIdList(rows, self.ids)

    def seats_of(self, row: int) -> Ints:
        """Return the devices of a job's lease."""
        seats, seat = [], int(self.jobs.first_device[row])
        while seat >= 0:
            seats.append(seat)
            seat = int(self.next_device[seat])
        return np.array(seats, dtype=np.int64) if seats else NO_INTS

    def holds_just(self, row: int, seats: Ints) -> bool:
        """Return whether a job's lease, alone or with its partner, is of these devices and no others."""
        first = int(self.jobs.first_device[row])
        if first < 0:
            return False
        lead = self.holder[first]
        return bool(self.jobs.lease_size[lead] == len(seats) and (self.holder[seats] == lead).all())

    def add(self, job: Job) -> int:
        """Add a new job and return its row."""
        row = self.jobs.add()
        self.extend_rows()
        self.jobs.scale_factor[row] = job.scale_factor
        self.jobs.weight[row] = job.weight
        self.jobs.submitted[row] = job.submitted
        self.jobs.deadline[row] = job.deadline
        self.jobs.demand[row] = job.cpus, job.memory_gib
        if not job.interruptible and job.restart_within_s > 0:
            self.restartable[job.job_id] = job.restart_within_s
        else:
            self.jobs.uninterruptible[row] = not job.interruptible
        self.has_uninterruptible |= not job.interruptible
        self.jobs.owner[row] = self.owners.row_of(job.tenant)
        if self.entitlements is not None:
            self.entitlements.submit(job)
        if self.losses is not None:
            self.losses.add()
        self.submitted.append(job)
        self.register.add(job.job_id)
        self.rows[self.counts[ALIVE]] = row
        self.counts[ALIVE] += 1
        self.counts[WAITING] += 1
        return row

    def foresee(self, jobs: Sequence[Job]) -> int:
        """Write the columns of the jobs that come next; return of how many. They are submitted by `add_foreseen`.

        It ends before the first job of a new tenant, before the first job of all that cannot save, and before one that
        may be stopped once though it cannot save.
        """
        known, owners = self.owners.known, []
        names = ("tenant", "interruptible", "restart_within_s")
        for tenant, can_save, window_s in zip(*(job_values(jobs, name) for name in names), strict=True):
            if tenant not in known or not (can_save or (self.has_uninterruptible and not window_s > 0)):
                break
            owners.append(known[tenant])
        if owners:
            rows, jobs = self.jobs.reserve(len(owners)), jobs[: len(owners)]
            self.extend_rows()
            self.jobs.owner[rows] = owners
            self.jobs.scale_factor[rows] = job_array(jobs, "scale_factor")
            self.jobs.weight[rows] = job_array(jobs, "weight")
            self.jobs.submitted[rows] = job_array(jobs, "submitted")
            self.jobs.deadline[rows] = job_array(jobs, "deadline")
            if self.has_uninterruptible:
                self.jobs.uninterruptible[rows] = ~job_array(jobs, "interruptible", np.bool_)
            for resource, name in enumerate(("cpus", "memory_gib")):
                if (demand := job_array(jobs, name)).any():  # else no memory is taken for them
                    self.jobs.demand[rows, resource] = demand
        return len(owners)

    def add_foreseen(self, jobs: Sequence[Job]) -> None:
        """Add jobs whose columns are written, and that compiled steps have added to the active rows."""
        self.jobs.add_many(len(jobs))
        self.submitted.extend(jobs)
        self.register.add_all(job_values(jobs, "job_id"))

    def hold_what_is_due(self, at: float) -> Ints:
        """Let jobs that cannot save keep their seats once they were stopped, or `restart_within_s` after their start.

        Return the running ones, with their partners: those leases have no end from now on.
        """
        jobs, held = self.jobs, list[int]()
        for job_id, window_s in list(self.restartable.items()):
            row = self.row_of.get(job_id)
            if row is None or (jobs.epoch[row] == 0 and jobs.stage[row] in (Stage.WAITING, Stage.PAUSED)):
                if row is None:  # it has ended
                    del self.restartable[job_id]
                continue
            runs_first = jobs.epoch[row] == 1 and jobs.stage[row] == Stage.RUNNING
            if runs_first and at < jobs.first_started[row] + window_s:
                continue
            held.append(row)
        return self.let_keep_seats(held)

    def let_keep_seats(self, rows: Sequence[int]) -> Ints:
        """Note that the seats of these jobs are not reassigned from now on; see `let_be_stopped`.

        Return the running ones, with their partners: those leases have no end.
        """
        jobs, held = self.jobs, list[int]()
        for row in rows:
            self.restartable.pop(self.ids[row], None)
            jobs.uninterruptible[row] = self.has_uninterruptible = True
            if jobs.stage[row] == Stage.RUNNING:
                held += [one for one in (row, int(jobs.partner[row])) if one >= 0]
        kept = np.array(sorted(set(held)), dtype=np.int64)
        own = kept[jobs.uninterruptible[kept]]  # the lease of a partner that can save has its end again afterwards
        jobs.held[kept], jobs.until[own], jobs.lease_extended[own] = True, math.inf, False
        return kept

    def let_be_stopped(self, row: int) -> None:
        """Note that a job can save: its seats, and those of its partner, may be reassigned from now on.

        Its lease gets its end by the mechanism.
        """
        jobs, mate = self.jobs, int(self.jobs.partner[row])
        jobs.uninterruptible[row] = False
        self.restartable.pop(self.ids[row], None)
        if mate < 0 or not jobs.uninterruptible[mate]:
            jobs.held[[row] if mate < 0 else [row, mate]] = False

    def extend_rows(self) -> None:
        """Make `rows` as long as the columns of jobs."""
        if len(self.rows) < self.jobs.room:
            self.rows = np.concatenate((self.rows, np.empty(self.jobs.room - len(self.rows), dtype=np.int64)))

    def row(self, job_id: str) -> int | None:
        """Return the row of a job; None if it has ended and was forgotten. Raises KeyError for an id that never was.

        Once a job was forgotten, an id that never was is taken for one of those.
        """
        row = self.row_of.get(job_id)
        if row is None and not self.forgotten:
            raise KeyError(job_id)
        return row

    def forget(self, stays: Bools, row: Ints, service: Floats) -> None:
        """Drop rows of jobs that have ended, (row,) each: those that stay, new numbers, and accelerator-seconds."""
        jobs, n, kept = self.jobs, len(stays), stays.tolist()
        self.forgotten += n - int(stays.sum())
        received = np.zeros(len(self.owners.tree.names))
        received[: len(self.forgotten_service)] = self.forgotten_service
        np.add.at(received, jobs.owner[:n][~stays], service[~stays])
        self.forgotten_service = received
        active = row[self.active]
        jobs.compact(stays)
        mates = jobs.partner[: len(jobs)]
        mates[mates >= 0] = row[mates[mates >= 0]]
        self.shapes.compact(stays[: len(self.shapes)])
        self.submitted.keep(kept)
        self.register = RowIndex(compress(self.ids, kept))  # decisions of before go on reading the ids of then
        self.ids = self.register.ids
        held = self.holder >= 0
        self.holder[held] = row[self.holder[held]]
        self.rows = np.empty(jobs.room, dtype=np.int64)
        self.rows[: len(active)] = active
        if self.entitlements is not None:
            self.entitlements.forget(stays)
        if self.losses is not None:
            self.losses.compact(stays)

    def record_loss(self, row: int, steps: float, loss: float) -> None:
        """Record a reported loss if the policy needs losses."""
        if self.losses is not None:
            self.losses.record(row, steps, loss)

    def lose(self, node: int) -> None:
        """Mark a node as lost; its gangs were stopped before."""
        mine = self.topology.node == node
        self.capacity[self.topology.node_type[node]] -= int((mine & ~self.taken).sum())
        self.taken[mine] = False  # they are out of service with their node
        self.floor.lose(node)

    def restore(self, node: int) -> None:
        """Mark a lost node as in service."""
        self.floor.restore(node)
        self.capacity[self.topology.node_type[node]] += self.topology.size[node]

    def set_taken(self, devices: Sequence[int]) -> None:
        """Take these accelerators out of service, as far as they are free, and put back those that were out."""
        wanted = np.zeros(self.topology.devices, dtype=bool)
        wanted[list(devices)] = True
        back = np.flatnonzero(self.taken & ~wanted)
        out = np.flatnonzero(wanted & ~self.taken & self.floor.device_free)
        self.floor.give_back(back)
        self.floor.take(out)
        self.taken[back], self.taken[out] = False, True
        np.add.at(self.capacity, self.topology.type[back], 1)
        np.subtract.at(self.capacity, self.topology.type[out], 1)
