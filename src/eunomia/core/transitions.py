"""Elementary transitions: release and allocate seats, end jobs; state, ledger and belief change together."""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.core.kernel_arrays import (
    ALIVE,
    DONE,
    EPOCH,
    FIRST_DEVICE,
    FIRST_STARTED,
    HELD,
    ILLEGAL_CAUSE,
    ILLEGAL_JOB,
    LAST_TYPE,
    LEASE_EXTENDED,
    LEASE_SIZE,
    NO_CHECKPOINT,
    ON_TYPE,
    PARTNER,
    RAN,
    RATE,
    RATE_SINCE,
    SCALE_FACTOR,
    SERVED_SINCE,
    SERVICE,
    SHAPE,
    STAGE,
    UNINTERRUPTIBLE,
    UNTIL,
    WAITING,
    WIDTH,
    KernelArrays,
    kernel_arrays,
)
from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_lifecycle import CAUSES, NEXT_STAGE, Cause, Stage
from eunomia.placement.free_index import free_chain, take

_WAITS, _RUNS = int(Stage.WAITING), int(Stage.RUNNING)
_STARTED, _STOPPED, _RESUMED, _FINISHED = (
    CAUSES.index(cause) for cause in (Cause.STARTED, Cause.STOPPED, Cause.RESUMED, Cause.FINISHED)
)


@kernel(allocates=False, forceinline=True)
def _step(ints: Ints, counts: Ints, row: int, cause: int) -> None:
    """Move a job to its next stage by `NEXT_STAGE`; record a step that is not allowed."""
    before = ints[STAGE, row]
    after = NEXT_STAGE[cause, before]
    if after < 0:
        counts[ILLEGAL_JOB], counts[ILLEGAL_CAUSE] = row + 1, cause
        return
    ints[STAGE, row] = after
    counts[WAITING] += int(after == _WAITS) - int(before == _WAITS)


@kernel(allocates=False, forceinline=True)
def _add_believed_steps(floats: Floats, row: int, at: float) -> None:
    """Count the steps that a job is believed to have done since its rate began; floats (column, job) of the belief."""
    floats[DONE, row] += max(at - floats[RATE_SINCE, row], 0.0) * floats[RATE, row]


@kernel(allocates=False, forceinline=True)
def _add_service(ints: Ints, floats: Floats, received: Floats, row: int, at: float) -> None:
    """Add the service of a job on its seats to the ledger; it receives none from `at` on."""
    held = at - floats[SERVED_SINCE, row]
    floats[SERVICE, row] += held * ints[WIDTH, row]
    received[row, ints[LAST_TYPE, row]] += held
    ints[WIDTH, row] = 0
    floats[SERVED_SINCE, row] = at  # it waits from now on


@kernel(allocates=False, forceinline=True)
def _keep_lease(t: KernelArrays, mate: int, at: float) -> None:
    """Give a pair's lease to the job that keeps it."""
    kind = t.ints[ON_TYPE, mate]
    _add_believed_steps(t.belief_floats, mate, at)
    t.belief_floats[RATE, mate] = t.throughput[mate, kind]
    t.belief_floats[RATE_SINCE, mate] = max(at, t.belief_floats[RATE_SINCE, mate])
    t.ints[PARTNER, mate], t.ints[LEASE_SIZE, mate] = -1, t.ledger_ints[WIDTH, mate]
    t.flags[HELD, mate] = t.flags[UNINTERRUPTIBLE, mate]
    seat = t.ints[FIRST_DEVICE, mate]
    while seat >= 0:
        t.holder[seat] = mate
        seat = t.next_device[seat]


@kernel(allocates=False, forceinline=True)
def _end_service(t: KernelArrays, row: int, at: float) -> None:
    """Take a job off its seats in ledger, belief and state; the seats are still to free, or to leave to its partner."""
    ints = t.ints
    _add_service(t.ledger_ints, t.ledger_floats, t.received, row, at)
    _add_believed_steps(t.belief_floats, row, at)
    t.belief_floats[RATE, row] = 0.0
    ints[ON_TYPE, row] = ints[PARTNER, row] = ints[FIRST_DEVICE, row] = -1
    ints[SHAPE, row] = ints[LEASE_SIZE, row] = 0
    t.floats[UNTIL, row], t.flags[LEASE_EXTENDED, row], t.flags[HELD, row] = np.inf, False, False


@kernel(allocates=False, forceinline=True)
def _release(t: KernelArrays, row: int, at: float) -> None:
    """Release the seats of a job. A partner keeps them."""
    mate, seat = t.ints[PARTNER, row], t.ints[FIRST_DEVICE, row]
    _end_service(t, row, at)
    if mate >= 0:
        _keep_lease(t, mate, at)
    else:
        free_chain(t.floor, seat, t.next_device, t.holder, t.up)


@kernel(allocates=False, forceinline=True)
def release(t: KernelArrays, row: int, at: float) -> None:
    """Stop a job: release its seats and requeue it."""
    _release(t, row, at)
    _step(t.ints, t.counts, row, _STOPPED)


@kernel(allocates=False, forceinline=True)
def _begin_service(t: KernelArrays, row: int, kind: int, size: int, at: float) -> int:
    """Start one job of a gang in ledger and belief: its believed rate is that of the gang as asked, alone.

    Return which start it is, a row of `cost`.
    """
    begun = 0 if not t.flags[RAN, row] else 2 if t.flags[NO_CHECKPOINT, row] else 1
    t.ledger_floats[SERVED_SINCE, row] = at
    t.ledger_ints[WIDTH, row], t.ledger_ints[LAST_TYPE, row] = size, kind
    t.belief_floats[RATE, row] = t.throughput[row, kind]
    t.belief_floats[RATE_SINCE, row] = at + t.cost[begun, size]
    t.flags[RAN, row], t.flags[NO_CHECKPOINT, row] = True, False
    return begun


@kernel(allocates=False, forceinline=True)
def _start_one(t: KernelArrays, row: int, mate: int, kind: int, shape: int, first: int, size: int, at: float) -> None:
    """Start one job of a gang."""
    ints = t.ints
    if _begin_service(t, row, kind, size, at) == 0:
        t.floats[FIRST_STARTED, row] = at
    ints[ON_TYPE, row], ints[SHAPE, row] = kind, shape
    ints[PARTNER, row], ints[FIRST_DEVICE, row], ints[EPOCH, row] = mate, first, ints[EPOCH, row] + 1
    t.flags[HELD, row] = t.flags[UNINTERRUPTIBLE, row] or (mate >= 0 and t.flags[UNINTERRUPTIBLE, mate])
    _step(t.ints, t.counts, row, _STARTED)


@kernel(allocates=False, forceinline=True)
def _hold(t: KernelArrays, row: int, seats: Ints) -> None:
    """Link the seats of a gang and note their holder."""
    after = -1
    for place in range(len(seats) - 1, -1, -1):
        seat = seats[place]
        t.holder[seat], t.next_device[seat] = row, after
        after = seat


@kernel(allocates=False, forceinline=True)
def allocate_alone(t: KernelArrays, row: int, kind: int, shape: int, seats: Ints, at: float, until: float) -> None:
    """Allocate seats taken in the free index to a pending job without a partner."""
    _hold(t, row, seats)
    _start_one(t, row, -1, kind, shape, seats[0], len(seats), at)
    t.ints[LEASE_SIZE, row], t.floats[UNTIL, row] = len(seats), np.inf if t.flags[UNINTERRUPTIBLE, row] else until


@kernel(allocates=False, forceinline=True)
def allocate_counted(t: KernelArrays, row: int, kind: int, at: float) -> None:
    """Start a pending job on seats that are only counted, as many as its scale factor."""
    size = t.ints[SCALE_FACTOR, row]
    t.floor.total[kind] -= size
    _begin_service(t, row, kind, size, at)
    t.ints[ON_TYPE, row], t.ints[LEASE_SIZE, row] = kind, size
    t.counts[WAITING] -= 1


@kernel(allocates=False, forceinline=True)
def release_counted(t: KernelArrays, row: int, at: float) -> None:
    """Stop a job on seats that are only counted."""
    t.floor.total[t.ints[ON_TYPE, row]] += t.ints[LEASE_SIZE, row]
    _add_service(t.ledger_ints, t.ledger_floats, t.received, row, at)
    _add_believed_steps(t.belief_floats, row, at)
    t.belief_floats[RATE, row] = 0.0
    t.ints[ON_TYPE, row], t.ints[LEASE_SIZE, row] = -1, 0
    t.counts[WAITING] += 1


@kernel(allocates=False, forceinline=True)
def finish_counted(t: KernelArrays, row: int) -> None:
    """Complete a running job on seats that are only counted: nothing looks at it again."""
    t.floor.total[t.ints[ON_TYPE, row]] += t.ints[LEASE_SIZE, row]
    t.ints[ON_TYPE, row] = -1
    t.counts[ALIVE] -= 1


@kernel(allocates=False, forceinline=True)
def allocate(t: KernelArrays, row: int, mate: int, kind: int, shape: int, seats: Ints, at: float, until: float) -> None:
    """Allocate seats taken in the free index to a pending job or a pair."""
    _hold(t, row, seats)
    for job, other in ((row, mate), (mate, row)):
        if job >= 0:
            _start_one(t, job, other, kind, shape, seats[0], len(seats), at)
            t.ints[LEASE_SIZE, job] = len(seats) if job == row else 0
            t.floats[UNTIL, job] = np.inf if t.flags[UNINTERRUPTIBLE, job] else until


@kernel(allocates=False, forceinline=True)
def _place_of(active: Ints, alive: int, row: int) -> int:
    """Return the place of a job among the active rows, which ascend."""
    low, high = 0, alive
    while low < high:
        middle = (low + high) >> 1
        if active[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False, forceinline=True)
def take_out(active: Ints, alive: int, row: int) -> int:
    """Take a job that ended out of the active rows, which ascend; return how many are left."""
    for i in range(_place_of(active, alive, row), alive - 1):
        active[i] = active[i + 1]
    return alive - 1


@kernel(allocates=False, forceinline=True)
def submit(t: KernelArrays, row: int, gone: int) -> None:
    """Add the next job, whose columns are written, to the active rows, `gone` of which have ended: it waits."""
    t.active[t.counts[ALIVE] + gone] = row
    t.counts[ALIVE] += 1
    t.counts[WAITING] += 1


@kernel(allocates=False, forceinline=True)
def withdraw_last(t: KernelArrays) -> None:
    """Undo `submit`."""
    t.counts[ALIVE] -= 1
    t.counts[WAITING] -= 1


@kernel(allocates=False, forceinline=True)
def finish_alone(t: KernelArrays, row: int, at: float) -> None:
    """Complete a running job without a partner; it is among the active rows until `take_out_ended`."""
    seat = t.ints[FIRST_DEVICE, row]
    _end_service(t, row, at)
    free_chain(t.floor, seat, t.next_device, t.holder, t.up)
    _step(t.ints, t.counts, row, _FINISHED)
    t.counts[ALIVE] -= 1


@kernel(allocates=False, forceinline=True)
def take_out_ended(t: KernelArrays, gone: int) -> None:
    """Take jobs that ended out of the active rows, among which are `gone` of them."""
    kept = 0
    for row in t.active[: t.counts[ALIVE] + gone if gone > 0 else 0]:
        if t.ints[STAGE, row] <= _RUNS:
            t.active[kept] = row
            kept += 1


# ---- steps called from outside --------------------------------------------------------------------------------------


@kernel(allocates=False)
def leave(row: int, at: float, cause: int, gone: bool, *arrays: Any) -> None:
    """Take a job off its seats, if it has any, for that cause; if `gone`, out of the active rows, too."""
    t = kernel_arrays(*arrays)
    if t.ints[ON_TYPE, row] >= 0:
        _release(t, row, at)
    _step(t.ints, t.counts, row, cause)
    if gone:
        t.counts[ALIVE] = take_out(t.active, t.counts[ALIVE], row)


@kernel(allocates=False)
def requeue(row: int, at: float, *arrays: Any) -> None:
    """Put a job that is not among the active rows back into its place there: it waits from now on."""
    t = kernel_arrays(*arrays)
    alive = t.counts[ALIVE]
    place = _place_of(t.active, alive, row)
    for i in range(alive, place, -1):
        t.active[i] = t.active[i - 1]
    t.active[place] = row
    t.counts[ALIVE] = alive + 1
    _step(t.ints, t.counts, row, _RESUMED)
    t.ledger_floats[SERVED_SINCE, row] = at


@kernel(allocates=False)
def stop_all(rows: Ints, at: float, *arrays: Any) -> None:
    """Take these jobs off their seats: they wait."""
    t = kernel_arrays(*arrays)
    for row in rows:
        release(t, row, at)


@kernel(allocates=False)
def start_all(
    lead: Ints, mate: Ints, kind: Ints, shape: Ints, first: Ints, seats: Ints, at: float, until: float, *arrays: Any
) -> None:
    """Take these free seats for gangs: gang g gets seats[first[g]:first[g + 1]]."""
    t = kernel_arrays(*arrays)
    for g in range(len(lead)):
        mine = seats[first[g] : first[g + 1]]
        take(t.floor, mine)
        allocate(t, lead[g], mate[g], kind[g], shape[g], mine, at, until)
