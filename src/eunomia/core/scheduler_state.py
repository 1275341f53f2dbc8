"""State, ledger and belief of a scheduler, changed together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.entitlements import OF_TENANTS, ActiveJobs
from eunomia.core.kernel_arrays import ILLEGAL_CAUSE, ILLEGAL_JOB, WAITING
from eunomia.core.ledger import Ledger
from eunomia.core.placement_pass import scratch_arrays
from eunomia.core.state import State
from eunomia.core.transitions import leave, requeue, start_all, stop_all
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.events import Estimated, PairsEstimated, ThroughputsLearnt
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import CAUSES, FINAL, NEXT_STAGE, PRESENT, Cause, Stage, step
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology

_NUMBER = {cause: number for number, cause in enumerate(CAUSES)}


def _never(tenant: str, reason: str) -> bool:
    return False


class SchedulerState:
    """State, ledger and belief of one scheduler. `changes` counts jobs and nodes that came or went.

    `arrays` are all their tables, in the order of `core.kernel_arrays.kernel_arrays`, for compiled steps.
    """

    def __init__(
        self,
        topology: Topology,
        belief: Belief,
        price: Floats | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ):
        self.state, self.ledger, self.belief = State(topology, price, tenants), Ledger(len(topology.types)), belief
        belief.follow(self.state.submitted)
        self.changes = 0
        self.kept = 0  # rows that stayed when those of ended jobs were last dropped
        self.comes_again: Callable[[str, str], bool] = _never  # whether a tenant's failure is not tried again
        self._layout: tuple[int, ...] = ()
        self._lay_out()
        self._scratch, self._written = scratch_arrays(0, len(topology.types), topology.devices), 0

    def _lay_out(self) -> None:
        """Rebuild `arrays` if they have grown."""
        state, ledger, belief = self.state, self.ledger, self.belief
        layout = (state.jobs.room, ledger.room, belief.room, len(belief.prefer), belief.cost.shape[1])
        if layout != self._layout:
            self._layout = layout
            self.arrays: tuple[Array, ...] = (
                state.jobs.ints, state.jobs.floats, state.jobs.flags, state.rows, state.counts, state.holder,
                state.next_device, ledger.ints, ledger.floats, ledger.received, belief.ints, belief.floats,
                belief.throughput, belief.cost, belief.prefer, state.floor.up, *state.floor.index,
            )  # fmt: skip

    def expect(self, jobs: int) -> None:
        """Make room for so many jobs in all."""
        for columns in (self.state.jobs, self.ledger, self.belief):
            columns.expect(jobs)
        self.state.extend_rows()
        self._lay_out()

    def kernel_scratch(self, more: int = 0) -> tuple[Ints, Ints, Ints]:
        """Return scratch arrays for a pass over all active jobs and more; see `core.placement_pass.scratch_arrays`."""
        if self.state.alive + more > self._written:
            self._written = 2 * (self.state.alive + more)
            self._scratch = scratch_arrays(self._written, len(self.state.topology.types), self.state.topology.devices)
        return self._scratch

    def advance_to(self, at: float) -> None:
        """Advance time to `at` in an unchanged state."""
        state = self.state
        if state.entitlements is not None:
            active, jobs, present = state.active, state.jobs, None
            if state.entitlements.kept & OF_TENANTS:
                owner, size, weight = jobs.owner[active], jobs.scale_factor[active], jobs.weight[active]
                present = ActiveJobs(active, owner, size, self.ledger.width[active], weight)
            state.entitlements.advance(at, present, state.owners.tree, float(state.capacity.sum()))

    def submit(self, job: Job) -> None:
        """Add a new job."""
        self.state.add(job)
        self.ledger.open(job.submitted)
        self.belief.learn(job)
        self._lay_out()
        self.changes += 1

    def foresee(self, jobs: Sequence[Job]) -> int:
        """Write the columns of the jobs that come next, for compiled steps to submit them; return how many are written.

        It ends at a job that changes more than its own row, which has to be submitted by itself: one of a new tenant,
        kind or size.
        """
        count = self.belief.foresee(jobs[: self.state.foresee(jobs)])
        rows = self.ledger.reserve(count)
        self.ledger.since[rows] = self.state.jobs.submitted[rows]
        self._lay_out()
        return count

    def submit_foreseen(self, jobs: Sequence[Job]) -> None:
        """Add jobs that compiled steps have submitted."""
        self.state.add_foreseen(jobs)
        self.ledger.add_many(len(jobs))
        self.belief.learn_foreseen(jobs)

    def forget(self, stays: Bools, row: Ints) -> None:
        """Drop rows of jobs, (row,) each: those that stay, and their new numbers, -1 = dropped."""
        service = self.ledger.service[: len(stays)]
        self.state.forget(stays, row, service)
        self.ledger.compact(stays)
        self.belief.forget(stays, row)
        self._layout = ()
        self._lay_out()

    def update(self, row: int | None, weight: float, total_steps: float, deadline: float = math.nan) -> None:
        """Update a job by its user; nan = unchanged, row None = it has ended and was forgotten."""
        if row is not None and not math.isnan(deadline):
            self.state.jobs.deadline[row] = deadline
        if row is not None and not math.isnan(weight):
            self.state.jobs.weight[row] = weight
        if row is not None and not math.isnan(total_steps):
            self.belief.declare(row, total_steps)
        self.changes += 1

    def estimate(self, row: int | None, estimate: Estimated) -> None:
        """Replace the declared steps of a job by an estimate; row None = it has ended and was forgotten."""
        if row is not None:
            self.belief.estimate(row, estimate)
        self.changes += 1

    def estimate_pairs(self, estimate: PairsEstimated) -> None:
        """Replace the believed throughputs of some pairs of job types."""
        self.belief.estimate_pairs(estimate)
        self.changes += 1

    def learn_throughputs(self, learnt: ThroughputsLearnt, at: float) -> None:
        """Replace the believed throughputs of some kinds of gangs, those that run included."""
        self.belief.learn_throughputs(learnt)
        jobs, running = self.state.jobs, self.state.running()
        self.belief.change_rates(at, running, jobs.on_type[running])
        lead = running[jobs.lease_size[running] > 0]
        self.correct_rates(lead, jobs.on_type[lead], jobs.shape[lead], jobs.lease_size[lead], jobs.partner[lead])
        self.changes += 1

    def start(self, row: int, at: float, type: int, shape: int, seats: Ints, until: float, partner: int) -> None:
        """Allocate free seats to one job or a pair."""
        lead, mate, on, form = (np.array([value], dtype=np.int64) for value in (row, partner, type, shape))
        self.start_all(lead, at, on, form, np.array([0, len(seats)]), seats, until, mate)

    def start_all(
        self, lead: Ints, at: float, type: Ints, shape: Ints, first: Ints, seats: Ints, until: float, partner: Ints
    ) -> None:
        """Allocate free seats to gangs: gang g gets seats[first[g]:first[g + 1]]; partner -1 = alone."""
        start_all(lead, partner, type, shape, first, seats, at, until, *self.arrays)
        self.demand_legal()
        self.correct_rates(lead, type, shape, np.diff(first), partner)

    def demand_legal(self) -> None:
        """Raise `IllegalStep` if compiled code has taken a step that the life of a job does not have."""
        counts = self.state.counts
        if counts.item(ILLEGAL_JOB):
            row, cause = counts.item(ILLEGAL_JOB) - 1, CAUSES[counts.item(ILLEGAL_CAUSE)]
            counts[ILLEGAL_JOB] = 0
            step(int(self.state.jobs.stage[row]), cause, self.state.ids[row])

    def step_all(self, rows: Ints, cause: Cause) -> None:
        """Move jobs without seats to their next stage. Raises `IllegalStep` where that is not allowed."""
        state = self.state
        before = state.jobs.stage[rows]
        after = NEXT_STAGE[_NUMBER[cause]][before]
        for place in np.flatnonzero(after < 0)[:1].tolist():
            step(int(before[place]), cause, state.ids[int(rows[place])])
        state.jobs.stage[rows] = after
        state.counts[WAITING] += int((after == Stage.WAITING).sum()) - int((before == Stage.WAITING).sum())

    def correct_rates(self, lead: Ints, type: Ints, shape: Ints, size: Ints, partner: Ints) -> None:
        """Believe of gangs that have just started what pairs and other shapes make of their speed."""
        odd = np.flatnonzero((partner >= 0) | (shape != 0))
        if len(odd):
            self.belief.correct_rates(lead[odd], partner[odd], type[odd], size[odd])

    def stop_all(self, rows: Ints, at: float) -> None:
        """Take running jobs off their seats; a partner that is not among them keeps running alone."""
        stop_all(rows, at, *self.arrays)
        self.demand_legal()

    def leave(self, row: int, at: float, cause: Cause) -> None:
        """Take a job off its seats, if it has any; a partner keeps running alone."""
        state = self.state
        before = int(state.jobs.stage[row])
        stage = step(before, cause, state.ids[row])
        leave(row, at, _NUMBER[cause], stage not in PRESENT and before in PRESENT, *self.arrays)
        if stage in FINAL and state.entitlements is not None:
            if before == Stage.PAUSED:
                state.entitlements.resume(row)
            finished, service = cause is Cause.FINISHED, float(self.ledger.service[row])
            state.entitlements.end(row, service, finished=finished, job_id=state.ids[row])
        state.jobs.no_checkpoint[row] = cause in (Cause.FAILED, Cause.NODE_LOST)  # none written, nor paid for
        self.changes += cause is not Cause.STOPPED

    def pause(self, row: int, at: float) -> None:
        """Take a job off its seats, if it has any, and out of the active rows until it is resumed."""
        no_checkpoint = self.state.jobs.no_checkpoint[row] and self.state.jobs.on_type[row] < 0
        self.leave(row, at, Cause.PAUSED)
        self.state.jobs.no_checkpoint[row] = no_checkpoint
        if self.state.entitlements is not None:
            self.state.entitlements.pause(row)

    def resume(self, row: int, at: float) -> None:
        """Return a paused job to the queue. Raises IllegalStep if it is not paused."""
        step(int(self.state.jobs.stage[row]), Cause.RESUMED, self.state.ids[row])
        requeue(row, at, *self.arrays)
        if self.state.entitlements is not None:
            self.state.entitlements.resume(row)
        self.changes += 1

    def lose(self, node: int) -> None:
        """A node is gone; its gangs have left."""
        self.state.lose(node)
        self.changes += 1

    def change_tenant(self, name: str, tenant: Tenant) -> None:
        """An operator gave a tenant other options."""
        self.state.owners.change(name, tenant)
        self.changes += 1

    def set_taken(self, devices: Sequence[int]) -> None:
        """These accelerators, and no others, are used by others."""
        self.state.set_taken(devices)
        self.changes += 1

    def restore(self, node: int) -> None:
        """A lost node is back."""
        self.state.restore(node)
        self.changes += 1
