"""Futures of an order whose every answer is known, each played in one compiled call by the loop of the simulation.

It holds for policies that cover all jobs and rank them by what does not change while they wait, or by levels of
attained service, whose leases last until jobs end or are recalled, and which pass over a gang that does not fit or stop
the queue there. Starts and ends are then those that the scheduler and the simulation
give, to the bit; seats are only counted, which takes a tenth of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from eunomia.backends.simulated.completion_heap import IN_HEAP, no_ends
from eunomia.backends.simulated.gang_kernels import GANG
from eunomia.backends.simulated.implied_moments import (
    ANYWHERE,
    COUNTS,
    LOGGED,
    MOMENTS,
    TIMES,
    WAKE,
    Log,
    World,
    play_ranked,
)
from eunomia.core.answer_rows import PendingAsk
from eunomia.core.kernel_arrays import ALIVE, LEASE_SIZE, ON_TYPE, RATE, SCALE_FACTOR, TOTAL, WAITING
from eunomia.core.placement_pass import scratch_arrays
from eunomia.core.rank_line import lines_of
from eunomia.core.scheduler import Scheduler
from eunomia.model.answers import Answer, Order
from eunomia.model.arrays import NO_INTS, Array, Floats, Ints
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.rank import BY_PLACE, BY_SERVICE_LEVEL, service_levels
from eunomia.model.rounding import SEEN_BITS, rounded
from eunomia.model.view import View
from eunomia.placement.selection import MISFIT, SKIP, STOP
from eunomia.records.policy_call import ask_policy

FIXED_COLUMNS = frozenset({"throughput", "scale_factor", "capacity", "on_type", "submitted", "weight", "deadline"})
MOST_VISITS = 100_000_000  # moments × jobs that may run of one future with recalled jobs: one to three seconds
FIRST_PART, PARTS = 64, 20  # moments of the first part; parts of a future, at least
# Places in `Scheduler.arrays` of what a future changes, and of what is replaced; see `core.kernel_arrays`.
_INTS, _, _FLAGS, _ACTIVE, _COUNTS, _HOLDER = range(6)
_LEDGER_INTS, _LEDGER_FLOATS, _RECEIVED, _BELIEF_FLOATS, _THROUGHPUT, _COST, _TOTAL = 7, 8, 9, 11, 12, 13, 22
_CHANGED = _INTS, _FLAGS, _COUNTS, _LEDGER_INTS, _LEDGER_FLOATS, _BELIEF_FLOATS, _TOTAL


@dataclass(frozen=True, slots=True)
class RankedQueue:
    """The present queue of a scheduler, of which `play` gives one future."""

    begin: tuple[tuple[Array, Array], ...]  # what a future begins with, and the array that it changes
    belief_floats: Floats  # (column, row)
    world: World
    times: Floats
    most: int  # moments of a future with recalled jobs
    counted: Ints  # what `play_ranked` counts
    given: tuple[Any, ...]  # its arguments before the number of moments up to which it plays
    arrays: tuple[Any, ...]  # those behind it

    @classmethod
    def of(
        cls, scheduler: Scheduler, policy: Policy, overheads: Overheads, at: float, wake: float, horizon: float
    ) -> Self | None:
        """Return the queue if all that the policy would answer is known, else None. It is asked once, at most.

        `wake` is when the scheduler wants to be called, `horizon` up to when futures with recalled jobs are played.
        """
        info, leases, state = policy.info, getattr(scheduler.mechanism, "leases", None), scheduler.state
        fixed, rank = info.needs <= FIXED_COLUMNS, info.promises.rank
        quantum = rank.quantum if rank is not None and rank.key == "service" else math.inf
        if leases is None or math.isfinite(leases.length) or state.own_lease_ends:
            return None
        if info.answer_type != "order" or not info.promises.covers_all_jobs or not (fixed or quantum < math.inf):
            return None
        if leases.recall and not _may_recall(scheduler, policy, overheads):
            return None
        if not leases.recall and not fixed:
            return None
        rows, jobs, n = state.active.copy(), state.jobs, len(state.jobs)
        if (jobs.partner[rows] >= 0).any():
            return None
        key, misfit = np.zeros(n), SKIP
        if fixed:
            answer = answer_at(scheduler, policy, at, rows)
            if not isinstance(answer, Order) or answer.misfit == "reserve":
                return None
            misfit = MISFIT[answer.misfit]
            if leases.recall and (misfit == STOP or math.isfinite(answer.again_at)):
                return None
            named = rows[answer.rows.job]
            line = named[np.sort(np.unique(named, return_index=True)[1])]
            key[line] = np.arange(len(line))
        else:
            service = rounded(scheduler.ledger.service_at(at, rows), bits=SEEN_BITS)
            key[rows] = service_levels(service, quantum)
            can = (scheduler.belief.throughput[rows] > 0) & (jobs.scale_factor[rows, None] <= state.capacity)
            line = rows[can.any(axis=1)]
            line = line[np.argsort(key[line], kind="stable")]
        if not leases.recall:
            line, wake, horizon = line[jobs.on_type[line] < 0], at, math.inf
        arrays = _counted(scheduler, overheads if leases.recall else None, int((jobs.on_type[line] < 0).sum()))
        by, last = BY_PLACE if fixed else BY_SERVICE_LEVEL, float(np.nextafter(horizon, np.inf))
        most = MOST_VISITS // max(min(len(line), int(state.capacity.sum())), 1)
        rule = (False, leases.recall, True, misfit, by, math.inf if fixed else quantum, state.capacity)
        return cls._prepared(scheduler, rule, line, key, last, most, max(wake, at), arrays)

    @classmethod
    def _prepared(
        cls, scheduler: Scheduler, rule: tuple[Any, ...], line: Ints, key: Floats, horizon: float, most: int,
        wake: float, arrays: list[Array],
    ) -> Self:  # fmt: skip
        """Return the queue with the arguments of `play_ranked`, whose arrays every future begins with anew."""
        state, n, types = scheduler.state, len(key), len(scheduler.state.capacity)
        jobs, (heap, counts) = state.alive + 1, no_ends(n)
        running = state.running()
        waiting = line[state.jobs.on_type[line] < 0]
        lines = lines_of(key, state.jobs.scale_factor, running, waiting, state.topology.devices, types)
        times, counted, ends = np.full(TIMES, -np.inf), np.zeros(COUNTS, dtype=np.int64), np.full((2, n), np.inf)
        times[WAKE], counted[-1] = wake, state.pass_count
        changed = [*lines, counts, times, counted, ends[0], ends[1], *(arrays[one] for one in _CHANGED)]
        begin = tuple((array.copy(), array) for array in changed)
        events, starts, stops = (np.empty((size, 0), dtype=np.int64) for size in LOGGED)
        log = Log(np.empty(jobs + 1), events, starts, stops, NO_INTS.copy(), counted)
        world = World(
            np.empty(0, dtype=GANG), heap, counts, np.empty(1), state.topology.type, np.empty((0, 0), dtype=np.int64),
            np.empty((0, 0)), 0.0, np.empty((0, 0)), ends[0], ends[1],
        )  # fmt: skip
        scratch = np.empty(jobs, dtype=np.int64), np.empty(types, dtype=np.int64)
        given = scratch_arrays(jobs, types, 0)[:2], *rule, lines, horizon
        behind = (
            n, n, np.full(n + 1, np.inf), np.empty(0, dtype=bool), ANYWHERE, times, scratch, *world, *log, *arrays
        )  # fmt: skip
        return cls(begin, arrays[_BELIEF_FLOATS], world, times, most, counted, given, behind)

    def play(self, total: Floats, is_over: Callable[[], bool] = lambda: False) -> tuple[Floats, Floats, float]:
        """Return start and finish of each job that has these total steps, (row,) each, and until when that is known.

        inf = not within what was played; everything is known. It is played in parts, the first ones short, so that
        `is_over` is asked often also where the loop is interpreted.
        """
        for first, array in self.begin:
            array[...] = first
        self.belief_floats[TOTAL] = total
        limit, part = 0, FIRST_PART
        while self.counted[MOMENTS] == limit < self.most and not (limit and is_over()):
            limit = min(limit + part, self.most)
            part = min(2 * part, max(self.most // PARTS, 1))
            play_ranked(*self.given, limit, *self.arrays)
        world = self.world
        until = min(world.heap["when"][0] if world.counts[IN_HEAP] else math.inf, self.times[WAKE])
        return world.start.copy(), world.finish.copy(), float(until)


def answer_at(scheduler: Scheduler, policy: Policy, at: float, rows: Ints) -> Answer:
    """Return what a policy that remembers nothing says of these jobs. Raises InvalidAnswer and PolicyFailed."""
    columns = scheduler.mechanism.columns(at, rows)
    memory = {name: np.full(len(rows), first) for name, first in policy.info.memory_columns.items()}
    view = View(at=at, types=scheduler.state.topology.types, jobs=len(rows), columns=columns, memory=memory)
    answer = ask_policy(policy, view)
    scheduler.asks.check(answer, PendingAsk(-1, rows), at, at)
    return answer


def _may_recall(scheduler: Scheduler, policy: Policy, overheads: Overheads) -> bool:
    """Return whether what recalled jobs do is known: all may be stopped, and lose nothing."""
    state, info = scheduler.state, policy.info
    if state.has_uninterruptible or overheads.saves != "checkpoint" or not info.promises.jobs_independent:
        return False
    return (
        not (state.jobs.shape[state.active] != 0).any() and state.capacity.sum() > 0 and scheduler.asks.pending is None
    )


def _counted(scheduler: Scheduler, overheads: Overheads | None, waiting: int) -> list[Array]:
    """Return the arrays of a scheduler with seats that are only counted; `overheads` in place of those believed."""
    state, arrays = scheduler.state, list(scheduler.arrays)
    running = state.running()
    n, counts = len(state.jobs), arrays[_COUNTS].copy()
    for one in (_INTS, _FLAGS, _LEDGER_INTS, _LEDGER_FLOATS, _BELIEF_FLOATS):  # without the room for more jobs
        arrays[one] = arrays[one][:, :n].copy()
    arrays[_RECEIVED], arrays[_TOTAL] = arrays[_RECEIVED].copy(), arrays[_TOTAL].copy()
    ints, floats = arrays[_INTS], arrays[_BELIEF_FLOATS]
    counts[ALIVE], counts[WAITING] = len(running) + waiting, waiting
    floats[RATE, running] = arrays[_THROUGHPUT][running, ints[ON_TYPE, running]]
    if overheads is not None:
        sizes = range(1 + int(max(ints[SCALE_FACTOR].max(initial=1), ints[LEASE_SIZE].max(initial=1))))
        begun = [[overheads.of(first=False, size=size, saved=saved) for size in sizes] for saved in (True, False)]
        arrays[_COST] = np.array([[overheads.of(first=True) for _ in sizes], *begun], dtype=float)
    arrays[_COUNTS] = counts
    arrays[_ACTIVE] = arrays[_HOLDER] = NO_INTS.copy()
    return arrays
