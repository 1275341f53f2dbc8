"""Accounts a round: the steps of each entry, planned; steps, time received and cost, counted at its end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.mechanisms.gavel_rounds.job_pairs import PairArrays
from eunomia.model.arrays import Bools, Floats, Ints

ACTIVE, DONE, DROPPED = 0, 1, 2


class Round(NamedTuple):
    """Entries that run from `at` on, one row for a job or a pair. Seats of row i are seats[start[i]:start[i + 1]]."""

    at: float
    entry: Ints
    first: Ints  # rows of the job table
    second: Ints  # -1 = alone
    on: Ints  # type
    start: Ints
    seats: Ints
    kept: Bools  # kept its seats of the round before
    steps: Floats
    mate_steps: Floats
    finish: Floats  # when its steps are done
    works: Bools  # False: a worker has no step to do, so no worker does any

    end: float  # when the last of them has done its steps; -inf when no job runs
    paired: bool  # some of them share


class ProgressArrays(NamedTuple):
    """Columns of `round_progress.JobProgress`, as kernels take them."""

    total: Floats
    done: Floats
    failures: Ints
    outcome: Ints
    ended: Floats
    held: Floats


OF_ROUND = len(Round.__annotations__)
OF_PROGRESS = OF_ROUND + len(PairArrays.__annotations__)


@kernel(allocates=False)
def credited(steps: float, workers: int) -> float:
    """Return the steps of a gang as so many workers report them, -1 when one of them has none to report.

    All but the last report a whole fraction; the last reports the rest.
    """
    each = np.floor(steps / workers) if workers > 1 else 0.0
    if workers > 1 and each <= 0.0:
        return -1.0
    total = 0.0
    for _ in range(workers - 1):
        total += each
    rest = steps - total
    if rest <= 0.0:
        return -1.0
    return total + rest


@kernel(allocates=False)
def plan(round_s: float, whole: bool, split: bool, left: Floats, *arrays: Any) -> None:
    """Fill what each entry will do in this round, steps (row,) of its jobs, and when it will have done it, (row,).

    left (job,): steps still to do. With `whole` a round holds whole steps only, unless fewer are left, and an entry
    one of whose workers has no step to do does not work, (row,): what the others do would not count. With `split`
    each accelerator of a gang is a worker of its own, else the gang is one. `arrays` are those of a `Round` and of
    `PairArrays`.
    """
    now, e = Round(*arrays[:OF_ROUND]), PairArrays(*arrays[OF_ROUND:])
    for i in range(len(now.entry)):
        row, j = now.entry[i], now.on[i]
        workers = now.start[i + 1] - now.start[i] if split else 1
        rate, mate = e.rate[row, j], e.second[row]
        fits = rate * round_s
        steps, mate_steps = min(np.floor(fits) if whole else fits, left[e.first[row]]), 0.0
        finish, works = max(now.at, now.at + steps / rate), not whole or credited(steps, workers) > 0.0
        if mate >= 0:
            rate = e.mate_rate[row, j]
            fits = rate * round_s
            mate_steps = min(np.floor(fits) if whole else fits, left[mate])
            finish = max(finish, now.at + mate_steps / rate)
            works = works and (not whole or credited(mate_steps, workers) > 0.0)
        now.finish[i], now.works[i] = finish, works
        now.steps[i], now.mate_steps[i] = (steps, mate_steps) if works else (0.0, 0.0)


@kernel(allocates=False)
def record_round(
    began: float,
    order: Ints,
    all_received: Floats,
    most_failures: int,
    split: bool,
    busy: Floats,
    charged: Floats,
    *arrays: Any,
) -> bool:
    """Record a round, charged from `began` on; return whether a job left or a gang failed.

    order (row,): the latest to finish first. received (entry, type) and all_received (type,) seconds since the last
    ask; total, done (job,) steps, failures (job,) in a row. outcome (job,) becomes DONE or DROPPED and ended (job,)
    its time. held (job, type) seconds on seats, busy (device,) and charged (type,) accelerator-seconds, those of both
    jobs of a pair, grow. An entry that did not work is not counted. `arrays` are those of a `Round`, of `PairArrays`
    and of `ProgressArrays`.
    """
    now, e = Round(*arrays[:OF_ROUND]), PairArrays(*arrays[OF_ROUND:OF_PROGRESS])
    jobs = ProgressArrays(*arrays[OF_PROGRESS:])
    changed = False
    for i in order:
        row, j, finish = now.entry[i], now.on[i], now.finish[i]
        a, b, size, time = e.first[row], e.second[row], now.start[i + 1] - now.start[i], finish - began
        if not now.works[i] or time <= 0.0:
            changed = True
            if b < 0:
                jobs.failures[a] += 1
                if most_failures and jobs.failures[a] >= most_failures:
                    jobs.outcome[a], jobs.ended[a] = DROPPED, finish
            continue
        if b < 0:
            jobs.failures[a] = 0
        e.received[row, j] += time
        all_received[j] += time
        for k in range(now.start[i], now.start[i + 1]):
            busy[now.seats[k]] += time
        for job, steps in ((a, now.steps[i]), (b, now.mate_steps[i])):
            if job >= 0:
                jobs.done[job] += credited(steps, size if split else 1) if most_failures else steps
                jobs.held[job, j] += finish - now.at
                charged[j] += time * size
                if jobs.total[job] - jobs.done[job] <= 0.0:
                    jobs.outcome[job], jobs.ended[job], changed = DONE, finish, True
    return changed


@kernel(allocates=False)
def start_afresh(elapsed: float, credit: float, n: int, all_received: Floats, *arrays: Any) -> None:
    """Carry over what was owed and not received in `elapsed` seconds, and count from the credit again."""
    e = PairArrays(*arrays)
    for j in range(len(all_received)):
        all_received[j] = 0.0
        for row in range(n):
            owed = e.x[row, j] * elapsed if e.known[row] else 0.0
            e.deficit[row, j] += owed - (e.received[row, j] - credit)
            e.received[row, j] = credit
            all_received[j] += credit
