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
from eunomia.report.number_format import shown
from eunomia.setup.run_config import RunConfig

AS_IT_WAS = "as_it_was"  # its name among policies
END, SUBMISSION, START = 0, 1, 2  # at one instant in this order: what ends makes room for what starts
CLOCK_S = 2.0  # accounting rounds times to seconds: a start that is later by less counts as on time
MOST_LATE = 0.05  # fraction of jobs whose start the cluster may delay


def past_metrics(setup: RunConfig) -> tuple[Metrics, tuple[str, ...]]:
    """Return the metrics of the schedule as it was, and notes.

    A start for which too few accelerators are free waits for them, as accounting counts a gang as whole until its last
    task ends. Raises InvalidInput where the trace has no starts or types, or where more than `MOST_LATE` of the jobs
    would have to wait.
    """
    past = _PastRun(setup)
    past.play()
    return past.metrics, past.notes()


class _PastRun:
    """Plays the past: submissions, starts and ends, and the devices that jobs hold."""

    def __init__(self, setup: RunConfig):
        self._setup = setup
        self._type, self._lasts_s = _checked(setup)
        self._start_s = setup.past.started_s.tolist() if setup.past is not None else []
        types = setup.topology.types
        self._free = [np.flatnonzero(setup.topology.type == j).tolist() for j in range(len(types))]
        self._waiting: list[int] = []  # jobs that the trace has started, in its order
        self._held: dict[int, list[int]] = {}
        self._late: dict[int, float] = {}  # job → s after its start in the trace
        self._queue = [(job.submitted, SUBMISSION, m) for m, job in enumerate(setup.jobs)]
        self._queue += [(start, START, m) for m, start in enumerate(self._start_s)]
        heapq.heapify(self._queue)
        self.metrics = setup.metrics()

    def play(self) -> None:
        """Play all instants. Raises InvalidInput where the cluster is too small."""
        queue, jobs = self._queue, self._setup.jobs
        while queue:
            now = queue[0][0]
            events: list[Event] = []
            while queue and queue[0][0] == now and queue[0][1] != START:
                _, what, m = heapq.heappop(queue)
                if what == SUBMISSION:
                    events.append(JobSubmitted(jobs[m]))
                    continue
                for device in self._held.pop(m):
                    heapq.heappush(self._free[self._type[m]], device)
                events.append(JobFinished(jobs[m].job_id, 1))
            while queue and queue[0][:2] == (now, START):
                self._waiting.append(heapq.heappop(queue)[2])
            self.metrics.observe(Moment(now, tuple(events)), self._starts(now))
        self._check_size()

    def _starts(self, now: float) -> list[Start]:
        """Start the waiting jobs that fit."""
        starts, left = [], []
        for m in self._waiting:
            job, free = self._setup.jobs[m], self._free[self._type[m]]
            if len(free) < job.scale_factor:
                left.append(m)
                continue
            self._held[m] = [heapq.heappop(free) for _ in range(job.scale_factor)]
            if now - self._start_s[m] >= CLOCK_S:
                self._late[m] = now - self._start_s[m]
            heapq.heappush(self._queue, (now + self._lasts_s[m], END, m))
            starts.append(Start(job.job_id, 1, tuple(self._held[m]), math.inf))
        self._waiting = left
        return starts

    def _check_size(self) -> None:
        setup, topology = self._setup, self._setup.topology
        late = list(self._late) if len(self._late) > MOST_LATE * len(setup.jobs) else []
        problems = Problems(setup.scenario.workload.trace or setup.scenario.name)
        for m in self._waiting or late:
            name, total = topology.types[self._type[m]], int((topology.type == self._type[m]).sum())
            rule = f"starts at {self._start_s[m]:.15g} s, when too few of the {total} {name} of the cluster are free"
            fix = "enlarge the cluster to what there was, or correct ran_on, started_s or the duration"
            problems.add(rule, fix, column="started_s", value=setup.jobs[m].job_id)
        problems.raise_if_any()

    def notes(self) -> tuple[str, ...]:
        """Return a note on the starts that had to wait."""
        if not self._late:
            return ()
        late = sorted(self._late.values())
        return (
            f"{AS_IT_WAS}: {len(late):,} of {len(self._setup.jobs):,} jobs start later than in the trace, by "
            f"{shown(sum(late) / len(late), 's')} on average and {shown(late[-1], 's')} at most, as the cluster has "
            "too few accelerators at that time.",
        )


def _checked(setup: RunConfig) -> tuple[list[int], list[float]]:
    """Return the type of each job, and how long it ran there, in s."""
    problems, known = Problems(setup.scenario.workload.trace or setup.scenario.name), setup.topology.types
    types, lasts = [], []
    if setup.past is None or np.isnan(setup.past.started_s).all():
        fix = "add the column started_s, and ran_on where there are several types, or leave as_it_was out"
        problems.add("the trace does not say when jobs started", fix, column="started_s", value=None)
        problems.raise_if_any()
    if setup.scenario.workload.load != 1:
        fix = "compare as_it_was at load 1"
        problems.add("the schedule as it was has load 1", fix, column="load", value=setup.scenario.workload.load)
    assert setup.past is not None
    for job, said, start in zip(setup.jobs, setup.past.ran_on, setup.past.started_s.tolist(), strict=True):
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
        if speed <= 0:
            rule, fix = f"job {job.job_id} has throughput 0 there", "correct ran_on, or the throughputs"
            problems.add(rule, fix, column="ran_on", value=name)
            continue
        types.append(row)
        lasts.append(max(round(job.total_steps / speed, 6), 1e-6))  # a duration comes back as it was written
    problems.raise_if_any()
    return types, lasts
