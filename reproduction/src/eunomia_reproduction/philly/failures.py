"""Tables 6 and 7: how jobs end, for which reasons they fail, after how long, and how wide they are.

Counted in the simulated world, trial by trial: jobs as `philly-submitted` draws them, on so many accelerators that none
waits. Jobs that fail have three trials there, on Philly as many as the reason has on average; so the mix of all sizes
is that of the reasons, weighted by their trials in the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.failures.philly_reasons import KILLED, REASONS, UNSUCCESSFUL
from eunomia.failures.run_times import MINUTE_S, P90, size_class
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision, Start, Starts
from eunomia.model.events import JobFailed, JobSubmitted, Moment
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import virtual_backend
from eunomia_reproduction.philly.averages import range_note
from eunomia_reproduction.ratio_rows import with_ends
from eunomia_reproduction.table import FigureRow

JOBS, TRIALS = 10_000, 3
NODES = [{"type": "gpu", "count": 500, "accelerators": 32}]
STATUS = {"passed": 1 - UNSUCCESSFUL - KILLED, "killed": KILLED, "unsuccessful": UNSUCCESSFUL}
TIME = {"passed": 0.4453, "killed": 0.3769, "unsuccessful": 0.1776}  # parts of all accelerator time
ENDS = ("finished", "cancelled", "failed")  # the same, as a run calls them
POINT = 0.01
NEAR_MEDIAN, NEAR_SIZE = 0.10, 0.02
ERRORS = 2.0  # standard errors that have to be smaller than a tolerance for a row to be checked
TABLE_6, TABLE_7 = (f"Jeon et al., ATC 2019, Table {number}" for number in (6, 7))
SIZES = ("1", "2-4", ">4")
ROW = {reason.name: row for row, reason in enumerate(REASONS)}


@dataclass(frozen=True, slots=True)
class FailureSample:
    """The jobs of one seed."""

    status: Floats  # (passed, killed, unsuccessful) parts of all jobs
    time: Floats  # (passed, killed, unsuccessful) parts of all accelerator time
    minutes: tuple[Floats, ...]  # of each reason the run times of its trials
    trials: Floats  # (reason, class)


def played(seed: int, jobs: int = JOBS) -> FailureSample:
    """Play jobs that never wait, and return how they ended and all trials that failed."""
    scenario = scenario_from_dict(
        {
            "seed": seed,
            "cluster": {"nodes": NODES},
            "workload": {
                "generator": "philly-like",
                "distribution": "philly-submitted",
                "jobs": jobs,
                "rate_per_hour": 100.0,
            },
            "throughputs": {"source": "uniform"},
            "policy": {"name": "fifo"},
            "physics": {"fates": "philly", "retries": TRIALS - 1},
        },
        Path(),
    )
    setup, seen = set_up(scenario), FailedTrials()
    metrics = setup.metrics()
    run(setup.scheduler(), virtual_backend(setup), InlinePolicyRunner(setup.policy), [metrics, seen])
    figures = metrics.figures()
    ends = [figures.summary[f"jobs_{end}"] or 0 for end in ENDS]
    service = [figures.jobs["attained_service_s"][figures.jobs["status"] == end].sum() for end in ENDS]
    minutes: list[list[float]] = [[] for _ in REASONS]
    trials = np.zeros((len(REASONS), len(SIZES)))
    for _, reason, size, ran_s in seen.found:
        minutes[ROW[reason]].append(ran_s / MINUTE_S)
        trials[ROW[reason], size_class(np.array([size]))[0]] += 1
    time = np.array(service) / np.sum(service)
    return FailureSample(np.array(ends) / jobs, time, tuple(map(np.array, minutes)), trials)


def statuses(found: Sequence[FailureSample]) -> list[FigureRow]:
    """Return the mix of final status beside Table 6, to a point, and what part of the time each has, unchecked."""
    jobs = {name: [float(one.status[place]) for one in found] for place, name in enumerate(STATUS)}
    time = {name: [float(one.time[place]) for one in found] for place, name in enumerate(TIME)}
    return [
        *(row for name, part in STATUS.items() for row in _status(name, "jobs", jobs[name], part, POINT / part)),
        *(row for name, part in TIME.items() for row in _status(name, "accelerator time", time[name], part)),
    ]


def _status(
    name: str, quantity: str, values: Sequence[float], published: float, tolerance: float | None = None
) -> list[FigureRow]:
    row = FigureRow(
        series="Table 6",
        x=name,
        quantity=quantity,
        unit="of all",
        published=published,
        measured=float(np.mean(values)),
        note=range_note(values),
        tolerance=tolerance,
        source=TABLE_6,
    )
    return with_ends(row, values)


def reasons(found: Sequence[FailureSample]) -> list[FigureRow]:
    """Return each reason's median, 90th percentile and sizes beside Table 7, checked where enough jobs failed."""
    rows: list[FigureRow] = []
    mixes = np.zeros((len(REASONS), len(SIZES)))
    for row, reason in enumerate(REASONS):
        times, trials = np.concatenate([one.minutes[row] for one in found]), sum(one.trials[row] for one in found)
        sigma = math.log(reason.p90_min / reason.p50_min) / P90
        sure = len(times) > 0 and ERRORS * 1.2533 * sigma / math.sqrt(len(times)) < math.log1p(NEAR_MEDIAN)
        for quantity, percent, published in (("rtf_p50", 50, reason.p50_min), ("rtf_p90", 90, reason.p90_min)):
            rows.append(
                FigureRow(
                    series="Table 7: run time to failure",
                    x=reason.name,
                    quantity=quantity,
                    unit="min",
                    published=published,
                    measured=float(np.percentile(times, percent)) if len(times) else None,
                    tolerance=NEAR_MEDIAN if percent == 50 and sure else None,
                    source=TABLE_7,
                    note=f"{len(times):,} trials",
                )
            )
        there = np.array(reason.trials_by_size) / reason.trials
        if len(times):
            mixes[row] = trials / trials.sum()
            rows += _mix(reason.name, there, mixes[row], len(times) / TRIALS)
    weight = np.array([reason.trials for reason in REASONS]) * mixes.any(axis=1)
    there = np.array([reason.trials_by_size for reason in REASONS]).sum(axis=0)
    jobs = sum(len(times) for one in found for times in one.minutes) / TRIALS
    return rows + _mix("all, by the table's trials", there / there.sum(), weight / weight.sum() @ mixes, jobs)


def _mix(name: str, published: Floats, measured: Floats, jobs: float) -> list[FigureRow]:
    """Return the parts of a reason's trials by size, to two points where enough jobs failed for it."""
    return [
        FigureRow(
            series="Table 7: trials by size",
            x=f"{name}, {size}",
            quantity="trials",
            unit="of the reason's",
            published=part,
            measured=mine,
            tolerance=NEAR_SIZE / part if part and ERRORS * math.sqrt(part * (1 - part) / jobs) < NEAR_SIZE else None,
            source=TABLE_7,
        )
        for size, part, mine in zip(SIZES, published.tolist(), measured.tolist(), strict=True)
    ]


class FailedTrials:
    """An observer. A trial's run time is counted from its start, or from its last start where it was preempted."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, int, float]] = []  # job, reason, accelerators, seconds
        self._size: dict[str, int] = {}
        self._started: dict[str, float] = {}

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Receive one moment and its decisions."""
        for event in moment.events:
            if isinstance(event, JobSubmitted):
                self._size[event.job.job_id] = event.job.scale_factor
            elif isinstance(event, JobFailed):
                ran_s = moment.at - self._started[event.job_id]
                self.found.append((event.job_id, event.reason, self._size[event.job_id], ran_s))
        for decision in decisions:
            if isinstance(decision, Start):
                self._started[decision.job_id] = moment.at
            elif isinstance(decision, Starts):
                self._started |= dict.fromkeys(decision.jobs, moment.at)
