"""The schedule as it was: each job starts when the trace says, on the type that the trace says, and runs to its end.

No scheduler decides; the metrics observe the same events and decisions as those of a run, so that its figures stand
beside those of policies.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from eunomia.inputs.problems import Problems
from eunomia.metrics import Metrics
from eunomia.model.decisions import Start
from eunomia.model.events import Event, JobFinished, JobSubmitted, Moment
from eunomia.model.spelling_suggestions import nearest
from eunomia.setup.run_config import RunConfig

AS_IT_WAS = "as_it_was"  # its name among policies
END, SUBMISSION, START = 0, 1, 2  # at one instant in this order: what ends makes room for what starts


def past_metrics(setup: RunConfig) -> Metrics:
    """Return the metrics of the schedule as it was.

    Raises InvalidInput where the trace has no starts or types, or holds more accelerators than the cluster has.
    """
    types, ends = _checked(setup)
    metrics = setup.metrics()
    started_s = setup.past.started_s if setup.past is not None else np.empty(0)
    queue = [(job.submitted, SUBMISSION, m) for m, job in enumerate(setup.jobs)]
    queue += [(start, START, m) for m, start in enumerate(started_s.tolist())]
    queue += [(end, END, m) for m, end in enumerate(ends)]
    queue.sort()
    free = [np.flatnonzero(setup.topology.type == j).tolist() for j in range(len(setup.topology.types))]
    held: dict[int, list[int]] = {}
    problems = Problems(setup.scenario.workload.trace or setup.scenario.name)
    at = 0
    while at < len(queue):
        now = queue[at][0]
        events: list[Event] = []
        starts: list[Start] = []
        while at < len(queue) and queue[at][0] == now:
            _, what, m = queue[at]
            job, seats = setup.jobs[m], free[types[m]]
            at += 1
            if what == END:
                for device in held.pop(m, []):
                    heapq.heappush(seats, device)
                events.append(JobFinished(job.job_id, 1))
            elif what == SUBMISSION:
                events.append(JobSubmitted(job))
            elif len(seats) < job.scale_factor:
                name, total = setup.topology.types[types[m]], int((setup.topology.type == types[m]).sum())
                rule = f"starts at {now:.15g} s, when only {len(seats)} of the {total} {name} of the cluster are free"
                fix = "enlarge the cluster to what there was, or correct ran_on, started_s or the duration"
                problems.add(rule, fix, column="started_s", value=job.job_id)
            else:
                held[m] = [heapq.heappop(seats) for _ in range(job.scale_factor)]
                starts.append(Start(job.job_id, 1, tuple(held[m]), math.inf))
        metrics.observe(Moment(now, tuple(events)), starts)
    problems.raise_if_any()
    return metrics


def _checked(setup: RunConfig) -> tuple[list[int], list[float]]:
    """Return the type and the end of each job."""
    problems, known = Problems(setup.scenario.workload.trace or setup.scenario.name), setup.topology.types
    types, ends = [], []
    if setup.past is None or np.isnan(setup.past.started_s).all():
        fix = "add the column started_s, and ran_on where there are several types, or leave as_it_was out"
        problems.add("the trace does not say when jobs started", fix, column="started_s", value=None)
        problems.raise_if_any()
    if setup.scenario.workload.load != 1:
        fix = "compare as_it_was at load 1"
        problems.add("the schedule as it was has load 1", fix, column="load", value=setup.scenario.workload.load)
    assert setup.past is not None
    for job, said, start, lasted in zip(
        setup.jobs, setup.past.ran_on, setup.past.started_s.tolist(), setup.past.duration_s.tolist(), strict=True
    ):
        name = said or (known[0] if len(known) == 1 else "")
        if name not in known:
            rule = "names no type of the cluster" if name else "is empty, and the cluster has several types"
            problems.add(f"ran_on of job {job.job_id} {rule}", nearest(name, known), column="ran_on", value=name)
            continue
        row = known.index(name)
        if math.isnan(start):
            fix = "give its start, or leave the job out"
            problems.add(f"job {job.job_id} has no start", fix, column="started_s", value=None)
        speed = float(setup.truth.solo_throughput(job.job_type, job.scale_factor)[row])
        if math.isnan(lasted) and speed <= 0:
            rule, fix = f"job {job.job_id} has throughput 0 there", "correct ran_on, or the throughputs"
            problems.add(rule, fix, column="ran_on", value=name)
        types.append(row)
        ends.append(start + (job.total_steps / speed if math.isnan(lasted) else lasted))
    problems.raise_if_any()
    return types, ends
