"""The schedule as it was: each job starts when the trace says, on the type that the trace says, and runs to its end.

The end is the one of the trace, or when the job has run its duration; in pauses it holds nothing.

No scheduler decides; the metrics observe the same events and decisions as those of a run, so that its figures stand
beside those of policies.
"""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np

from eunomia.inputs.problems import Problems
from eunomia.metrics import Metrics
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Start, Stop
from eunomia.model.events import Event, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.spelling_suggestions import nearest
from eunomia.scenario import Scenario
from eunomia.setup.run_objects import RunConfig
from eunomia.traces.accelerator_hours import MOST_BEYOND

AS_IT_WAS = "as_it_was"  # its name among policies
END, PAUSE, SUBMISSION, START = 0, 1, 2, 3  # at one instant in this order: what ends makes room for what starts


def past_metrics(setup: RunConfig) -> tuple[Metrics, tuple[str, ...]]:
    """Return the metrics of the schedule as it was, and notes.

    Raises InvalidInput where the trace has no starts or types, or where more than `MOST_BEYOND` of what jobs held of a
    type is beyond what the cluster has; less is noted.
    """
    past = _PastRun(setup)
    past.play()
    return past.metrics, past.notes()


class _PastRun:
    """Plays the past: submissions, starts and ends, and the devices that jobs hold."""

    def __init__(self, setup: RunConfig):
        self._setup = setup
        self._type, lasts_s = _checked(setup)
        assert setup.past is not None  # checked
        past = setup.past
        types = len(setup.topology.types)
        self._devices = [np.flatnonzero(setup.topology.type == j) for j in range(types)]
        self._holders = np.zeros(len(setup.topology.type), dtype=np.int64)  # (device,) jobs that hold it
        self._seats: dict[int, Ints] = {}
        self._epoch = np.zeros(len(setup.jobs), dtype=np.int64)  # starts so far
        self._level, self._peak = np.zeros(types, dtype=np.int64), np.zeros(types, dtype=np.int64)  # accelerators held
        self._held_s, self._beyond_s = np.zeros(types), np.zeros(types)  # accelerator-seconds
        self._queue = [(job.submitted, SUBMISSION, m) for m, job in enumerate(setup.jobs)]
        for m, (start_s, end_s) in enumerate(zip(past.started_s.tolist(), past.ended_s.tolist(), strict=True)):
            self._queue += [(start_s, START, m), (start_s + lasts_s[m] if math.isnan(end_s) else end_s, END, m)]
            for from_s, to_s in past.pauses[m]:
                self._queue += [(start_s + from_s, PAUSE, m), (start_s + to_s, START, m)]
        self._queue.sort()
        self.metrics = setup.metrics()

    def play(self) -> None:
        """Play all instants. Raises InvalidInput where the cluster is too small."""
        capacity, before = np.array([devices.size for devices in self._devices]), 0.0
        for now, changes in groupby(self._queue, key=lambda change: change[0]):
            self._held_s += self._level * (now - before)
            self._beyond_s += np.maximum(self._level - capacity, 0) * (now - before)
            events: list[Event] = []
            decisions: list[Decision] = []
            for _, what, m in changes:
                job = self._setup.jobs[m]
                if what == SUBMISSION:
                    events.append(JobSubmitted(job))
                elif what == START:
                    decisions.append(self._start(m, job))
                else:
                    self._level[self._type[m]] -= job.scale_factor
                    self._holders[self._seats.pop(m)] -= 1
                    epoch = int(self._epoch[m])
                    if what == END:
                        events.append(JobFinished(job.job_id, epoch))
                    else:
                        decisions.append(Stop((job.job_id,), (epoch,)))
            self._peak = np.maximum(self._peak, self._level)
            self.metrics.observe(Moment(now, tuple(events)), decisions)
            before = now
        self._check_size()

    def _start(self, m: int, job: Job) -> Start:
        """Start a job on the devices that the fewest jobs hold."""
        devices = self._devices[self._type[m]]
        seats = devices[np.argsort(self._holders[devices], kind="stable")[: job.scale_factor]]
        self._seats[m] = seats
        self._holders[seats] += 1
        self._level[self._type[m]] += job.scale_factor
        self._epoch[m] += 1
        return Start(job.job_id, int(self._epoch[m]), tuple(seats.tolist()), math.inf)

    def _check_size(self) -> None:
        problems = Problems(self._setup.scenario.workload.trace or self._setup.scenario.name)
        for row in np.flatnonzero(self._beyond_s > MOST_BEYOND * self._held_s).tolist():
            fix = "enlarge the cluster to what there was, or correct ran_on, started_s or the durations"
            problems.add(self._peak_of(row), fix, column="started_s")
        problems.raise_if_any()

    def _peak_of(self, row: int) -> str:
        name, total = self._setup.topology.types[row], self._devices[row].size
        return f"jobs held up to {self._peak[row]:,} {name} at a time, and the cluster has {total:,}"

    def notes(self) -> tuple[str, ...]:
        """Return a note on each type of which jobs held more than the cluster has."""
        rows = np.flatnonzero(self._beyond_s > 0).tolist()
        parts = (100 * self._beyond_s[row] / self._held_s[row] for row in rows)
        return tuple(
            f"{AS_IT_WAS}: {self._peak_of(row)}; {part:.2g} % of their time there is beyond it, and counts."
            for row, part in zip(rows, parts, strict=True)
        )


def check_past(scenario: Scenario, started_s: Floats) -> None:
    """Raise InvalidInput where the trace has no starts, (job,), or is played at another load than its own."""
    problems = Problems(scenario.workload.trace or scenario.name)
    if np.isnan(started_s).all():
        fix = "add the column started_s, and ran_on where there are several types, or leave as_it_was out"
        problems.add("the trace does not say when jobs started", fix, column="started_s", value=None)
    if scenario.workload.load != 1:
        fix = "compare as_it_was at load 1"
        problems.add("the schedule as it was has load 1", fix, column="load", value=scenario.workload.load)
    problems.raise_if_any()


def _checked(setup: RunConfig) -> tuple[list[int], list[float]]:
    """Return the type of each job, and how long it ran there, in s."""
    problems, known = Problems(setup.scenario.workload.trace or setup.scenario.name), setup.topology.types
    types, lasts = [], []
    check_past(setup.scenario, np.empty(0) if setup.past is None else setup.past.started_s)
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
        if job.scale_factor > (total := int((setup.topology.type == row).sum())):
            rule = f"job {job.job_id} held {job.scale_factor:,} {name}, and the cluster has {total:,}"
            problems.add(
                rule, "enlarge the cluster, or leave the job out", column="scale_factor", value=job.scale_factor
            )
            continue
        types.append(row)
        lasts.append(max(round(job.total_steps / speed, 6), 1e-6))  # a duration comes back as it was written
    problems.raise_if_any()
    return types, lasts
