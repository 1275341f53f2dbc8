"""What is heard of each job, one row each, and how many are present, run and keep accelerators busy at each time.

Each function takes a whole decision in one compiled call. The first arguments are always the same: `lives` (`LIFE`, a
row per job), `received` (job, type) seconds, `waiting` (scale factor,) jobs, `now` (curve,) the present values, the
`points` (`POINT`) of all curves in order of time, and `last` (curve + 1,), which says where each curve has its last
point and, at its end, how many points there are.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints

UNFINISHED, FINISHED, FAILED, CANCELLED, REJECTED = range(5)
# Curves: jobs; the narrowest gang that waits, 0 = none; from BUSY on one per type, then one per type of what went, then
# for each tenant one per type of what its jobs hold.
PRESENT, RUNNING, NARROWEST, BUSY = 0, 1, 2, 3

# Numbers that are handed on are as wide as those of arrays, so that what takes them is compiled once.
LIFE = np.dtype(
    [
        ("first", np.float64),  # its first start, nan = never
        ("ended", np.float64),
        ("since", np.float64),  # of its present seats
        ("service", np.float64),  # accelerator-seconds up to `since`
        ("epoch", np.int64),
        ("mate", np.int64),  # who shares its seats, -1 = nobody
        ("size", np.int64),  # scale factor
        ("held", np.int64),  # accelerators, 0 = it has no seats
        ("type", np.int64),  # of its seats
        ("preemptions", np.int32),
        ("failures", np.int32),
        ("status", np.int32),
        ("owner", np.int32),  # number of its tenant
        ("paused", np.int32),  # 1 = its user wants it to rest
    ]
)
POINT = np.dtype([("at", np.float64), ("value", np.int32), ("curve", np.int32)])


@kernel(allocates=False, forceinline=True)
def change(points: Array, last: Ints, now: Ints, at: float, curve: int, by: int) -> None:
    """Let a curve rise or fall; what happens to it at one instant is one point."""
    now[curve] += by
    place = last[curve]
    if place < 0 or points[place]["at"] != at:
        place = last[-1]
        last[-1] += 1
        last[curve] = place
        points[place]["at"], points[place]["curve"] = at, curve
    points[place]["value"] = now[curve]


@kernel(allocates=False, forceinline=True)
def _wait(waiting: Ints, now: Ints, points: Array, last: Ints, at: float, size: int, by: int) -> None:
    """One more gang of that size waits, or one less."""
    waiting[size] += by
    least = now[NARROWEST]
    if by > 0 and (least == 0 or size < least):
        change(points, last, now, at, NARROWEST, size - least)
    elif size == least and waiting[size] == 0:
        wider = size + 1
        while wider < len(waiting) and waiting[wider] == 0:
            wider += 1
        change(points, last, now, at, NARROWEST, (wider if wider < len(waiting) else 0) - least)


@kernel(allocates=False)
def submit(
    lives: Array,
    received: Floats,
    waiting: Ints,
    now: Ints,
    points: Array,
    last: Ints,
    at: float,
    row: int,
    size: int,
    owner: int,
) -> None:
    """A job comes, and waits."""
    lives[row]["size"], lives[row]["owner"] = size, owner
    change(points, last, now, at, PRESENT, 1)
    _wait(waiting, now, points, last, at, size, 1)


@kernel(allocates=False, forceinline=True)
def _owned(life: Array, types: int, type: int) -> int:
    """Return the curve of what the job's tenant holds of a type."""
    return int(BUSY + (2 + life["owner"]) * types + type)


@kernel(allocates=False, forceinline=True)
def _unseat(lives: Array, received: Floats, now: Ints, points: Array, last: Ints, at: float, row: int) -> None:
    life = lives[row]
    type, mate = life["type"], life["mate"]
    received[row, type] += at - life["since"]
    life["service"] += (at - life["since"]) * life["held"]
    change(points, last, now, at, RUNNING, -1)
    change(points, last, now, at, _owned(life, received.shape[1], type), -life["held"])
    if mate >= 0:  # it keeps the seats
        lives[mate]["mate"] = -1
        life["mate"] = -1
    else:
        change(points, last, now, at, BUSY + type, -life["held"])
    life["held"] = 0


@kernel(allocates=False, forceinline=True)
def _seat(
    life: Array,
    waiting: Ints,
    now: Ints,
    points: Array,
    last: Ints,
    at: float,
    epoch: int,
    size: int,
    types: int,
    type: int,
    mate: int,
) -> None:
    _wait(waiting, now, points, last, at, int(life["size"]), -1)
    change(points, last, now, at, RUNNING, 1)
    change(points, last, now, at, _owned(life, types, type), size)
    if np.isnan(life["first"]):
        life["first"] = at
    life["since"], life["epoch"], life["held"], life["type"], life["mate"] = at, epoch, size, type, mate


@kernel(allocates=False)
def start(
    lives: Array,
    received: Floats,
    waiting: Ints,
    now: Ints,
    points: Array,
    last: Ints,
    at: float,
    rows: Ints,
    epochs: Ints,
    first: Ints,
    seats: Ints,
    mates: Ints,
    mate_epochs: Ints,
    type_of: Ints,
) -> None:
    """Gangs sit down, alone or with a partner, whose accelerators are busy once."""
    for g in range(len(rows)):
        row, mate, size, type = rows[g], mates[g], first[g + 1] - first[g], type_of[seats[first[g]]]
        types = received.shape[1]
        _seat(lives[row], waiting, now, points, last, at, epochs[g], size, types, type, mate)
        change(points, last, now, at, BUSY + type, size)
        if mate >= 0:
            _seat(lives[mate], waiting, now, points, last, at, mate_epochs[g], size, types, type, row)


@kernel(allocates=False)
def stop(
    lives: Array,
    received: Floats,
    waiting: Ints,
    now: Ints,
    points: Array,
    last: Ints,
    at: float,
    rows: Ints,
    save: bool,
) -> None:
    """Gangs leave their seats; with a checkpoint that is a preemption."""
    for m in range(len(rows)):
        if lives[rows[m]]["held"] > 0:
            _unseat(lives, received, now, points, last, at, rows[m])
            _wait(waiting, now, points, last, at, int(lives[rows[m]]["size"]), 1)
            lives[rows[m]]["preemptions"] += save


@kernel(allocates=False)
def add_service(
    lives: Array, received: Floats, waiting: Ints, now: Ints, points: Array, last: Ints, at: float, rows: Ints
) -> None:
    """Jobs begin to receive time without seats."""
    for row in rows:
        _wait(waiting, now, points, last, at, int(lives[row]["size"]), -1)
        change(points, last, now, at, RUNNING, 1)
        if np.isnan(lives[row]["first"]):
            lives[row]["first"] = at


@kernel(allocates=False)
def end_run(
    lives: Array, received: Floats, waiting: Ints, now: Ints, points: Array, last: Ints, at: float, rows: Ints
) -> None:
    """Jobs receive nothing more, and wait."""
    for row in rows:
        change(points, last, now, at, RUNNING, -1)
        _wait(waiting, now, points, last, at, int(lives[row]["size"]), 1)


@kernel(allocates=False)
def _withdraw(
    lives: Array, received: Floats, waiting: Ints, now: Ints, points: Array, last: Ints, at: float, row: int
) -> None:
    """A job is no longer present, whether it runs or waits."""
    if lives[row]["held"] > 0:
        _unseat(lives, received, now, points, last, at, row)
    else:
        _wait(waiting, now, points, last, at, int(lives[row]["size"]), -1)
    change(points, last, now, at, PRESENT, -1)


@kernel(allocates=False)
def pause(
    lives: Array, received: Floats, waiting: Ints, now: Ints, points: Array, last: Ints, at: float, row: int
) -> bool:
    """Let a job rest; say whether it did not before and is not over."""
    if lives[row]["status"] != UNFINISHED or lives[row]["paused"]:
        return False
    _withdraw(lives, received, waiting, now, points, last, at, row)
    lives[row]["paused"] = 1
    return True


@kernel(allocates=False)
def resume(
    lives: Array, received: Floats, waiting: Ints, now: Ints, points: Array, last: Ints, at: float, row: int
) -> bool:
    """Let a job that rests wait for seats again; say whether it rested."""
    if not lives[row]["paused"]:
        return False
    change(points, last, now, at, PRESENT, 1)
    _wait(waiting, now, points, last, at, int(lives[row]["size"]), 1)
    lives[row]["paused"] = 0
    return True


@kernel(allocates=False)
def end(
    lives: Array,
    received: Floats,
    waiting: Ints,
    now: Ints,
    points: Array,
    last: Ints,
    at: float,
    row: int,
    status: int,
    epoch: int,
) -> bool:
    """Say whether the job is over now: it was not before, and it sits in that epoch; -1 = whether it sits or not."""
    life = lives[row]
    if life["status"] != UNFINISHED or (epoch >= 0 and (epoch != life["epoch"] or life["held"] == 0)):
        return False
    if not life["paused"]:
        _withdraw(lives, received, waiting, now, points, last, at, row)
    life["status"], life["ended"], life["paused"] = status, at, 0
    return True


@kernel(allocates=False)
def fail(
    lives: Array,
    received: Floats,
    waiting: Ints,
    now: Ints,
    points: Array,
    last: Ints,
    at: float,
    row: int,
    epoch: int,
    over: bool,
) -> bool:
    """A gang that sits in that epoch fails; with `over` that is the end of the job. Say whether the job is over."""
    life = lives[row]
    if life["held"] == 0 or life["epoch"] != epoch:
        return False
    life["failures"] += 1
    if over:
        ended: bool = end(lives, received, waiting, now, points, last, at, row, FAILED, epoch)
        return ended
    _unseat(lives, received, now, points, last, at, row)
    _wait(waiting, now, points, last, at, int(life["size"]), 1)
    return False
