"""Applies a round of the clock to the scheduler state in one pass: stops, renewals and starts."""

from __future__ import annotations

from typing import Any

from eunomia.core.kernel_arrays import ALIVE, EPOCH, LAST_PASS, ON_TYPE, PARTNER, UNTIL, KernelArrays, kernel_arrays
from eunomia.core.transitions import allocate, release
from eunomia.kernels import kernel
from eunomia.mechanisms.gavel_rounds.progress_accounting import OF_ROUND, Round
from eunomia.model.arrays import Bools, Floats, Ints
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
def turn(
    at: float,
    end: float,
    stamp: int,
    stays: Bools,
    output: Ints,
    limits: Floats,
    *arrays: Any,
) -> int:
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
