"""What happened to each job, one row each, and curves of how many are present, run and hold accelerators over time.

The kernels handle one decision or event per call. They take the arrays of `Timelines` last, one by one, because a tuple
takes longer to unpack than a step takes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints

UNFINISHED, FINISHED, FAILED, CANCELLED, REJECTED = range(5)
# Curves: jobs present; jobs running; scale factor of the narrowest waiting gang, 0 = none; from BUSY on accelerators in
# use by type; then changes of the capacity by type; then for each tenant the accelerators that its jobs hold by type.
PRESENT, RUNNING, NARROWEST, BUSY = 0, 1, 2, 3

JOB = np.dtype(
    [
        ("first", np.float64),  # its first start, nan = never
        ("ended", np.float64),
        ("since", np.float64),  # start of its present lease
        ("service", np.float64),  # accelerator-seconds up to `since`
        ("epoch", np.int32),
        ("partner", np.int32),  # row of the job that shares its seats, -1 = none
        ("size", np.int32),  # scale factor
        ("held", np.int32),  # accelerators, 0 = it has no seats
        ("type", np.int32),  # of its seats
        ("preemptions", np.int32),
        ("failures", np.int32),
        ("owner", np.int32),  # number of its tenant
        ("status", np.int8),
        ("paused", np.bool_),
    ]
)
POINT = np.dtype([("at", np.float64), ("value", np.int32), ("curve", np.int32)])


class Timelines(NamedTuple):
    """The arrays that every kernel changes in place."""

    jobs: Array  # (job,) of `JOB`
    received: Floats  # (job, type) seconds
    waiting: Ints  # (scale factor,) gangs that wait
    now: Ints  # (curve,) present values
    points: Array  # of `POINT`, of all curves in order of time
    last: Ints  # (curve + 1,) index of each curve's last point, -1 = none; at its end, how many points there are


@kernel(allocates=False, forceinline=True)
def _change(t: Timelines, at: float, curve: int, by: int) -> None:
    """Change a curve by `by`; changes of it at one instant are one point."""
    t.now[curve] += by
    point = t.last[curve]
    if point < 0 or t.points[point]["at"] != at:
        point = t.last[-1]
        t.last[-1] += 1
        t.last[curve] = point
        t.points[point]["at"], t.points[point]["curve"] = at, curve
    t.points[point]["value"] = t.now[curve]


@kernel(allocates=False)
def change(at: float, curve: int, by: int, *arrays: Any) -> None:
    """Change a curve by `by`."""
    _change(Timelines(*arrays), at, curve, by)


@kernel(allocates=False, forceinline=True)
def _wait(t: Timelines, at: float, size: int, by: int) -> None:
    """Count one more gang of that size as waiting, or one less."""
    t.waiting[size] += by
    least = t.now[NARROWEST]
    if by > 0 and (least == 0 or size < least):
        _change(t, at, NARROWEST, size - least)
    elif size == least and t.waiting[size] == 0:
        wider = size + 1
        while wider < len(t.waiting) and t.waiting[wider] == 0:
            wider += 1
        _change(t, at, NARROWEST, (wider if wider < len(t.waiting) else 0) - least)


@kernel(allocates=False, forceinline=True)
def _submit(t: Timelines, at: float, row: int) -> None:
    _change(t, at, PRESENT, 1)
    _wait(t, at, int(t.jobs[row]["size"]), 1)


@kernel(allocates=False)
def submit(at: float, row: int, size: int, owner: int, *arrays: Any) -> None:
    """Add a job, which waits."""
    t = Timelines(*arrays)
    t.jobs[row]["size"], t.jobs[row]["owner"] = size, owner
    _submit(t, at, row)


@kernel(allocates=False, forceinline=True)
def _owned(t: Timelines, row: int, type: int) -> int:
    """Return the curve of the accelerators of a type that the job's tenant holds."""
    return int(BUSY + (2 + t.jobs[row]["owner"]) * t.received.shape[1] + type)


@kernel(allocates=False, forceinline=True)
def _release(t: Timelines, at: float, row: int) -> None:
    """Take the seats of a running job; a partner keeps them."""
    job = t.jobs[row]
    type, partner, held = int(job["type"]), int(job["partner"]), int(job["held"])
    t.received[row, type] += at - job["since"]
    job["service"] += (at - job["since"]) * held
    _change(t, at, RUNNING, -1)
    _change(t, at, _owned(t, row, type), -held)
    if partner >= 0:
        t.jobs[partner]["partner"] = -1
        job["partner"] = -1
    else:
        _change(t, at, BUSY + type, -held)
    job["held"] = 0


@kernel(allocates=False, forceinline=True)
def _allocate(t: Timelines, at: float, row: int, epoch: int, size: int, type: int, partner: int) -> None:
    """Give a waiting job `size` accelerators of a type."""
    job = t.jobs[row]
    _wait(t, at, int(job["size"]), -1)
    _change(t, at, RUNNING, 1)
    _change(t, at, _owned(t, row, type), size)
    if np.isnan(job["first"]):
        job["first"] = at
    job["since"], job["epoch"], job["held"], job["type"], job["partner"] = at, epoch, size, type, partner


@kernel(allocates=False)
def start(
    at: float,
    rows: Ints,
    epochs: Ints,
    first: Ints,
    seats: Ints,
    partners: Ints,
    partner_epochs: Ints,
    type_of: Ints,
    *arrays: Any,
) -> None:
    """Start gangs as `model.decisions.Starts` says; the accelerators of a pair are busy once."""
    t = Timelines(*arrays)
    for g in range(len(rows)):
        row, partner, begin = int(rows[g]), int(partners[g]), int(first[g])
        size, type = int(first[g + 1]) - begin, int(type_of[seats[begin]])
        _allocate(t, at, row, epochs[g], size, type, partner)
        _change(t, at, BUSY + type, size)
        if partner >= 0:
            _allocate(t, at, partner, partner_epochs[g], size, type, row)


@kernel(allocates=False)
def record_batch(
    at: Floats,
    row: Ints,
    epoch: Ints,
    starts_end: Ints,
    stops_end: Ints,
    started: Ints,
    started_epoch: Ints,
    seats: Ints,
    seats_end: Ints,
    stopped: Ints,
    *arrays: Any,
) -> None:
    """Record moments as `model.moment_batch` has them; sizes and owners of the jobs are written.

    `arrays` are the type of each accelerator, and those of `Timelines`.
    """
    type_of, t, begin, g, s = arrays[0], Timelines(*arrays[1:]), 0, 0, 0
    for m in range(len(at)):
        if epoch[m] == 0:
            _submit(t, at[m], row[m])
        elif epoch[m] > 0:
            _end(t, at[m], row[m], FINISHED, epoch[m])
        while s < stops_end[m]:
            _stop(t, at[m], stopped[s], True)
            s += 1
        while g < starts_end[m]:
            size, type = int(seats_end[g] - begin), int(type_of[seats[begin]])
            _allocate(t, at[m], started[g], started_epoch[g], size, type, -1)
            _change(t, at[m], BUSY + type, size)
            begin = seats_end[g]
            g += 1


@kernel(allocates=False, forceinline=True)
def _stop(t: Timelines, at: float, row: int, save: bool) -> None:
    """Stop a gang, if it runs."""
    if t.jobs[row]["held"] > 0:
        _release(t, at, row)
        _wait(t, at, int(t.jobs[row]["size"]), 1)
        t.jobs[row]["preemptions"] += save


@kernel(allocates=False)
def stop(at: float, rows: Ints, save: bool, *arrays: Any) -> None:
    """Stop gangs; with a checkpoint (`save`) that counts as a preemption."""
    t = Timelines(*arrays)
    for row in rows:
        _stop(t, at, row, save)


@kernel(allocates=False)
def start_service(at: float, rows: Ints, *arrays: Any) -> None:
    """Count waiting jobs as running without seats, on shares of time."""
    t = Timelines(*arrays)
    for row in rows:
        _wait(t, at, int(t.jobs[row]["size"]), -1)
        _change(t, at, RUNNING, 1)
        if np.isnan(t.jobs[row]["first"]):
            t.jobs[row]["first"] = at


@kernel(allocates=False)
def end_service(at: float, rows: Ints, *arrays: Any) -> None:
    """Count jobs that ran without seats as waiting."""
    t = Timelines(*arrays)
    for row in rows:
        _change(t, at, RUNNING, -1)
        _wait(t, at, int(t.jobs[row]["size"]), 1)


@kernel(allocates=False)
def _withdraw(t: Timelines, at: float, row: int) -> None:
    """Count a running or waiting job as present no longer."""
    if t.jobs[row]["held"] > 0:
        _release(t, at, row)
    else:
        _wait(t, at, int(t.jobs[row]["size"]), -1)
    _change(t, at, PRESENT, -1)


@kernel(allocates=False)
def pause(at: float, row: int, *arrays: Any) -> bool:
    """Pause a job; return False if it is paused already or has ended."""
    t = Timelines(*arrays)
    if t.jobs[row]["status"] != UNFINISHED or t.jobs[row]["paused"]:
        return False
    _withdraw(t, at, row)
    t.jobs[row]["paused"] = True
    return True


@kernel(allocates=False)
def resume(at: float, row: int, *arrays: Any) -> bool:
    """Count a paused job as waiting; return False if it is not paused."""
    t = Timelines(*arrays)
    if not t.jobs[row]["paused"]:
        return False
    _change(t, at, PRESENT, 1)
    _wait(t, at, int(t.jobs[row]["size"]), 1)
    t.jobs[row]["paused"] = False
    return True


@kernel(allocates=False)
def _end(t: Timelines, at: float, row: int, status: int, epoch: int) -> bool:
    job = t.jobs[row]
    if job["status"] != UNFINISHED or (epoch >= 0 and (epoch != job["epoch"] or job["held"] == 0)):
        return False
    if not job["paused"]:
        _withdraw(t, at, row)
    job["status"], job["ended"], job["paused"] = status, at, False
    return True


@kernel(allocates=False)
def end(at: float, row: int, status: int, epoch: int, *arrays: Any) -> bool:
    """End a job; return False if it has ended already, or does not run in `epoch` (-1 = whether it runs or not)."""
    ended: bool = _end(Timelines(*arrays), at, row, status, epoch)
    return ended


@kernel(allocates=False)
def fail(at: float, row: int, epoch: int, over: bool, *arrays: Any) -> bool:
    """Fail a gang if it runs in `epoch`; with `over` the job ends. Return whether it has ended."""
    t = Timelines(*arrays)
    job = t.jobs[row]
    if job["held"] == 0 or job["epoch"] != epoch:
        return False
    job["failures"] += 1
    if over:
        ended: bool = _end(t, at, row, FAILED, epoch)
        return ended
    _release(t, at, row)
    _wait(t, at, int(job["size"]), 1)
    return False
