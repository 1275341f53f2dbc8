"""What is so: jobs and their seats. Changed by the scheduler alone, one small step at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from eunomia.core.columns import Columns
from eunomia.core.owners import Owners
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.life import FINAL, Cause, Stage, step
from eunomia.model.names import Names
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology
from eunomia.placing.choose import Seated
from eunomia.placing.floor import Floor


class Jobs(Columns):
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
    held: Ints  # accelerators of its lease; 0 for the second of a pair
    open: Bools  # its seats may be given anew (set by the mechanism for one decision)
    until: Floats  # end of its lease
    resting: Bools  # its lease runs on through quiet rounds, with a common end again when they are over
    end: Floats  # when its seats are believed to come free (filled for one decision)
    taken: Ints  # number of the last pass that chose it

    def __init__(self) -> None:
        super().__init__(
            {
                "stage": (np.int64, Stage.WAITING),
                "scale_factor": (np.int64, 0),
                "weight": (np.float64, 1.0),
                "submitted": (np.float64, 0.0),
                "deadline": (np.float64, math.inf),
                "owner": (np.int64, 0),
                "epoch": (np.int64, 0),
                "failures": (np.int64, 0),
                "ran": (np.bool_, False),
                "on_type": (np.int64, -1),
                "shape": (np.int64, 0),
                "partner": (np.int64, -1),
                "held": (np.int64, 0),
                "open": (np.bool_, False),
                "until": (np.float64, math.inf),
                "resting": (np.bool_, False),
                "end": (np.float64, math.inf),
                "taken": (np.int64, 0),
            }
        )


class State:
    """Jobs, seats and who holds them. `price` is US$ per accelerator-hour (type,), `tenants` what was said of them."""

    def __init__(
        self, topology: Topology, price: Floats | None = None, tenants: Mapping[str, Tenant] | None = None
    ) -> None:
        self.topology = topology
        self.price = np.zeros(len(topology.types)) if price is None else price
        self.owners = Owners(tenants or {})
        self.jobs = Jobs()
        self.submitted: list[Job] = []  # what each row was submitted as
        self.ids: list[str] = []  # (row,)
        self.row_of: dict[str, int] = {}
        self.seats: list[Ints] = []  # (row,) devices of its lease
        self.holder = np.full(topology.devices, -1, dtype=np.int64)  # first job of the lease, -1 = free
        self.floor = Floor(topology, np.ones(topology.devices, dtype=bool))
        self.capacity = topology.capacity()  # (type,) in service
        self._active = np.empty(64, dtype=np.int64)
        self._alive = 0
        self.waiting = 0
        self.ends_apart = False  # a policy gave a lease an end of its own
        self.passes = 0  # choosing passes so far

    @property
    def active(self) -> Ints:
        """Jobs that wait or run, in row order; valid until the next change."""
        return self._active[: self._alive]

    def running(self) -> Ints:
        """Return the jobs that hold seats, in row order."""
        active = self.active
        return active[self.jobs.on_type[active] >= 0]

    def names(self, rows: Ints) -> Names:
        """Return the ids of these jobs."""
        return Names(rows, self.ids)

    def seated(self) -> Seated:
        """Return the columns that choosing reads."""
        jobs = self.jobs
        return Seated(jobs.on_type, jobs.shape, jobs.partner, jobs.open, jobs.held, jobs.end)

    def add(self, job: Job) -> int:
        """Take in a new job and return its row."""
        row = self.jobs.add()
        self.jobs.scale_factor[row] = job.scale_factor
        self.jobs.weight[row] = job.weight
        self.jobs.submitted[row] = job.submitted
        self.jobs.deadline[row] = job.deadline
        self.jobs.owner[row] = self.owners.row_of(job.tenant)
        self.submitted.append(job)
        self.ids.append(job.job_id)
        self.row_of[job.job_id] = row
        self.seats.append(NO_INTS)
        if self._alive == len(self._active):
            self._active = np.concatenate((self._active, np.empty_like(self._active)))
        self._active[self._alive] = row
        self._alive += 1
        self.waiting += 1
        return row

    def start(self, row: int, type: int, shape: int, seats: Ints, until: float, partner: int = -1) -> None:
        """Give seats that the floor has taken to one job, or to two that share them."""
        jobs = self.jobs
        for job, mate, held in ((row, partner, len(seats)), (partner, row, 0)):
            if job < 0:
                continue
            self._move(job, Cause.STARTED)
            self.waiting -= 1
            jobs.epoch[job] += 1
            jobs.ran[job] = True
            jobs.on_type[job], jobs.shape[job], jobs.held[job] = type, shape, held
            jobs.partner[job], jobs.until[job] = mate, until
            self.seats[job] = seats
        self.holder[seats] = row

    def leave(self, row: int, cause: Cause) -> None:
        """Take a job off its seats, if it has any, for that cause. A partner stays on them alone."""
        self._move(row, cause)
        if self.jobs.on_type[row] >= 0:
            self._unseat(row)
            self.waiting += 1
        if self.jobs.stage[row] in FINAL:
            self._forget(row)

    def lose(self, node: int) -> None:
        """Mark a node as gone; its gangs have left."""
        self.floor.lose(node)
        self.capacity[self.topology.node_type[node]] -= self.topology.size[node]

    def restore(self, node: int) -> None:
        """Mark a lost node as back."""
        self.floor.restore(node)
        self.capacity[self.topology.node_type[node]] += self.topology.size[node]

    def _move(self, row: int, cause: Cause) -> None:
        self.jobs.stage[row] = step(int(self.jobs.stage[row]), cause, self.submitted[row].job_id)

    def _unseat(self, row: int) -> None:
        jobs, seats, mate = self.jobs, self.seats[row], int(self.jobs.partner[row])
        if mate >= 0:  # the survivor goes on alone under the same lease
            jobs.partner[mate], jobs.held[mate] = -1, len(seats)
            self.holder[seats] = mate
        else:
            self.holder[seats] = -1
            self.floor.give_back(seats)
        self.seats[row] = NO_INTS
        jobs.on_type[row], jobs.shape[row], jobs.held[row] = -1, 0, 0
        jobs.partner[row], jobs.until[row], jobs.resting[row] = -1, math.inf, False

    def _forget(self, row: int) -> None:
        """Take a job that ended out of the active rows."""
        at = int(np.searchsorted(self.active, row))
        self._active[at : self._alive - 1] = self._active[at + 1 : self._alive]
        self._alive -= 1
        self.waiting -= 1
