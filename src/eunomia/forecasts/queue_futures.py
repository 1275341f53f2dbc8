"""Futures of a queue whose order does not change, played whole in one compiled call.

It holds for policies whose order of two waiting jobs depends on nothing that changes while they wait, whose leases last
until jobs end, and which pass over a gang that does not fit or stop the queue there. Starts and ends are then those
that the scheduler and the simulation give, to the bit, in a hundredth of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from eunomia.backends.simulated.completion_heap import IN_HEAP, foresee_end, forget_end, no_ends
from eunomia.core.answer_rows import PendingAsk
from eunomia.core.scheduler import Scheduler
from eunomia.kernels import kernel
from eunomia.model.answers import Answer, Order
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.policy import Policy
from eunomia.model.view import View
from eunomia.records.policy_call import ask_policy

FIXED_COLUMNS = frozenset({"throughput", "scale_factor", "capacity", "on_type", "submitted", "weight", "deadline"})


@kernel(allocates=False)
def _play(
    at: float,
    stops: bool,
    running: Ints,
    since: Floats,
    done: Floats,
    total: Floats,
    throughput: Floats,
    on_type: Ints,
    size: Ints,
    cost: Floats,
    queue: Ints,
    queue_type: Ints,
    free: Ints,
    heap: Array,
    counts: Ints,
    start: Floats,
    finish: Floats,
) -> None:
    """Write when each job starts and finishes, (row,); `queue` are candidates, best first, and is used up."""
    for row in running:
        rate = throughput[row, on_type[row]]
        foresee_end(heap, counts, row, since[row] + max(total[row] - done[row], 0.0) / rate)
    head, spare = 0, 0  # the queue begins at `head`
    for k in range(len(free)):
        spare += free[k]
    while True:
        left, place, is_stopped = head, head, spare == 0
        while place < len(queue) and not is_stopped:
            row, k = queue[place], queue_type[place]
            last = place + 1 == len(queue) or queue[place + 1] != row
            if size[row] <= free[k]:
                free[k] -= size[row]
                spare -= size[row]
                start[row], on_type[row] = at, k
                rate = throughput[row, k]
                foresee_end(heap, counts, row, at + cost[row] + max(total[row] - done[row], 0.0) / rate)
                while left > head and queue[left - 1] == row:  # its earlier wishes
                    left -= 1
                while place < len(queue) and queue[place] == row:
                    place += 1
            else:
                queue[left], queue_type[left] = row, k
                left, place = left + 1, place + 1
                is_stopped = stops and last
            is_stopped |= spare == 0
        if left < place:  # those that were passed over move up to the rest, which may be long
            while left > head:
                left, place = left - 1, place - 1
                queue[place], queue_type[place] = queue[left], queue_type[left]
            head = place
        if counts[IN_HEAP] == 0:
            return
        at = heap[0]["when"]
        while counts[IN_HEAP] > 0 and heap[0]["when"] == at:
            row = heap[0]["row"]
            finish[row] = at
            free[on_type[row]] += size[row]
            spare += size[row]
            forget_end(heap, counts, row)


def answer_at(scheduler: Scheduler, policy: Policy, at: float, rows: Ints) -> Answer:
    """Return what a policy that remembers nothing says of these jobs. Raises InvalidAnswer and PolicyFailed."""
    columns = scheduler.mechanism.columns(at, rows)
    memory = {name: np.full(len(rows), first) for name, first in policy.info.memory_columns.items()}
    view = View(at=at, types=scheduler.state.topology.types, jobs=len(rows), columns=columns, memory=memory)
    answer = ask_policy(policy, view)
    scheduler.asks.check(answer, PendingAsk(-1, rows), at, at)
    return answer


@dataclass(frozen=True, slots=True)
class FixedQueue:
    """The present queue of a scheduler, of which `play` gives one future."""

    scheduler: Scheduler
    at: float
    stops: bool  # at the first gang that does not fit
    job: Ints  # (candidate,) rows, best first
    type: Ints  # (candidate,)
    cost: Floats  # (row,) seconds that the next start of a job takes

    @classmethod
    def of(cls, scheduler: Scheduler, policy: Policy, at: float) -> Self | None:
        """Return the queue if the policy's order is fixed, else None. The policy is asked once."""
        info, leases, state = policy.info, getattr(scheduler.mechanism, "leases", None), scheduler.state
        if leases is None or leases.recall or math.isfinite(leases.length) or state.own_lease_ends:
            return None
        if info.answer_type != "order" or not info.covers_all_jobs or not info.needs <= FIXED_COLUMNS:
            return None
        rows = state.active.copy()
        answer = answer_at(scheduler, policy, at, rows)
        if not isinstance(answer, Order) or answer.misfit == "reserve" or (state.jobs.partner[rows] >= 0).any():
            return None
        job = rows[answer.rows.job]
        waits = state.jobs.on_type[job] < 0
        n, jobs = len(state.jobs), state.jobs
        every = np.arange(n)
        cost = scheduler.belief.start_cost(jobs.ran[every], jobs.no_checkpoint[every], jobs.scale_factor[every])
        return cls(scheduler, at, answer.misfit == "stop", job[waits], np.asarray(answer.rows.type)[waits], cost)

    def play(self, total: Floats) -> tuple[Floats, Floats, float]:
        """Return start and finish of each job that has these total steps, (row,) each, inf = never; no time is cut."""
        state, belief, n = self.scheduler.state, self.scheduler.belief, len(total)
        start, finish = np.full(n, np.inf), np.full(n, np.inf)
        jobs = state.jobs
        size = np.where(jobs.lease_size[:n] > 0, jobs.lease_size[:n], jobs.scale_factor[:n])
        _play(
            self.at, self.stops, state.running(), belief.since[:n].copy(), belief.done[:n].copy(), total,
            belief.throughput[:n], jobs.on_type[:n].copy(), size, self.cost, self.job.copy(), self.type.copy(),
            state.floor.free.copy(), *no_ends(n), start, finish,
        )  # fmt: skip
        return start, finish, math.inf
