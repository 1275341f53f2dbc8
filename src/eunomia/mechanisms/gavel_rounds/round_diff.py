"""A round of the clock written into the core's books in one pass: who stops, who goes on, and who starts."""

from __future__ import annotations

from typing import Any

from eunomia.core.kernel_arrays import ALIVE, EPOCH, ON_TYPE, PARTNER, TAKEN, UNTIL, KernelArrays, kernel_arrays
from eunomia.core.transitions import allocate, release
from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.placement.free_index import take

# What `turn` writes down: these counts, then who stops, with epochs; who goes on, the second ones of pairs last; of who
# starts its row in the round, the job, the partner, the epochs of both, and where its seats begin; and the seats.
STOPS, RENEWALS, STARTS, SEATS, HEAD = range(5)
OF_START = 5  # numbers about each that starts


@kernel(allocates=False, forceinline=True)
def _note_who_goes_on(
    t: KernelArrays, stamp: int, first: Ints, second: Ints, on: Ints, kept: Bools, stays: Bools
) -> None:
    """Write who sits where it sat and still runs there into `stays`, (row,), and mark its jobs."""
    for i in range(len(first)):
        row, mate = first[i], second[i]
        stays[i] = kept[i] and t.ints[ON_TYPE, row] == on[i] and t.ints[PARTNER, row] == mate
        if stays[i]:
            t.ints[TAKEN, row] = stamp
            if mate >= 0:
                t.ints[TAKEN, mate] = stamp


@kernel(allocates=False, forceinline=True)
def _stop_others(t: KernelArrays, at: float, stamp: int, told: Ints) -> int:
    """Stop who is not marked; write down jobs, in row order, and after them their epochs; return how many they are."""
    count = 0
    for row in t.active[: t.counts[ALIVE]]:
        told[HEAD + count] = row
        count += (t.ints[ON_TYPE, row] >= 0) & (t.ints[TAKEN, row] != stamp)
    for m in range(count):
        row = told[HEAD + m]
        told[HEAD + count + m] = t.ints[EPOCH, row]
        release(t, row, at)
    return count


@kernel(allocates=False, forceinline=True)
def _renew(t: KernelArrays, end: float, jobs: Ints, steps: Floats, stays: Bools, told: Ints, limits: Floats) -> int:
    """Let those of `jobs` (row,) that go on have their seats until then; write them down; return how many they are."""
    count = 0
    for i in range(len(jobs)):
        if stays[i] and jobs[i] >= 0:
            t.floats[UNTIL, jobs[i]] = end
            told[count], limits[count] = jobs[i], steps[i]
            count += 1
    return count


@kernel(allocates=False, forceinline=True)
def _start_others(
    t: KernelArrays,
    at: float,
    end: float,
    first: Ints,
    second: Ints,
    on: Ints,
    start: Ints,
    seats: Ints,
    stays: Bools,
    told: Ints,
) -> tuple[int, int]:
    """Seat those that do not go on; write them down, and return how many they are and how many seats they have."""
    count = taken = 0
    for i in range(len(first)):
        told[count] = i
        count += not stays[i]
    begin, given = told[OF_START * count :], told[(OF_START + 1) * count + 1 :]
    begin[0] = 0
    for g in range(count):
        i = told[g]
        row, mate, mine = first[i], second[i], seats[start[i] : start[i + 1]]
        take(t.floor, mine)
        allocate(t, row, mate, on[i], 0, mine, at, end)
        told[count + g], told[2 * count + g] = row, mate
        told[3 * count + g] = t.ints[EPOCH, row]
        told[4 * count + g] = t.ints[EPOCH, mate] if mate >= 0 else 0
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
    first: Ints,
    second: Ints,
    on: Ints,
    start: Ints,
    seats: Ints,
    kept: Bools,
    steps: Floats,
    mate_steps: Floats,
    stays: Bools,
    told: Ints,
    limits: Floats,
    *arrays: Any,
) -> int:
    """Let a round run, and nobody else; `first` … `mate_steps` are those of `clock.Round`.

    `told` holds what changed, and `limits` the steps of those that go on; `stays` (row,) is scratch space. Returned is
    how much was told.
    """
    t = kernel_arrays(*arrays)
    _note_who_goes_on(t, stamp, first, second, on, kept, stays)
    stopped = _stop_others(t, at, stamp, told)
    place = HEAD + 2 * stopped
    renewed = _renew(t, end, first, steps, stays, told[place:], limits)
    renewed += _renew(t, end, second, mate_steps, stays, told[place + renewed :], limits[renewed:])
    place += renewed
    started, taken = _start_others(t, at, end, first, second, on, start, seats, stays, told[place:])
    told[STOPS], told[RENEWALS], told[STARTS], told[SEATS] = stopped, renewed, started, taken
    return int(place + (OF_START + 1) * started + 1 + taken)
