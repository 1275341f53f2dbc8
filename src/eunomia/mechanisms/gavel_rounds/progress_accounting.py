"""Accounts a round: the steps of each entry, planned; steps, time received and cost, counted at its end."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints

ACTIVE, DONE, DROPPED = 0, 1, 2


@kernel(allocates=False)
def credited(steps: float, size: int) -> float:
    """Return the steps of a gang as its workers report them, -1 when one of them has none to report.

    All but the last report a whole fraction; the last reports the rest.
    """
    each = np.floor(steps / size) if size > 1 else 0.0
    if size > 1 and each <= 0.0:
        return -1.0
    total = 0.0
    for _ in range(size - 1):
        total += each
    rest = steps - total
    if rest <= 0.0:
        return -1.0
    return total + rest


@kernel(allocates=False)
def plan(
    now: float,
    round_s: float,
    whole: bool,
    entry: Ints,
    on: Ints,
    start: Ints,
    first: Ints,
    second: Ints,
    rate: Floats,
    mate_rate: Floats,
    left: Floats,
    steps: Floats,
    mate_steps: Floats,
    finish: Floats,
    works: Bools,
) -> None:
    """Fill what each entry will do in this round, steps (row,) of its jobs, and when it will have done it, (row,).

    left (job,): steps still to do. With `whole` a round holds whole steps only, unless fewer are left, and an entry
    one of whose workers has no step to do does not work, (row,): what the others do would not count.
    """
    for i in range(len(entry)):
        e, j, size = entry[i], on[i], start[i + 1] - start[i]
        fits = rate[e, j] * round_s
        steps[i] = min(np.floor(fits) if whole else fits, left[first[e]])
        finish[i] = max(now, now + steps[i] / rate[e, j])
        works[i] = not whole or credited(steps[i], size) > 0.0
        mate_steps[i] = 0.0
        if second[e] >= 0:
            fits = mate_rate[e, j] * round_s
            mate_steps[i] = min(np.floor(fits) if whole else fits, left[second[e]])
            finish[i] = max(finish[i], now + mate_steps[i] / mate_rate[e, j])
            works[i] = works[i] and (not whole or credited(mate_steps[i], size) > 0.0)
        if not works[i]:
            steps[i] = mate_steps[i] = 0.0


@kernel(allocates=False)
def record_round(
    at: float,
    began: float,
    order: Ints,
    entry: Ints,
    on: Ints,
    start: Ints,
    seats: Ints,
    steps: Floats,
    mate_steps: Floats,
    finish: Floats,
    works: Bools,
    first: Ints,
    second: Ints,
    received: Floats,
    all_received: Floats,
    total: Floats,
    done: Floats,
    failures: Ints,
    most_failures: int,
    outcome: Ints,
    ended: Floats,
    held: Floats,
    busy: Floats,
    charged: Floats,
) -> bool:
    """Record a round of time `at`, charged from `began` on; return whether a job left or a gang failed.

    order (row,): the latest to finish first. entry … works (row,) as planned. received (entry, type) and all_received
    (type,) seconds since the last ask; total, done (job,) steps, failures (job,) in a row. outcome (job,) becomes
    DONE or DROPPED and ended (job,) its time. held (job, type) seconds on seats, busy (device,) and charged (type,)
    accelerator-seconds, those of both jobs of a pair, grow. An entry that did not work is not counted.
    """
    changed = False
    for i in order:
        e, j = entry[i], on[i]
        a, b, size, time = first[e], second[e], start[i + 1] - start[i], finish[i] - began
        if not works[i] or time <= 0.0:
            changed = True
            if b < 0:
                failures[a] += 1
                if most_failures and failures[a] >= most_failures:
                    outcome[a], ended[a] = DROPPED, finish[i]
            continue
        if b < 0:
            failures[a] = 0
        received[e, j] += time
        all_received[j] += time
        for k in range(start[i], start[i + 1]):
            busy[seats[k]] += time
        done[a] += credited(steps[i], size) if most_failures else steps[i]
        held[a, j] += finish[i] - at
        charged[j] += time * size
        if total[a] - done[a] <= 0.0:
            outcome[a], ended[a], changed = DONE, finish[i], True
        if b >= 0:
            done[b] += credited(mate_steps[i], size) if most_failures else mate_steps[i]
            held[b, j] += finish[i] - at
            charged[j] += time * size
            if total[b] - done[b] <= 0.0:
                outcome[b], ended[b], changed = DONE, finish[i], True
    return changed


@kernel(allocates=False)
def start_afresh(
    elapsed: float,
    credit: float,
    n: int,
    known: Bools,
    x: Floats,
    received: Floats,
    deficit: Floats,
    all_received: Floats,
) -> None:
    """Carry over what was owed and not received in `elapsed` seconds, and count from the credit again."""
    for j in range(len(all_received)):
        all_received[j] = 0.0
        for e in range(n):
            owed = x[e, j] * elapsed if known[e] else 0.0
            deficit[e, j] += owed - (received[e, j] - credit)
            received[e, j] = credit
            all_received[j] += credit
