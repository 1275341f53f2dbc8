"""Shares as a fluid: every job gets exactly its share of every type all the time, whatever machines could do.

What a mechanism loses against this is the price of whole accelerators, whole gangs and rounds. Shares are asked for
anew whenever a job comes or ends.
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.experiment.measure import measured_jobs
from eunomia.experiment.wiring import Setup
from eunomia.model.answers import InvalidAnswer, Shares
from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.view import View


def fluid_jct(setup: Setup) -> Floats:
    """Return the JCTs of the measured jobs in seconds, (job,), in order of submission.

    Takes policies that answer X (job, type) from throughputs, sizes, weights, capacity, submission and remaining work.
    Raises InvalidAnswer for another answer.
    """
    jobs = sorted(setup.jobs, key=lambda job: (job.submitted, job.sequence))
    measured = {job.job_id for job in (measured_jobs(setup.scenario, setup.jobs) or setup.jobs)}
    counts = np.array([job.job_id in measured for job in jobs])
    submitted = np.array([job.submitted for job in jobs])
    left, ended = np.array([job.total_steps for job in jobs]), np.full(len(jobs), np.nan)
    throughput = np.array([setup.believed.alone(job.job_type, job.scale_factor) for job in jobs])
    arrived, at, active = 0, 0.0, np.empty(0, dtype=np.int64)
    while np.isnan(ended[counts]).any():
        while arrived < len(jobs) and submitted[arrived] <= at:
            active, arrived = np.append(active, arrived), arrived + 1
        rate = _rates(setup, at, [jobs[row] for row in active.tolist()], throughput[active], left[active])
        coming = submitted[arrived] if arrived < len(jobs) else math.inf
        with np.errstate(divide="ignore"):
            ends = at + left[active] / rate
        now = min(float(ends.min(initial=math.inf)), coming)
        left[active] -= (now - at) * rate
        done = ends <= now
        ended[active[done]], active, at = now, active[~done], now
    return np.asarray((ended - submitted)[counts])


def _rates(setup: Setup, at: float, own: list[Job], throughput: Floats, left: Floats) -> Floats:
    """Return steps/s of each of these jobs, (job,), by the policy's shares."""
    if not own:
        return np.empty(0)
    columns = {
        "throughput": throughput,
        "scale_factor": np.array([job.scale_factor for job in own]),
        "weight": np.array([job.weight for job in own]),
        "submitted": np.array([job.submitted for job in own]),
        "remaining": left,
        "capacity": setup.topology.capacity(),
    }
    needs = setup.policy.info.needs
    answer = setup.policy.decide(
        View(
            at=at,
            types=setup.topology.types,
            jobs=len(own),
            columns={name: column for name, column in columns.items() if name in needs},
        )
    )
    if not isinstance(answer, Shares) or answer.rows is not None:
        raise InvalidAnswer(f"policy {setup.policy.info.name!r} answers no X (job, type), which a fluid needs")
    return np.asarray((answer.x * throughput).sum(axis=1))
