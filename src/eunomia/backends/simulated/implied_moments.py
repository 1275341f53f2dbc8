"""Plays moments whose decisions the policy's promises imply, many in one compiled call.

The compiled loop takes the same steps as the core and the simulation do for each moment: those of `core.transitions`,
`core.placement_pass` and `gang_kernels`. It stops before a moment that it cannot play: one with another
event than submissions and completions, or whose decision needs the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eunomia.backends.simulated import gang_kernels as gang_steps
from eunomia.backends.simulated.completion_heap import IN_HEAP, note_next
from eunomia.core.kernel_arrays import EPOCH, LEASE_SIZE, ON_TYPE, PARTNER, SCALE_FACTOR, KernelArrays, kernel_arrays
from eunomia.core.placement_pass import ASK, KEPT, STARTED, implied_start, start_implied
from eunomia.core.scheduler import Scheduler
from eunomia.core.transitions import finish_alone, submit, withdraw_last
from eunomia.kernels import WorkLeft, kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.moment_batch import MomentBatch

_JOBS, _EVENTS = 512, 2048  # whose columns are written ahead; that one call plays
_ROW, _RUN, _LAST, _STARTED, _STARTED_RUN, _SEATS_END, _COLUMNS = range(7)  # columns of the log
# What `play` counts: events, submissions, events up to the last answer; and whether more could be played at once.
_PLAYED, _SUBMITTED, _KNOWN, _MORE = range(4)
_DUE = 64  # completions of one instant


@kernel(allocates=False, forceinline=True)
def _list_due(heap: Array, length: int, at: float, due: Ints) -> int:
    """List the rows of the gangs that end at `at`, the earliest end; return their number, -1 = too many for `due`."""
    if length == 0 or heap[0]["when"] > at:
        return 0
    due[0], count, place = 0, 1, 0  # places in the heap first
    while place < count:
        for below in (2 * due[place] + 1, 2 * due[place] + 2):
            if below < length and heap[below]["when"] == at:
                if count == len(due):
                    return -1
                due[count] = below
                count += 1
        place += 1
    for place in range(count):
        due[place] = heap[due[place]]["row"]
    return count


@kernel(allocates=False, forceinline=True)
def _complete(t: KernelArrays, gangs: Array, due: Ints, finishes: Bools, freed: Ints) -> bool:
    """Return whether the ends of these gangs are completions, and count the accelerators that they free, (type,)."""
    freed[:] = 0
    for row in due:
        is_run = gangs[row]["epoch"] == t.ints[EPOCH, row] and t.ints[PARTNER, row] < 0
        if not is_run or gangs[row]["will_fail"] or not finishes[row]:
            return False
        freed[t.ints[ON_TYPE, row]] += t.ints[LEASE_SIZE, row]
    return True


@kernel(allocates=False)
def play(
    alone: bool,
    recall: bool,
    horizon: float,
    arrived: int,
    last: int,
    arrivals: Floats,
    finishes: Bools,
    log_at: Floats,
    log: Ints,
    log_seats: Ints,
    counted: Ints,
    scratch: Ints,
    gangs: Array,
    heap: Array,
    counts: Ints,
    next_end: Floats,
    type_of: Ints,
    kind_of: Ints,
    rates: Floats,
    start_s: float,
    later_s: Floats,
    *arrays: Any,
) -> None:
    """Play moments before `horizon`, with submissions of the rows `arrived` to `last`, which is left out.

    `arrivals` (job + 1,) ends with inf; `finishes` (job,) says of which jobs the end is a completion. `log_at`, `log`
    and `log_seats` get what `MomentBatch` holds, `counted` how much that is.
    """
    t = kernel_arrays(*arrays)
    freed, due = scratch[: len(t.floor.total)], scratch[len(t.floor.total) :]
    row, played, used, known, more = arrived, 0, 0, 0, False
    while True:
        at = min(arrivals[row], heap[0]["when"] if counts[IN_HEAP] > 0 else np.inf)
        if not at < horizon:
            break
        ends, come = _list_due(heap, counts[IN_HEAP], at, due), row
        while arrivals[come] == at:
            come += 1
        if ends < 0 or come > last or played + ends + come - row > len(log_at):
            more = ends >= 0
            break
        if not _complete(t, gangs, due[:ends], finishes, freed):
            break
        for job in range(row, come):
            submit(t, job)
        implied, lead, type = implied_start(t, alone, recall, freed)
        if implied == ASK or (implied == STARTED and used + t.ints[SCALE_FACTOR, lead] > len(log_seats)):
            for _ in range(row, come):
                withdraw_last(t)
            more = implied != ASK
            break
        for job in range(row, come):
            log[_ROW, played], log[_RUN, played] = job, 0
            played += 1
        for job in due[:ends]:
            log[_ROW, played], log[_RUN, played] = job, t.ints[EPOCH, job]
            played += 1
            gang_steps.finish_alone(gangs, heap, counts, rates, job, at)
            finish_alone(t, job, at)
        first, row = played - ends - come + row, come
        for place in range(first, played):
            log_at[place], log[_SEATS_END, place] = at, used
            log[_LAST, place], log[_STARTED, place], log[_STARTED_RUN, place] = 0, -1, 0
        log[_LAST, played - 1] = 1
        if implied == STARTED:
            size = t.ints[SCALE_FACTOR, lead]
            start_implied(t, lead, type, at, np.inf, log_seats[used : used + size])
            used += size
            kind = kind_of[gangs[lead]["model"], size]
            gang_steps.start_alone(
                gangs,
                heap,
                counts,
                lead,
                kind,
                type,
                size,
                t.ints[EPOCH, lead],
                at,
                rates[kind, type],
                start_s,
                later_s,
            )
            log[_STARTED, played - 1], log[_STARTED_RUN, played - 1] = lead, t.ints[EPOCH, lead]
            log[_SEATS_END, played - 1] = used
        if implied in (STARTED, KEPT):
            known = played
    note_next(heap, counts, next_end)
    counted[_PLAYED], counted[_SUBMITTED], counted[_KNOWN], counted[_MORE] = played, row - arrived, known, more


class ImpliedMoments:
    """Plays the moments of one simulation and its scheduler whose decisions are implied.

    `world` are the arrays of the simulation that `play` takes, from `gangs` on.
    """

    def __init__(
        self, scheduler: Scheduler, jobs: Sequence[Job], arrivals: Floats, finishes: Bools, world: tuple[Any, ...]
    ):
        self._scheduler, self._jobs, self._arrivals, self._finishes = scheduler, jobs, arrivals, finishes
        self._world = world
        widest = max((job.scale_factor for job in jobs), default=1)
        self._log = np.empty(_EVENTS), np.empty((_COLUMNS, _EVENTS), dtype=np.int64)
        self._seats, self._counted = np.empty(max(4 * _EVENTS, widest), dtype=np.int64), np.zeros(4, dtype=np.int64)
        self._scratch = np.empty(len(scheduler.state.topology.types) + _DUE, dtype=np.int64)
        self._foreseen = 0  # jobs whose columns are written
        self._left = WorkLeft(play)

    def play(self, arrived: int, horizon: float) -> Iterator[MomentBatch]:
        """Play the moments before `horizon`; `arrived` jobs were submitted so far."""
        scheduler = self._scheduler
        while (rule := scheduler.implied_rule) is not None and arrived == len(scheduler.state.jobs):
            if self._foreseen <= arrived:
                self._foreseen = arrived + scheduler.foresee(self._jobs[arrived : arrived + _JOBS])
            log_at, log = self._log
            play(
                rule.alone, rule.recall, horizon, arrived, self._foreseen, self._arrivals, self._finishes,
                log_at, log, self._seats, self._counted, self._scratch, *self._world, *scheduler.arrays,
            )  # fmt: skip
            played, submitted, known, more = self._counted.tolist()
            if played:
                jobs = self._jobs[arrived : arrived + submitted]
                yield scheduler.apply_implied(self._batch(played, jobs, arrived), known)
                arrived += submitted
                self._left.update(arrived / len(self._jobs))
            if not (played and more):
                return

    def _batch(self, played: int, jobs: Sequence[Job], first_row: int) -> MomentBatch:
        log_at, log = self._log
        columns = log[:, :played].copy()
        return MomentBatch(
            at=log_at[:played].copy(),
            row=columns[_ROW],
            epoch=columns[_RUN],
            last=columns[_LAST],
            started=columns[_STARTED],
            started_epoch=columns[_STARTED_RUN],
            seats=self._seats[: columns[_SEATS_END, -1]].copy(),
            seats_end=columns[_SEATS_END],
            submitted=jobs,
            first_row=first_row,
            ids=self._scheduler.state.ids,
        )
