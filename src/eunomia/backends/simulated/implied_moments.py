"""Plays moments whose decisions the policy's promises imply, many in one compiled call.

The compiled loop takes the same steps as the core and the simulation do for each moment: those of `core.transitions`,
`core.placement_pass`, `core.ranked_pass` and `gang_kernels`. It stops before a moment that it cannot play: one with
another event than submissions, completions and its own timer, or whose decision needs the policy.

Forecasts play with the same loop in a state whose seats are only counted (`holder` is empty): which accelerator a job
gets is not chosen, what the core believes is what happens, and starts and ends by row are all that is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from eunomia.backends.simulated import gang_kernels as gang_steps
from eunomia.backends.simulated.completion_heap import IN_HEAP, foresee_end, forget_end, forget_ends, note_next
from eunomia.core.job_line import SIZE_CLASSES
from eunomia.core.kernel_arrays import (
    ALIVE,
    DONE,
    EPOCH,
    LEASE_SIZE,
    ON_TYPE,
    PARTNER,
    RATE,
    RATE_SINCE,
    SCALE_FACTOR,
    TOTAL,
    WAITING,
    KernelArrays,
    kernel_arrays,
)
from eunomia.core.mechanism import ImpliedRule
from eunomia.core.placement_pass import (
    ASK,
    FIRST_SEAT,
    LEAD,
    STARTED,
    STOPPED,
    STOPPED_EPOCH,
    UNTOUCHED,
    implied_start,
    start_implied,
)
from eunomia.core.rank_line import (
    HOLDING,
    LineArrays,
    RankLine,
    begin_lines,
    forget,
    no_lines,
    note_end,
    note_start,
    note_stop,
    note_submission,
    note_withdrawal,
    rank_line,
)
from eunomia.core.ranked_pass import fall_at, follow_rank, implied_by_rank
from eunomia.core.scheduler import Scheduler
from eunomia.core.transitions import finish_alone, finish_counted, submit, take_out_ended, withdraw_last
from eunomia.kernels import WorkLeft, kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_table import job_array
from eunomia.model.moment_batch import INSTANT_S, Instant, MomentBatch
from eunomia.model.rank import UNKNOWN
from eunomia.placement.free_index import fits
from eunomia.placement.selection import RESERVE

_JOBS, _EVENTS = 512, 2048  # whose columns are written ahead; that one call plays
# Columns of the events, starts and stops of the log.
_ROW, _RUN, _LAST, _STARTS_END, _STOPS_END, _COLUMNS = range(6)
_SEATS_END = 2
LOGGED = (_COLUMNS, 3, 2)  # columns of the log's events, starts and stops
# What `_play` counts: events, submissions, events up to the last answer, what could be played next, starts,
# stops, seats, answers by rank, moments, ended jobs among the active rows, moments and asks of the present instant
# (`model.moment_batch.Instant`); then the number of the last pass.
(
    _PLAYED, _SUBMITTED, _KNOWN, _MORE, _STARTS, _STOPS, _SEATS, _ANSWERS, MOMENTS, _GONE, _MOMENTS_NOW, _ASKS_NOW,
    _PASS, COUNTS,
) = range(14)  # fmt: skip
# The last moment and answer; the next ask and timer, inf = none; when the present instant began.
_AT, _ANSWERED_AT, _AGAIN_AT, WAKE, _SINCE, TIMES = range(6)
NO_MORE, MORE, ANSWER = range(3)  # nothing, more at once, a moment that needs an answer
_AT_ONCE = 100  # of one instant that are played; a clock that stops advancing is noticed later
_DUE = 64  # completions of one instant
_NO_TIMES: Floats = np.empty(0)
ANYWHERE: Bools = np.empty(0, dtype=bool)  # no gang is consolidated


class Log(NamedTuple):
    """What was played, in the columns of `MomentBatch`, and how much that is."""

    at: Floats
    events: Ints
    starts: Ints
    stops: Ints
    seats: Ints
    counted: Ints


class World(NamedTuple):
    """The arrays of the simulation; where seats are only counted, the last two in place of `gangs`."""

    gangs: Array
    heap: Array
    counts: Ints
    next_end: Floats
    type_of: Ints
    kind_of: Ints
    rates: Floats
    start_s: float
    later_s: Floats
    start: Floats  # (row,) the first start
    finish: Floats  # (row,)


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
        if len(t.holder) > 0:
            is_run = gangs[row]["epoch"] == t.ints[EPOCH, row] and t.ints[PARTNER, row] < 0
            if not is_run or gangs[row]["will_fail"] or not finishes[row]:
                return False
        freed[t.ints[ON_TYPE, row]] += t.ints[LEASE_SIZE, row]
    return True


@kernel(allocates=False, forceinline=True)
def _implied_by_promises(
    t: KernelArrays, alone: bool, recall: bool, freed: Ints, gone: int, close: Bools
) -> tuple[int, int, int]:
    """Do as `implied_start`, unless the gang that starts must be `close`, (job,), and may not be; empty = none must."""
    implied, lead, type = implied_start(t, alone, recall, freed, gone)
    must_be_close = implied == STARTED and len(close) > 0 and close[lead]
    if must_be_close and (freed.any() or not fits(t.floor, type, t.ints[SCALE_FACTOR, lead], True)):
        implied = ASK
    return implied, lead, type


@kernel(allocates=False, forceinline=True)
def _implied_by_moves(t: KernelArrays, ends: int, freed: Ints) -> tuple[int, int, int]:
    """Do as `implied_start` where running jobs may move to a faster type: no promise spares an answer."""
    room = 0
    for k in range(len(freed)):
        room += t.floor.total[k] + freed[k]
    asks = t.counts[ALIVE] > ends and (t.counts[WAITING] > 0 or room > 0)
    return (ASK if asks else UNTOUCHED), -1, -1


@kernel(allocates=False, forceinline=True)
def _implied(
    passes: tuple[Ints, Ints] | None, t: KernelArrays, rank: RankLine, log: Log, alone: bool, recall: bool, moves: bool,
    ends: int, freed: Ints, close: Bools,
) -> tuple[int, int, int]:  # fmt: skip
    """Do as `implied_start` where `ends` jobs have just ended; without `passes` no lines are kept."""
    if moves:
        return _implied_by_moves(t, ends, freed)
    if passes is not None:
        return implied_by_rank(t, rank, alone, freed)
    return _implied_by_promises(t, alone, recall, freed, log.counted[_GONE], close)


@kernel(allocates=False, forceinline=True)
def _submit_all(
    passes: tuple[Ints, Ints] | None, t: KernelArrays, rank: RankLine, log: Log, first: int, end: int, at: float
) -> None:
    """Submit the jobs from row `first` to `end`, which is left out."""
    for job in range(first, end):
        submit(t, job, log.counted[_GONE])
        if passes is not None:
            note_submission(t, rank, job, at)


@kernel(allocates=False, forceinline=True)
def _withdraw_all(passes: tuple[Ints, Ints] | None, t: KernelArrays, rank: RankLine, first: int, end: int) -> None:
    """Undo `_submit_all`."""
    for job in range(first, end):
        withdraw_last(t)
        if passes is not None:
            note_withdrawal(t, rank, job)


@kernel(allocates=False, forceinline=True)
def _has_room(t: KernelArrays, log: Log, implied: int, lead: int) -> bool:
    """Return whether the log has room for what is implied."""
    counted, gangs = log.counted, len(t.holder) if implied == ASK else 1
    seats = len(t.holder) if implied == ASK else t.ints[SCALE_FACTOR, lead] if implied == STARTED else 0
    starts = log.starts.shape[1] - counted[_STARTS]
    stops = log.stops.shape[1] - counted[_STOPS]
    return bool(starts >= gangs and stops >= gangs and len(log.seats) - counted[_SEATS] >= seats)


@kernel(allocates=False, forceinline=True)
def _log_event(log: Log, row: int, run: int, at: float) -> None:
    counted, events = log.counted, log.events
    place = counted[_PLAYED]
    log.at[place], events[_ROW, place], events[_RUN, place], events[_LAST, place] = at, row, run, 0
    events[_STARTS_END, place], events[_STOPS_END, place] = counted[_STARTS], counted[_STOPS]
    counted[_PLAYED] += 1


@kernel(allocates=False, forceinline=True)
def _foresee_counted(t: KernelArrays, w: World, row: int) -> None:
    """Predict the end of a job on seats that are only counted: what is believed of it is true."""
    floats = t.belief_floats
    left = max(floats[TOTAL, row] - floats[DONE, row], 0.0)
    foresee_end(w.heap, w.counts, row, floats[RATE_SINCE, row] + left / floats[RATE, row])


@kernel(allocates=False, forceinline=True)
def _start_gang(t: KernelArrays, w: World, log: Log, row: int, at: float) -> None:
    """Start the gang of a job that the core has started, whose seats are logged."""
    counted, place = log.counted, log.counted[_STARTS]
    if len(t.holder) == 0:
        w.start[row] = min(w.start[row], at)
        _foresee_counted(t, w, row)
        return
    size, type, epoch = t.ints[LEASE_SIZE, row], t.ints[ON_TYPE, row], t.ints[EPOCH, row]
    kind = w.kind_of[w.gangs[row]["model"], size]
    rate = w.rates[kind, type]
    gang_steps.start_alone(w.gangs, w.heap, w.counts, row, kind, type, size, epoch, at, rate, w.start_s, w.later_s)
    log.starts[_ROW, place], log.starts[_RUN, place], log.starts[_SEATS_END, place] = row, epoch, counted[_SEATS]
    counted[_STARTS] += 1


@kernel(allocates=False, forceinline=True)
def _start_implied(
    passes: tuple[Ints, Ints] | None,
    t: KernelArrays,
    w: World,
    log: Log,
    rank: RankLine,
    row: int,
    type: int,
    at: float,
) -> None:
    """Start the job whose start is implied."""
    taken = log.seats[log.counted[_SEATS] : log.counted[_SEATS] + t.ints[SCALE_FACTOR, row]]
    start_implied(t, row, type, at, np.inf, taken)
    log.counted[_SEATS] += len(taken)
    _start_gang(t, w, log, row, at)
    if passes is not None:
        note_start(t, rank, row)


@kernel(allocates=False, forceinline=True)
def _count_moment(counted: Ints, times: Floats, at: float, is_asked: bool) -> None:
    """Count a moment; its answer is a moment of its own."""
    if at - times[_SINCE] >= INSTANT_S:
        times[_SINCE], counted[_MOMENTS_NOW], counted[_ASKS_NOW] = at, 0, 0
    times[_AT] = at
    counted[MOMENTS] += 1
    counted[_MOMENTS_NOW] += 1 + is_asked
    counted[_ASKS_NOW] += is_asked


@kernel(allocates=False, forceinline=True)
def _end_moment(log: Log, first: int) -> None:
    """Let the last event of a moment, which began with the event `first`, say where its starts and stops end."""
    counted, end = log.counted, log.counted[_PLAYED] - 1
    if end >= first:
        log.events[_LAST, end] = 1
        log.events[_STARTS_END, end], log.events[_STOPS_END, end] = counted[_STARTS], counted[_STOPS]


@kernel(allocates=False, forceinline=True)
def _answer(t: KernelArrays, w: World, log: Log, rank: RankLine, at: float, scratch: Ints, seats: Ints) -> float:
    """Answer by rank, and let the simulation follow. Return when to answer again."""
    counted = log.counted
    counted[_PASS] += 1
    counted[_ANSWERS] += 1
    stopped, started = follow_rank(t, rank, at, counted[_PASS], scratch, seats)
    if len(t.holder) == 0:
        for row in scratch[STOPPED, :stopped]:
            if t.ints[ON_TYPE, row] < 0:
                forget_end(w.heap, w.counts, row)
                note_stop(t, rank, row, at)
        for row in scratch[LEAD, :started]:
            _start_gang(t, w, log, row, at)
        return fall_at(t, rank, at, counted[_PASS], scratch[LEAD, :started])
    if 2 * stopped > w.counts[IN_HEAP]:  # as `gang_kernels.stop`
        forget_ends(w.heap, w.counts, scratch[STOPPED, :stopped])
    for m in range(stopped):
        row = scratch[STOPPED, m]
        log.stops[_ROW, counted[_STOPS]], log.stops[_RUN, counted[_STOPS]] = row, scratch[STOPPED_EPOCH, m]
        counted[_STOPS] += 1
        gang_steps.halt(w.gangs, w.heap, w.counts, w.rates, row, at, True, 0.0)
    for g in range(started):
        for place in range(scratch[FIRST_SEAT, g], scratch[FIRST_SEAT, g + 1]):
            log.seats[counted[_SEATS]] = seats[0, place]
            counted[_SEATS] += 1
        _start_gang(t, w, log, scratch[LEAD, g], at)
    for row in scratch[STOPPED, :stopped]:  # their checkpoints are reported
        t.belief_floats[DONE, row] = w.gangs[row]["safe"]
        t.belief_floats[RATE_SINCE, row] = max(at, t.belief_floats[RATE_SINCE, row])
        note_stop(t, rank, row, at)
    return fall_at(t, rank, at, counted[_PASS], scratch[LEAD, :started])


@kernel(allocates=False, forceinline=True)
def _finish(
    passes: tuple[Ints, Ints] | None, t: KernelArrays, w: World, log: Log, rank: RankLine, row: int, at: float
) -> None:
    """Complete a job, in the core and in the simulation."""
    if len(t.holder) == 0:
        w.finish[row] = at
        forget_end(w.heap, w.counts, row)
        finish_counted(t, row)
    else:
        _log_event(log, row, t.ints[EPOCH, row], at)
        gang_steps.finish_alone(w.gangs, w.heap, w.counts, w.rates, row, at)
        finish_alone(t, row, at)
        log.counted[_GONE] += 1
    if passes is not None:
        note_end(t, rank, row)


@kernel(allocates=False, forceinline=True)
def _play(
    passes: tuple[Ints, Ints] | None,
    alone: bool,
    recall: bool,
    moves: bool,
    misfit: int,
    by: int,
    quantum: float,
    capacity: Floats,
    lines: LineArrays,
    horizon: float,
    most: int,
    arrived: int,
    last: int,
    arrivals: Floats,
    finishes: Bools,
    close: Bools,
    times: Floats,
    scratch: tuple[Ints, Ints],
    *arrays: Any,
) -> None:
    """Play moments before `horizon`, with submissions of the rows `arrived` to `last`, which is left out.

    Once all jobs were submitted it ends after `most` starts, if jobs can be stopped; where seats are only counted,
    after so many moments, from where a further call goes on. `arrivals` (job + 1,) ends with inf; `finishes` (job,)
    says of which jobs the end is a completion. `close` (job,) says which gangs are consolidated, where a start that is
    implied stands for an ask; else it is empty. `times` is brought up to date. Of one instant only so many moments are
    played before a wake-up that a clock that stops advancing is noticed. `passes` is scratch space of answers by rank;
    without it `by` is not read, and no lines are kept. `lines` are the arrays of `rank_line`, `arrays` those of
    `World`, `Log` and the core.
    """
    w, log, t = World(*arrays[:11]), Log(*arrays[11:17]), kernel_arrays(*arrays[17:])
    rank = rank_line(by, quantum, recall, misfit, capacity, lines)
    counted, (due, freed), is_counted = log.counted, scratch, len(t.holder) == 0
    row, more = arrived, NO_MORE
    if passes is not None:  # else these branches are not compiled
        begin_lines(t, rank, times[_AT])
    if is_counted and counted[MOMENTS] == 0:
        for job in rank.next_level[: rank.span[HOLDING]]:
            _foresee_counted(t, w, job)
    while True:
        # When: the next submission, end or timer, before which the loop may have to stop.
        at = min(arrivals[row], w.heap[0]["when"] if w.counts[IN_HEAP] > 0 else np.inf)
        is_woken = times[WAKE] <= at
        at = min(at, times[WAKE])
        in_instant = at - times[_SINCE] < INSTANT_S
        if not at < horizon or (is_woken and not is_counted and in_instant and counted[_MOMENTS_NOW] >= _AT_ONCE):
            break
        if recall and row + 1 == len(arrivals) and counted[MOMENTS if is_counted else _STARTS] >= most:
            break
        # What happens: ends and submissions of this instant, all of a kind that the core needs no help with.
        ends, come, first = _list_due(w.heap, w.counts[IN_HEAP], at, due), row, counted[_PLAYED]
        while arrivals[come] == at:
            come += 1
        if ends < 0 or come > last or first + ends + come - row >= len(log.at):
            more = NO_MORE if ends < 0 else MORE
            break
        if not _complete(t, w.gangs, due[:ends], finishes, freed):
            break
        # What follows: nothing, one start, or an answer, which only a rank gives; else the submissions are undone.
        _submit_all(passes, t, rank, log, row, come, at)
        implied, lead, type = _implied(passes, t, rank, log, alone, recall, moves, ends, freed, close)
        needs_policy = implied == ASK and passes is None
        if not is_counted and (needs_policy or not _has_room(t, log, implied, lead)):
            _withdraw_all(passes, t, rank, row, come)
            more = ANSWER if needs_policy else MORE
            break
        # Submissions and ends are written down.
        for job in range(row, come):
            _log_event(log, job, 0, at)
        for job in due[:ends]:
            _finish(passes, t, w, log, rank, job, at)
        if not is_counted and counted[_PLAYED] == first and implied != UNTOUCHED:
            _log_event(log, -1, -1, at)
        row = come
        _count_moment(counted, times, at, implied == ASK)
        # The start or the answer, and when the timer is set.
        if implied == STARTED:
            _start_implied(passes, t, w, log, rank, lead, type, at)
            if len(close) > 0:
                times[_ANSWERED_AT] = at
        if implied != UNTOUCHED or is_counted:
            times[_AGAIN_AT], counted[_KNOWN] = np.inf, counted[_PLAYED]
        if implied == ASK and passes is not None:
            times[_AGAIN_AT], times[_ANSWERED_AT] = _answer(t, w, log, rank, at, passes[0], passes[1]), at
        times[WAKE] = times[_AGAIN_AT] if t.counts[ALIVE] > 0 and times[_AGAIN_AT] > at else np.inf
        _end_moment(log, first)
    take_out_ended(t, counted[_GONE])
    note_next(w.heap, w.counts, w.next_end)
    counted[_SUBMITTED], counted[_MORE] = row - arrived, more


@kernel(allocates=False)
def play(*given: Any) -> None:
    """Play moments as far as none needs an answer; `given` are the arguments of `_play` from the second on."""
    _play(None, *given)


@kernel(allocates=False)
def play_ranked(*given: Any) -> None:
    """Play moments with answers by rank; `given` are the arguments of `_play`. It takes twice as long to compile."""
    _play(*given)


class ImpliedMoments:
    """Plays the moments of one simulation and its scheduler whose decisions are implied.

    `world` are the arrays of `World`. `at` and `wake` are the last moment played, and for when the timer is set.
    """

    at: float
    wake: float

    def __init__(
        self, scheduler: Scheduler, jobs: Sequence[Job], arrivals: Floats, finishes: Bools, world: tuple[Any, ...]
    ):
        self._scheduler, self._jobs, self._arrivals, self._finishes = scheduler, jobs, arrivals, finishes
        self._world = (*world, _NO_TIMES, _NO_TIMES)  # of starts and ends by row
        topology = scheduler.state.topology
        widest = int(job_array(jobs, "scale_factor").max(initial=1))
        wide = _EVENTS + topology.devices
        events, starts, stops = (np.empty((size, wide), dtype=np.int64) for size in LOGGED)
        self._log = Log(
            np.empty(_EVENTS),
            events,
            starts,
            stops,
            np.empty(max(4 * _EVENTS, widest) + topology.devices, dtype=np.int64),
            np.zeros(COUNTS, dtype=np.int64),
        )
        self._scratch = np.empty(_DUE, dtype=np.int64), np.empty(len(topology.types), dtype=np.int64)
        self._lines = no_lines(0, 0, 0, len(topology.types))
        self._foreseen = 0  # jobs whose columns are written
        self._close = ANYWHERE  # (job,) of those whether they are consolidated, where the rule says for some
        self._needs_rank = False  # so far no moment needed an answer
        self._left = WorkLeft(play)

    def forget_order(self) -> None:
        """Note that anything may have happened since the last moment played: the order of jobs is made anew."""
        forget(self._lines)

    def play(
        self,
        arrived: int,
        at: float,
        wake: float,
        instant: Instant,
        horizon: float,
        most_starts: int,
        *,
        ranked: bool,
    ) -> Iterator[MomentBatch]:
        """Play the moments before `horizon`; `arrived` jobs were submitted so far, and the last moment was `at`.

        `instant` is brought up to date. `wake`: for when the timer is set. `ranked`: also those whose answer follows
        from what the policy ranks by.
        """
        scheduler, counted, topology = self._scheduler, self._log.counted, self._scheduler.state.topology
        self.at, self.wake, more = at, wake, True
        while more and (rule := scheduler.implied_rule(ranked=ranked)) and arrived == len(scheduler.state.jobs):
            if rule.by == UNKNOWN and self.wake < math.inf:
                return
            if self._foreseen <= arrived:
                self._foreseen = arrived + scheduler.foresee(self._jobs[arrived : arrived + _JOBS])
            is_ranked = self._needs_rank and rule.by != UNKNOWN
            if is_ranked and not len(self._lines[0]):
                jobs, sizes = len(self._jobs), SIZE_CLASSES if rule.misfit == RESERVE else 0
                self._lines = no_lines(jobs, jobs, topology.devices, len(topology.types), sizes)
            counted[:_MOMENTS_NOW], counted[_MOMENTS_NOW:] = (
                0,
                (instant.moments, instant.asks, scheduler.state.pass_count),
            )
            times = np.array([self.at, -math.inf, scheduler.asks.again_at, self.wake, instant.since])
            given = (
                rule.alone, rule.recall, rule.moves, rule.misfit, rule.by, rule.quantum, scheduler.state.capacity,
                self._lines, horizon, most_starts, arrived, self._foreseen, self._arrivals, self._finishes,
                self._consolidated(rule), times, self._scratch, *self._world, *self._log, *scheduler.arrays,
            )  # fmt: skip
            if is_ranked:
                play_ranked(scheduler.pass_scratch(self._foreseen - arrived), *given)
            else:
                play(*given)
            played, submitted, known, more, starts, _, _, answers, _, _, *of_instant, passes = counted.tolist()
            self.at, answered_at, again_at, self.wake, instant.since = times.tolist()
            instant.moments, instant.asks = of_instant
            if played:
                batch = self._batch(self._jobs[arrived : arrived + submitted], arrived)
                scheduler.apply_implied(batch, known)
            scheduler.note_played(answers, answered_at, again_at, self.wake, passes)
            arrived, most_starts = arrived + submitted, most_starts - starts
            if played:
                yield batch
                self._left.update(arrived / len(self._jobs))
            is_first = more == ANSWER and rule.by != UNKNOWN and not self._needs_rank
            if is_first:
                self._needs_rank, self._left = True, WorkLeft(play_ranked)
            more = is_first or (more == MORE and played)

    def _consolidated(self, rule: ImpliedRule) -> Bools:
        """Return which of the jobs whose columns are written run on as few machines as possible, (job,), if any may."""
        if rule.spread_up_to is None:
            return ANYWHERE
        known = len(self._close)
        if known < self._foreseen:
            scheduler, rows = self._scheduler, np.arange(known, self._foreseen)
            tensor = scheduler.belief.skew(rows)
            close = np.where(np.isnan(tensor), 0.0, tensor) > rule.spread_up_to
            close &= scheduler.state.jobs.scale_factor[rows] > 1
            self._close = np.concatenate((self._close, close))
        return self._close

    def _batch(self, submitted: Sequence[Job], first_row: int) -> MomentBatch:
        log_at, log_events, log_starts, log_stops, log_seats, counted = self._log
        events = log_events[:, : counted[_PLAYED]].copy()
        starts, stops = log_starts[:, : counted[_STARTS]].copy(), log_stops[:, : counted[_STOPS]].copy()
        return MomentBatch(
            at=log_at[: counted[_PLAYED]].copy(),
            row=events[_ROW],
            epoch=events[_RUN],
            last=events[_LAST],
            starts_end=events[_STARTS_END],
            stops_end=events[_STOPS_END],
            started=starts[_ROW],
            started_epoch=starts[_RUN],
            seats_end=starts[_SEATS_END],
            seats=log_seats[: counted[_SEATS]].copy(),
            stopped=stops[_ROW],
            stopped_epoch=stops[_RUN],
            submitted=submitted,
            first_row=first_row,
            ids=self._scheduler.state.ids,
        )
