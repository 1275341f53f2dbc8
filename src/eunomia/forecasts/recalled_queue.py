"""Futures of an order whose jobs may be stopped at any moment, played whole in one compiled call.

It holds for policies that cover all jobs and rank them either by what never changes or by levels of attained service
(`PolicyInfo.service_quantum`), whose leases last until jobs end but may be recalled, and which pass over a gang that
does not fit. Starts and ends are then those that the scheduler and the simulation give, to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from eunomia.backends.simulated.completion_heap import IN_HEAP, foresee_end, forget_end, no_ends
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.queue_futures import FIXED_COLUMNS, answer_at
from eunomia.kernels import kernel
from eunomia.model.answers import Order
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.rank import falls_behind_in, level_of
from eunomia.model.rounding import SEEN_BITS, rounded
from eunomia.model.tolerance import RELATIVE

_SPLITTER = 2.0 ** (53 - SEEN_BITS) + 1.0  # a view's sums are rounded by it, see `model.rounding`
# Columns of what changes of each job: progress up to a time at a rate, service up to a time, level and how
# long it holds at least.
_DONE, _SINCE, _RATE, _SERVICE, _SERVED_SINCE, _LEVEL, _SAME_UNTIL, _CHANGES = range(8)
_TYPE, _SIZE, _RANK, _RAN, _SAVED, _CHOSEN, _FACTS = range(7)  # likewise, whole numbers
MOST_VISITS = 100_000_000  # moments × live jobs of one future: about a second
_WAITS = -1
_NEARLY = 1.0 - 1e-8  # so that no rounding of service or time matters


@kernel(allocates=False, forceinline=True)
def _service_at(now: Floats, fact: Ints, row: int, at: float) -> float:
    """Return the attained accelerator-seconds of a job as a view has them."""
    held = fact[row, _SIZE] if fact[row, _TYPE] >= 0 else 0
    service = now[row, _SERVICE] + (at - now[row, _SERVED_SINCE]) * held
    wide = service * _SPLITTER
    return float(wide - (wide - service))


@kernel(allocates=False, forceinline=True)
def _precedes(now: Floats, fact: Ints, one: int, other: int) -> bool:
    level, beside = now[one, _LEVEL], now[other, _LEVEL]
    return bool(level < beside or (level == beside and fact[one, _RANK] < fact[other, _RANK]))


@kernel(allocates=False, forceinline=True)
def _place_of(order: Ints, count: int, now: Floats, fact: Ints, row: int) -> int:
    """Return the place of a job in the order."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if _precedes(now, fact, order[middle], row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False, forceinline=True)
def _move_back(order: Ints, count: int, now: Floats, fact: Ints, row: int, level: float) -> None:
    """Give a job a higher level, and move it to its place in the order."""
    place = _place_of(order, count, now, fact, row)
    now[row, _LEVEL] = level
    while place + 1 < count and _precedes(now, fact, order[place + 1], row):
        order[place] = order[place + 1]
        place += 1
    order[place] = row


@kernel(allocates=False, forceinline=True)
def _choose(order: Ints, count: int, wishes: Ints, fact: Ints, free: Ints) -> int:
    """Choose the jobs that run, best first, and the type of each; return how many were looked at."""
    left = 0
    for k in range(len(free)):
        left += free[k]
    for place in range(count):
        if left == 0:
            return place
        row = order[place]
        for k in wishes[row]:
            if k < 0:
                break
            if fact[row, _SIZE] <= free[k]:
                free[k] -= fact[row, _SIZE]
                left -= fact[row, _SIZE]
                fact[row, _CHOSEN] = k
                break
    return count


@kernel(allocates=False, forceinline=True)
def _stop(now: Floats, fact: Ints, heap: Array, counts: Ints, row: int, at: float) -> None:
    if at > now[row, _SINCE]:
        now[row, _DONE] += (at - now[row, _SINCE]) * now[row, _RATE]
        now[row, _SINCE] = at
    now[row, _SERVICE] += (at - now[row, _SERVED_SINCE]) * fact[row, _SIZE]
    now[row, _SERVED_SINCE] = at
    fact[row, _TYPE], fact[row, _SAVED] = _WAITS, 1
    forget_end(heap, counts, row)


@kernel(allocates=False, forceinline=True)
def _start(
    now: Floats, fact: Ints, heap: Array, counts: Ints, row: int, at: float, begins: float, rate: float, total: float
) -> None:
    """Start a gang, which makes progress at this rate after `begins` seconds."""
    fact[row, _RAN] = 1
    now[row, _SINCE], now[row, _RATE] = at + begins, rate
    now[row, _SERVED_SINCE] = now[row, _SAME_UNTIL] = at
    foresee_end(heap, counts, row, now[row, _SINCE] + max(total - now[row, _DONE], 0.0) / rate)


@kernel(allocates=False, forceinline=True)
def _soonest(order: Ints, looked: int, count: int, now: Floats, fact: Ints, at: float, quantum: float) -> float:
    """Return when the first chosen job falls behind one that waits; inf = never."""
    soonest, rival = np.inf, order[looked] if looked < count else -1
    for place in range(looked - 1, -1, -1):
        row = order[place]
        if fact[row, _CHOSEN] < 0:
            rival = row
        elif rival >= 0:
            service = _service_at(now, fact, row, at)
            left = falls_behind_in(row, rival, service, fact[row, _SIZE], now[rival, _LEVEL], quantum)
            soonest = min(soonest, left)
    return soonest


@kernel(allocates=False)
def _play(
    at: float,
    wake: float,
    horizon: float,
    moments: int,
    quantum: float,
    order: Ints,
    held: Ints,
    running: int,
    wishes: Ints,
    capacity: Ints,
    throughput: Floats,
    total: Floats,
    start_s: float,
    later_s: Floats,
    now: Floats,
    fact: Ints,
    heap: Array,
    counts: Ints,
    free: Ints,
    start: Floats,
    finish: Floats,
) -> float:
    """Write when each job starts and finishes, (row,); return until when that is known (inf = to the end).

    It ends at `horizon`, or after so many `moments`. `order` are the live jobs, best first; `held` (row,) begins with
    the `running` ones; `wishes` (row, type) are the types of each, the fastest first, then -1. Everything but `start`
    and `finish` is used up.
    """
    count = len(order)
    for row in held[:running]:
        foresee_end(heap, counts, row, now[row, _SINCE] + (total[row] - now[row, _DONE]) / now[row, _RATE])
    while True:
        at = min(heap[0]["when"] if counts[IN_HEAP] > 0 else np.inf, wake)
        if at == np.inf:
            return np.inf
        moments -= 1
        if at > horizon or moments < 0:
            return at
        while counts[IN_HEAP] > 0 and heap[0]["when"] == at:
            row = heap[0]["row"]
            finish[row] = at
            count -= 1
            for place in range(_place_of(order, count + 1, now, fact, row), count):
                order[place] = order[place + 1]
            forget_end(heap, counts, row)
            fact[row, _TYPE] = _WAITS
        left = 0
        for row in held[:running]:
            if fact[row, _TYPE] >= 0:
                held[left] = row
                left += 1
        running, wake = left, np.inf
        if running == count and len(capacity) == 1:
            continue  # no job waits
        if quantum < np.inf:
            for row in held[:running]:
                if at < now[row, _SAME_UNTIL]:
                    continue
                service = _service_at(now, fact, row, at)
                level = level_of(service, quantum)
                if level != now[row, _LEVEL]:
                    _move_back(order, count, now, fact, row, level)
                now[row, _SAME_UNTIL] = at + ((level + 1.0) * quantum * _NEARLY - service) / fact[row, _SIZE]
        for k in range(len(free)):
            free[k] = capacity[k]
        looked = _choose(order, count, wishes, fact, free)
        if quantum < np.inf:
            soonest = _soonest(order, looked, count, now, fact, at, quantum)
            wake = max(at + soonest, np.nextafter(at, np.inf)) if soonest < np.inf else np.inf
        for row in held[:running]:
            if fact[row, _CHOSEN] != fact[row, _TYPE]:
                _stop(now, fact, heap, counts, row, at)
        running = 0
        for place in range(looked):
            row = order[place]
            k = fact[row, _CHOSEN]
            fact[row, _CHOSEN] = _WAITS
            if k < 0:
                continue
            held[running] = row
            running += 1
            if fact[row, _TYPE] == k:
                continue
            fact[row, _TYPE], start[row] = k, min(start[row], at)
            begins = later_s[fact[row, _SAVED], fact[row, _SIZE]] if fact[row, _RAN] else start_s
            _start(now, fact, heap, counts, row, at, begins, throughput[row, k], total[row])


@dataclass(frozen=True, slots=True)
class RecalledQueue:
    """The present queue of a scheduler, of which `play` gives one future."""

    scheduler: Scheduler
    at: float
    wake: float
    horizon: float
    quantum: float  # accelerator-seconds of a level; inf = the order is fixed
    order: Ints  # (job,) rows of live jobs, best first
    wishes: Ints  # (row, type)
    start_s: float
    later_s: Floats  # (saved, size) seconds that a start takes which is not the first
    now: Floats
    fact: Ints

    @classmethod
    def of(
        cls, scheduler: Scheduler, policy: Policy, overheads: Overheads, at: float, wake: float, horizon: float
    ) -> Self | None:
        """Return the queue if all that the policy would answer is known, else None."""
        info, leases, state = policy.info, getattr(scheduler.mechanism, "leases", None), scheduler.state
        if leases is None or not leases.recall or math.isfinite(leases.length) or state.own_lease_ends:
            return None
        if state.has_uninterruptible or overheads.saves != "checkpoint":
            return None
        rows, jobs, quantum = state.active.copy(), state.jobs, info.service_quantum or math.inf
        fixed = info.needs <= FIXED_COLUMNS
        if not info.covers_all_jobs or not info.jobs_independent or not (fixed or quantum < math.inf):
            return None
        odd = (jobs.partner[rows] >= 0) | (jobs.shape[rows] != 0) | (state.capacity.sum() == 0)
        if odd.any() or scheduler.asks.pending is not None:
            return None
        rank = np.arange(len(jobs))
        if fixed:
            answer = answer_at(scheduler, policy, at, rows)
            if not isinstance(answer, Order) or answer.misfit != "skip" or math.isfinite(answer.again_at):
                return None
            rank[rows[answer.rows.job[::-1]]] = np.arange(len(answer.rows.job))[::-1]
        now, fact = _present(scheduler, rank)
        if quantum < math.inf:
            service = rounded(scheduler.ledger.service_at(at, rows), bits=SEEN_BITS)
            now[rows, _LEVEL] = np.floor(service / quantum + RELATIVE)
        wishes = _wishes(scheduler)
        rows = rows[wishes[rows, 0] >= 0]
        order = rows[np.lexsort((rank[rows], now[rows, _LEVEL]))]
        sizes = range(int(fact[:, _SIZE].max(initial=1)) + 1)
        later_s = [[overheads.of(first=False, size=size, saved=saved) for size in sizes] for saved in (False, True)]
        start_s = float(overheads.of(first=True))
        later = np.array(later_s, dtype=float)
        return cls(scheduler, at, wake, horizon, quantum, order, wishes, start_s, later, now, fact)

    def play(self, total: Floats) -> tuple[Floats, Floats, float]:
        """Return start and finish of each job that has these total steps, (row,) each, and until when that is known.

        inf = not within what was played; everything is known.
        """
        state, n = self.scheduler.state, len(total)
        start, finish = np.full(n, np.inf), np.full(n, np.inf)
        held, running = np.empty(n, dtype=np.int64), state.running()
        held[: len(running)] = running
        capacity = np.asarray(state.capacity, dtype=np.int64)
        moments = MOST_VISITS // max(len(self.order), 1)
        until = _play(
            self.at, self.wake, self.horizon, moments, self.quantum, self.order.copy(), held, len(running),
            self.wishes, capacity, self.scheduler.belief.throughput[:n], total, self.start_s, self.later_s,
            self.now.copy(), self.fact.copy(), *no_ends(n), capacity.copy(), start, finish,
        )  # fmt: skip
        return start, finish, float(until)


def _present(scheduler: Scheduler, rank: Ints) -> tuple[Floats, Ints]:
    """Return what changes of each job as it is now, (row, column): numbers and whole numbers."""
    state, belief, ledger = scheduler.state, scheduler.belief, scheduler.ledger
    n, jobs = len(state.jobs), state.jobs
    now, fact = np.zeros((n, _CHANGES)), np.zeros((n, _FACTS), dtype=np.int64)
    for column, values in ((_DONE, belief.done), (_SINCE, belief.since), (_RATE, belief.rate),
                           (_SERVICE, ledger.service), (_SERVED_SINCE, ledger.since)):  # fmt: skip
        now[:, column] = values[:n]
    for column, whole in ((_TYPE, jobs.on_type), (_SIZE, jobs.scale_factor), (_RANK, rank), (_RAN, jobs.ran)):
        fact[:, column] = whole[:n]
    fact[:, _SAVED], fact[:, _CHOSEN] = ~jobs.no_checkpoint[:n], _WAITS
    return now, fact


def _wishes(scheduler: Scheduler) -> Ints:
    """Return the types on which each job can run, the fastest first, then -1, (row, type)."""
    state, n = scheduler.state, len(scheduler.state.jobs)
    throughput = scheduler.belief.throughput[:n]
    wishes = np.argsort(-throughput, axis=1, kind="stable")
    can = (throughput > 0) & (state.jobs.scale_factor[:n, None] <= state.capacity)
    able = np.take_along_axis(can, wishes, axis=1)
    place = np.argsort(~able, axis=1, kind="stable")
    found: Ints = np.where(np.take_along_axis(able, place, axis=1), np.take_along_axis(wishes, place, axis=1), -1)
    return found
