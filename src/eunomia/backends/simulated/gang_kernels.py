"""The true state of every job, one row each, and the kernels that start, stop and end gangs.

Each function takes a whole decision in one compiled call. The first four arguments are always the same: `gangs`
(`GANG`, a row per job), `heap`, `counts` and `next_end` (see `completion_heap`).
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.backends.simulated.completion_heap import IN_HEAP, foresee_end, forget_end, forget_ends, note_next
from eunomia.backends.simulated.loss_accounting import CANCELLED, GAVE_UP, LOSS_COLUMNS, close_span, open_span, undo
from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints

ENDED = -1  # in place of an epoch: orders for this job are ignored
FINISHED, FAILED_FOR_GOOD, FAILED = 0, 1, 2  # how a gang ended by itself
FINE = -1
_SAME = 1e-12  # relative: steps that differ by rounding alone

GANG = np.dtype(
    [
        ("total", np.float64),  # steps of the job
        ("done", np.float64),  # steps up to `since`
        ("safe", np.float64),  # steps that a loss of the machine cannot take
        ("since", np.float64),  # from when on it makes progress at this rate
        ("rate", np.float64),  # steps/s, 0 = not running
        ("limit", np.float64),  # steps that it may do from `since` on
        ("fails_at", np.float64),
        ("epoch", np.int32),
        ("model", np.int32),  # row of its job type
        ("kind", np.int32),  # row of its job type at its present size
        ("type", np.int32),
        ("size", np.int32),
        ("mate", np.int64),  # job that shares its seats, -1 = none
        ("failures", np.int32),
        ("retries", np.int32),
        ("ran", np.bool_),
        ("will_fail", np.bool_),  # its predicted end is a failure
        *LOSS_COLUMNS,
    ]
)


@kernel(allocates=False, forceinline=True)
def _advance(gang: Array, at: float) -> None:
    """Do the steps up to `at`; a gang that has done all steps its lease allows idles on its seats."""
    if at <= gang["since"]:
        return
    if gang["rate"] > 0 and at >= gang["since"] + gang["limit"] / gang["rate"]:
        gang["done"] += gang["limit"]
        gang["limit"] = 0.0
    else:
        steps = (at - gang["since"]) * gang["rate"]
        gang["done"] += steps
        gang["limit"] -= steps
    gang["since"] = at


@kernel(allocates=False, forceinline=True)
def _foresee(gangs: Array, heap: Array, counts: Ints, row: int) -> None:
    """Predict the end of a gang whose rate is known."""
    gang = gangs[row]
    left = max(gang["total"] - gang["done"], 0.0)
    within = left <= gang["limit"] * (1 + _SAME)  # the limit may have been summed in another order
    ends = gang["since"] + left / gang["rate"] if within else np.inf
    gang["will_fail"] = gang["fails_at"] < ends
    foresee_end(heap, counts, row, min(ends, gang["fails_at"]))


@kernel(allocates=False, forceinline=True)
def _account(gang: Array, alone: Floats, at: float) -> None:
    """Count the progress of a gang and the use of its seats up to now."""
    _advance(gang, at)
    if gang["rate"] > 0:
        close_span(gang, at, alone[gang["kind"], gang["type"]])


@kernel(allocates=False, forceinline=True)
def halt(
    gangs: Array, heap: Array, counts: Ints, alone: Floats, row: int, at: float, save: bool, checkpoint_every: float
) -> None:
    """Take a gang off its seats; its partner continues alone."""
    gang = gangs[row]
    _account(gang, alone, at)
    if save or checkpoint_every == 0:
        gang["safe"] = gang["done"]
    else:
        if checkpoint_every == np.inf:
            gang["safe"] = 0.0
        else:
            step = checkpoint_every * gang["rate"]
            gang["safe"] = max(gang["safe"], math.floor(gang["done"] / step) * step)
        undo(gang, gang["done"] - gang["safe"], alone[gang["kind"], gang["type"]])
    gang["done"] = gang["safe"]
    gang["rate"], gang["saved"] = 0.0, save
    forget_end(heap, counts, row)
    mate = gang["mate"]
    if mate >= 0:
        gang["mate"] = -1
        other = gangs[mate]
        _advance(other, at)
        close_span(other, at, alone[other["kind"], other["type"]])
        other["mate"] = -1
        other["since"] = max(other["since"], at)
        other["rate"] = alone[other["kind"], other["type"]]
        _foresee(gangs, heap, counts, mate)


@kernel(allocates=False, forceinline=True)
def _seat(gang: Array, kind: int, type: int, size: int, mate: int, epoch: int, limit: float) -> None:
    gang["kind"], gang["type"], gang["size"], gang["mate"] = kind, type, size, mate
    gang["epoch"], gang["limit"] = epoch, limit


@kernel(allocates=False, forceinline=True)
def _run(gang: Array, at: float, rate: float, start_s: float, later_s: Floats, fails_in: float) -> None:
    gang["since"] = at + (later_s[int(gang["saved"]), gang["size"]] if gang["ran"] else start_s)
    open_span(gang, at)
    gang["ran"] = True
    gang["rate"] = rate
    gang["fails_at"] = gang["since"] + fails_in


@kernel(allocates=False, forceinline=True)
def start_alone(
    gangs: Array, heap: Array, counts: Ints, row: int, kind: int, type: int, size: int, epoch: int, at: float,
    rate: float, start_s: float, later_s: Floats,
) -> None:  # fmt: skip
    """Start a gang without a partner, a limit of steps or a chance failure."""
    _seat(gangs[row], kind, type, size, -1, epoch, np.inf)
    _run(gangs[row], at, rate, start_s, later_s, np.inf)
    _foresee(gangs, heap, counts, row)


@kernel(allocates=False, forceinline=True)
def finish_alone(gangs: Array, heap: Array, counts: Ints, alone: Floats, row: int, at: float) -> None:
    """Complete a job without a partner."""
    gang = gangs[row]
    _account(gang, alone, at)
    gang["safe"] = gang["done"]
    gang["rate"], gang["saved"], gang["epoch"] = 0.0, True, ENDED
    forget_end(heap, counts, row)


@kernel(allocates=False)
def strangers(gangs: Array, rows: Ints, mates: Ints, first: Ints, kind_of: Ints, pair_of: Ints) -> bool:
    """Return whether a pair is to start whose speeds beside each other are not looked up yet."""
    for g in range(len(rows)):
        if mates[g] >= 0:
            size = first[g + 1] - first[g]
            one, other = kind_of[gangs[rows[g]]["model"], size], kind_of[gangs[mates[g]]["model"], size]
            if len(pair_of) == 0 or pair_of[one, other] < 0 or pair_of[other, one] < 0:
                return True
    return False


@kernel(allocates=False)
def start(
    gangs: Array,
    heap: Array,
    counts: Ints,
    next_end: Floats,
    at: float,
    rows: Ints,
    epochs: Ints,
    first: Ints,
    seats: Ints,
    mates: Ints,
    mate_epochs: Ints,
    limits: Floats,
    fails_in: Floats,
    type_of: Ints,
    kind_of: Ints,
    alone: Floats,
    pair_of: Ints,
    beside: Floats,
    start_s: float,
    later_s: Floats,
) -> int:
    """Start gangs; return the row of one that cannot run on its seats, else `FINE`.

    `limits` (gang,) and `fails_in` (gang with partner after gang) are empty where there are none. `kind_of` (job type,
    size), `alone` (kind, type), `pair_of` (kind, kind) and `beside` (pair, type) are the tables of `rates`; `later_s`
    (saved, size) is what a start costs that is not a job's first, with a checkpoint to write before or without.
    """
    drawn = 0
    for g in range(len(rows)):
        row, mate, size = rows[g], mates[g], first[g + 1] - first[g]
        gang, type = gangs[row], type_of[seats[first[g]]]
        limit = limits[g] if len(limits) else np.inf
        kind = kind_of[gang["model"], size] if size < later_s.shape[1] else -1
        if kind < 0:
            return int(row)
        rate = alone[kind, type]
        _seat(gang, kind, type, size, mate, epochs[g], limit)
        if mate >= 0:
            other = gangs[mate]
            its_kind = kind_of[other["model"], size]
            rate = beside[pair_of[kind, its_kind], type]
            _seat(other, its_kind, type, size, row, mate_epochs[g], limit)
        _run(gang, at, rate, start_s, later_s, fails_in[drawn] if len(fails_in) else np.inf)
        drawn += 1
        if gang["rate"] <= 0:
            return int(row)
        _foresee(gangs, heap, counts, row)
        if mate >= 0:
            rate = beside[pair_of[its_kind, kind], type]
            _run(other, at, rate, start_s, later_s, fails_in[drawn] if len(fails_in) else np.inf)
            drawn += 1
            if other["rate"] <= 0:
                return int(mate)
            _foresee(gangs, heap, counts, mate)
    note_next(heap, counts, next_end)
    return FINE


@kernel(allocates=False)
def stop(
    gangs: Array,
    heap: Array,
    counts: Ints,
    next_end: Floats,
    at: float,
    rows: Ints,
    epochs: Ints,
    save: bool,
    checkpoint_every: float,
    alone: Floats,
    stopped: Ints,
    safe: Floats,
) -> int:
    """Stop gangs that run in these epochs; write their rows and safe steps, (job,), and return their number.

    Gangs that do not `save` fall back to their last checkpoint, one each `checkpoint_every` seconds, 0 = at all times,
    inf = never.
    """
    count = 0
    for m in range(len(rows)):
        gang = gangs[rows[m]]
        if gang["epoch"] == epochs[m] and gang["rate"] > 0:
            stopped[count] = rows[m]
            count += 1
    if 2 * count > counts[IN_HEAP]:  # removing them one by one would move others
        forget_ends(heap, counts, stopped[:count])
    named, count = count, 0
    for row in stopped[:named]:
        if gangs[row]["rate"] > 0:  # else it is listed twice
            halt(gangs, heap, counts, alone, row, at, save, checkpoint_every)
            stopped[count], safe[count] = row, gangs[row]["safe"]
            count += 1
    note_next(heap, counts, next_end)
    return count


@kernel(allocates=False)
def allow(
    gangs: Array, heap: Array, counts: Ints, next_end: Floats, at: float, rows: Ints, limits: Floats, all: float
) -> None:
    """Limit the further steps of running gangs: `limits` (job,), or `all` where that is empty."""
    for m in range(len(rows)):
        gang = gangs[rows[m]]
        limit = limits[m] if len(limits) else all
        if gang["rate"] > 0 and not (limit == np.inf and gang["limit"] == np.inf):
            _advance(gang, at)
            gang["limit"] = limit
            _foresee(gangs, heap, counts, rows[m])
    note_next(heap, counts, next_end)


@kernel(allocates=False)
def drop(gangs: Array, heap: Array, counts: Ints, next_end: Floats, at: float, row: int, alone: Floats) -> None:
    """End a job, whatever it has done, and free its seats."""
    halt(gangs, heap, counts, alone, row, at, True, 0.0)
    gangs[row]["epoch"], gangs[row]["outcome"] = ENDED, CANCELLED
    note_next(heap, counts, next_end)


@kernel(allocates=False)
def end_due(
    gangs: Array,
    heap: Array,
    counts: Ints,
    next_end: Floats,
    at: float,
    checkpoint_every: float,
    alone: Floats,
    rows: Ints,
    epochs: Ints,
    how: Ints,
) -> int:
    """End the gangs whose end is now. Write rows, epochs and `FINISHED` … `FAILED`; return their number.

    A gang that fails falls back to its safe steps and is retried while it has retries. At most as many are written as
    `rows` has room for; the others stay in the heap.
    """
    count = 0
    while counts[IN_HEAP] > 0 and count < len(rows) and heap[0]["when"] == at:
        row = heap[0]["row"]
        gang = gangs[row]
        rows[count], epochs[count] = row, gang["epoch"]
        fails = bool(gang["will_fail"])
        halt(gangs, heap, counts, alone, row, at, not fails, checkpoint_every)
        gang["failures"] += fails
        how[count] = FINISHED if not fails else FAILED if gang["failures"] <= gang["retries"] else FAILED_FOR_GOOD
        if how[count] == FAILED_FOR_GOOD:
            gang["outcome"] = GAVE_UP
        if how[count] != FAILED:
            gang["epoch"] = ENDED
        count += 1
    note_next(heap, counts, next_end)
    return count


@kernel(allocates=False)
def steps_done(gangs: Array, row: int, at: float) -> float:
    """Return the steps that a gang has done by now."""
    _advance(gangs[row], at)
    return float(gangs[row]["done"])


@kernel(allocates=False)
def settle(gangs: Array, at: float, alone: Floats) -> None:
    """LossAccount for the seats of those that still run."""
    for row in range(len(gangs)):
        gang = gangs[row]
        if gang["rate"] > 0 and at > gang["mark"]:
            _advance(gang, at)
            close_span(gang, at, alone[gang["kind"], gang["type"]])
