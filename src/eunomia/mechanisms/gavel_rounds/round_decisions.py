"""A round of the clock: applied to the scheduler state in one pass, and as decisions, with a limit of steps each."""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.core.kernel_arrays import ALIVE, EPOCH, LAST_PASS, ON_TYPE, PARTNER, UNTIL, KernelArrays, kernel_arrays
from eunomia.core.scheduler_state import SchedulerState
from eunomia.core.transitions import allocate, release
from eunomia.kernels import kernel
from eunomia.mechanisms.gavel_rounds.progress_accounting import OF_ROUND, Round
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop
from eunomia.placement.free_index import take

# The output of `turn`: these counts, then stopped jobs with epochs; renewed jobs, second ones of pairs last; of each
# started gang its row in the round, job, partner, both epochs, and where its seats begin; and the seats.
STOPS, RENEWALS, STARTS, SEATS, HEAD = range(5)
OF_START = 5  # numbers about each gang started


@kernel(allocates=False, forceinline=True)
def _mark_renewed(t: KernelArrays, stamp: int, now: Round, stays: Bools) -> None:
    """Set `stays` (row,) for entries that keep their seats and run there, and mark their jobs."""
    for i in range(len(now.first)):
        row, mate = now.first[i], now.second[i]
        stays[i] = now.kept[i] and t.ints[ON_TYPE, row] == now.on[i] and t.ints[PARTNER, row] == mate
        if stays[i]:
            t.ints[LAST_PASS, row] = stamp
            if mate >= 0:
                t.ints[LAST_PASS, mate] = stamp


@kernel(allocates=False, forceinline=True)
def _stop_others(t: KernelArrays, at: float, stamp: int, output: Ints) -> int:
    """Stop jobs without a mark; list them in row order, then their epochs; return their number."""
    count = 0
    for row in t.active[: t.counts[ALIVE]]:
        output[HEAD + count] = row
        count += (t.ints[ON_TYPE, row] >= 0) & (t.ints[LAST_PASS, row] != stamp)
    for m in range(count):
        row = output[HEAD + m]
        output[HEAD + count + m] = t.ints[EPOCH, row]
        release(t, row, at)
    return count


@kernel(allocates=False, forceinline=True)
def _renew(t: KernelArrays, end: float, jobs: Ints, steps: Floats, stays: Bools, output: Ints, limits: Floats) -> int:
    """Renew the leases of `jobs` (row,) marked in `stays` up to `end`; list them; return their number."""
    count = 0
    for i in range(len(jobs)):
        if stays[i] and jobs[i] >= 0:
            t.floats[UNTIL, jobs[i]] = end
            output[count], limits[count] = jobs[i], steps[i]
            count += 1
    return count


@kernel(allocates=False, forceinline=True)
def _start_others(t: KernelArrays, at: float, end: float, now: Round, stays: Bools, output: Ints) -> tuple[int, int]:
    """Start entries that are not renewed; list them and return the numbers of entries and of seats."""
    count = taken = 0
    for i in range(len(now.first)):
        output[count] = i
        count += not stays[i]
    begin, given = output[OF_START * count :], output[(OF_START + 1) * count + 1 :]
    begin[0] = 0
    for g in range(count):
        i = output[g]
        row, mate, mine = now.first[i], now.second[i], now.seats[now.start[i] : now.start[i + 1]]
        take(t.floor, mine)
        allocate(t, row, mate, now.on[i], 0, mine, at, end)
        output[count + g], output[2 * count + g] = row, mate
        output[3 * count + g] = t.ints[EPOCH, row]
        output[4 * count + g] = t.ints[EPOCH, mate] if mate >= 0 else 0
        for seat in mine:
            given[taken] = seat
            taken += 1
        begin[g + 1] = taken
    return count, taken


@kernel(allocates=False)
def turn(at: float, end: float, stamp: int, stays: Bools, output: Ints, limits: Floats, *arrays: Any) -> int:
    """Run exactly the jobs of a round. `arrays` are those of a `Round` and of `KernelArrays`.

    `output` holds what changed, and `limits` the steps of renewed jobs; `stays` (row,) is scratch space. Returns the
    length of the output.
    """
    now, t = Round(*arrays[:OF_ROUND]), kernel_arrays(*arrays[OF_ROUND:])
    _mark_renewed(t, stamp, now, stays)
    stopped = _stop_others(t, at, stamp, output)
    place = HEAD + 2 * stopped
    renewed = _renew(t, end, now.first, now.steps, stays, output[place:], limits)
    renewed += _renew(t, end, now.second, now.mate_steps, stays, output[place + renewed :], limits[renewed:])
    place += renewed
    started, taken = _start_others(t, at, end, now, stays, output[place:])
    output[STOPS], output[RENEWALS], output[STARTS], output[SEATS] = stopped, renewed, started, taken
    return int(place + (OF_START + 1) * started + 1 + taken)


class RoundSeats:
    """Applies each round to the scheduler state and returns the changes."""

    def __init__(self, sched: SchedulerState):
        self._sched, self.state = sched, sched.state

    def decisions(self, found: Round, at: float) -> list[Decision]:
        """Return the decisions after which exactly the jobs of this round run."""
        names, n = self.state.names, len(found.first)
        self.state.pass_count += 1
        output, limits = self._sched.kernel_scratch()[2], np.empty(2 * n)
        stays = np.empty(n, dtype=np.bool_)
        length = turn(at, found.end, self.state.pass_count, stays, output, limits, *found, *self._sched.arrays)
        self._sched.demand_legal()
        output = output[:length].copy()
        stops, renewals, starts, _ = output[:HEAD].tolist()
        orders: list[Decision] = []
        place = HEAD + 2 * stops
        if stops:
            orders.append(Stop(names(output[HEAD : HEAD + stops]), output[HEAD + stops : place]))
        if renewals:
            orders.append(Renew(names(output[place : place + renewals]), found.end, limits[:renewals]))
        if starts:
            self._start(found, starts, output[place + renewals :], orders)
        return orders

    def _start(self, found: Round, starts: int, output: Ints, orders: list[Decision]) -> None:
        rows, first, second, epochs, mate_epochs = output[: OF_START * starts].reshape(OF_START, starts)
        begin, seats = output[OF_START * starts : (OF_START + 1) * starts + 1], output[(OF_START + 1) * starts + 1 :]
        shape = np.zeros(starts, dtype=np.int64)
        names = self.state.names
        orders.append(
            Starts(
                jobs=names(first),
                epochs=epochs,
                first=begin,
                seats=seats,
                until=np.full(starts, found.end),
                shape=shape,
                partners=names(second),
                partner_epochs=mate_epochs,
                max_steps=found.steps[rows],
            )
        )
        if found.paired:
            self._sched.correct_rates(first, found.on[rows], shape, np.diff(begin), second)
            two = second >= 0
            if two.any():  # each of two has steps of its own to do
                both = np.concatenate((first[two], second[two]))
                limits = np.concatenate((found.steps[rows[two]], found.mate_steps[rows[two]]))
                orders.append(Renew(names(both), found.end, limits))
