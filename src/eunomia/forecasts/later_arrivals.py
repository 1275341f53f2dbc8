"""Draws the jobs that tenants will submit, from those that they have submitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage

DAY_S = 86_400.0
SPAN_S = 7 * DAY_S  # for so long arrivals are drawn


def draw_arrivals(scheduler: Scheduler, at: float, seed: Sequence[int]) -> tuple[Job, ...]:
    """Return jobs that come after `at`: for each tenant, a stretch of its own past, moved by whole days.

    Without a whole day of history the stretch is what there is, from its beginning. Jobs that have finished keep the
    steps that they did; the others have those that are believed of them.
    """
    state, belief = scheduler.state, scheduler.belief
    past: defaultdict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(state.submitted):
        past[job.tenant].append(row)
    rng, found = np.random.default_rng(seed), list[Job]()
    for tenant in sorted(past):
        rows = past[tenant]
        first = state.submitted[rows[0]].submitted
        days = int((at - first) // DAY_S)
        shift = DAY_S * int(rng.integers(1, days + 1)) if days else max(at - first, 1.0)
        for row in rows:
            job = state.submitted[row]
            when = job.submitted + shift
            if not at < when <= at + min(shift, SPAN_S):
                continue
            has_finished = state.jobs.stage[row] == Stage.FINISHED
            steps = float(belief.done[row] if has_finished else belief.total[row])
            found.append(replace(job, job_id=f"later-{row}", submitted=when, total_steps=max(steps, 1e-6)))
    found.sort(key=lambda job: (job.submitted, job.job_id))
    last = max((job.sequence for job in state.submitted), default=0)
    return tuple(replace(job, sequence=last + 1 + number) for number, job in enumerate(found))
