"""Drops the rows of jobs that have ended, so that a scheduler that never stops holds, copies and stores what is alive.

No decision depends on when that happens: the rows that stay keep their order, which breaks ties, and what ended jobs
leave behind is summed by tenant or app. Rows that an answer still names stay until the next answer.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.asking import Asks
from eunomia.core.mechanism import Mechanism
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.arrays import Ints
from eunomia.model.job_lifecycle import FINAL, Stage

SPARE = 256  # rows that are added at least before any are looked at again
_IS_FINAL = np.isin(np.arange(max(Stage) + 1), list(FINAL))  # (stage,)


def forget_ended(sched: SchedulerState, asks: Asks, mechanism: Mechanism) -> Ints | None:
    """Drop these rows if as many were added as stayed the last time, so that a job costs the same however many came.

    Returns the new number of each row, -1 = dropped; None where all stay as they are. Nothing of `sched` may have been
    foreseen. A mechanism that does not say what it keeps by row keeps all.
    """
    count, named = len(sched.state.jobs), mechanism.named()
    if count < 2 * sched.kept + SPARE or named is None:
        return None
    stays = ~_IS_FINAL[sched.state.jobs.stage[:count]]
    for question in named if asks.pending is None else [*named, asks.pending]:
        for rows in (question.active, question.job, question.partner[question.partner >= 0]):
            stays[rows] = True
    sched.kept = int(stays.sum())
    if sched.kept == count:
        return None
    row = np.where(stays, np.cumsum(stays) - 1, -1)  # (row,) the new number of each
    for question in {id(one): one for one in (*named, asks.pending) if one is not None}.values():
        question.renumber(row)
    asks.forget(stays, row)
    sched.forget(stays, row)
    return row
