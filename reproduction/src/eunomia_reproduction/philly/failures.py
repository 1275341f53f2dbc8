"""Tables 6 and 7: how jobs end, for which reasons they fail, after how long, and how wide they are.

Drawn are as many jobs as were measured, of Philly's sizes. Gangs of a width fail as often as Table 7 has jobs of that
width; a job that fails has one reason and as many trials as that reason has on average (geometrically distributed). Run
times to failure come from each reason's lognormal, not cut off: the table's are those of jobs that were long enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.backends.simulated.job_outcomes import (
    MINUTE_S,
    failing_by_class,
    pick_reasons,
    run_time_to_failure,
    size_class,
)
from eunomia.failures.table7 import KILLED, REASONS, UNSUCCESSFUL
from eunomia.model.arrays import Floats, Ints
from eunomia.traces.distributions import philly
from eunomia_reproduction.philly.averages import range_note
from eunomia_reproduction.table import FigureRow

JOBS = 96_260
STATUS = {"passed": 1 - UNSUCCESSFUL - KILLED, "killed": KILLED, "unsuccessful": UNSUCCESSFUL}
POINT = 0.01
NEAR_MEDIAN, NEAR_SIZE = 0.10, 0.02
ENOUGH_JOBS = 6250  # 2.5 standard errors of a part are then below two points, jobs with several trials counted
DRAWS = 5000  # times for each reason and seed: the lognormals are so wide that fewer tell nothing of their medians
TABLE_6, TABLE_7 = (f"Jeon et al., ATC 2019, Table {number}" for number in (6, 7))
SIZES = ("1", "2-4", ">4")


@dataclass(frozen=True, slots=True)
class FailureSample:
    """The jobs of one seed."""

    status: Floats  # (passed, killed, unsuccessful) parts of all jobs
    jobs: Floats  # (reason,) that failed
    trials: Floats  # (reason, class)


def drawn(seed: int, jobs: int = JOBS) -> FailureSample:
    """Draw jobs, what becomes of them, and the trials of those that fail."""
    streams = np.random.default_rng(seed).spawn(6)
    sizes, _ = philly(streams[0], streams[1], jobs)
    fate, reason_draw = streams[2].random(jobs), streams[3].random(jobs)
    fails = fate < failing_by_class(sizes, UNSUCCESSFUL)[size_class(sizes)]
    killed = ~fails & (streams[4].random(jobs) < KILLED / (1 - UNSUCCESSFUL))
    reason = pick_reasons(sizes[fails], reason_draw[fails])
    per_job = np.array([one.trials / one.jobs for one in REASONS])
    trials = streams[5].geometric(1 / per_job[reason])
    by_trial, width = np.repeat(reason, trials), np.repeat(size_class(sizes[fails]), trials)
    status = np.array([np.mean(~fails & ~killed), killed.mean(), fails.mean()])
    counts = np.zeros((len(REASONS), len(SIZES)))
    np.add.at(counts, (by_trial, width), 1)
    return FailureSample(status, np.bincount(reason, minlength=len(REASONS)).astype(float), counts)


def _times(row: int, draws: Floats) -> Floats:
    return np.array([run_time_to_failure(REASONS[row], draw) for draw in draws.tolist()]) / MINUTE_S


def statuses(found: Sequence[FailureSample]) -> list[FigureRow]:
    """Return the mix of final status beside Table 6, to a point."""
    return [
        FigureRow(
            series="Table 6",
            x=name,
            quantity="jobs",
            unit="of all",
            published=published,
            measured=float(np.mean([one.status[place] for one in found])),
            note=range_note([float(one.status[place]) for one in found]),
            tolerance=POINT / published,
            source=TABLE_6,
        )
        for place, (name, published) in enumerate(STATUS.items())
    ]


def reasons(found: Sequence[FailureSample], seeds: int) -> list[FigureRow]:
    """Return each reason's median, 90th percentile and mix of sizes beside Table 7."""
    rows: list[FigureRow] = []
    for row, reason in enumerate(REASONS):
        times = [_times(row, np.random.default_rng((seed, row)).random(DRAWS)) for seed in range(seeds)]
        for quantity, percent, published in (("rtf_p50", 50, reason.p50_min), ("rtf_p90", 90, reason.p90_min)):
            rows.append(
                FigureRow(
                    series="Table 7: run time to failure",
                    x=reason.name,
                    quantity=quantity,
                    unit="min",
                    published=published,
                    measured=float(np.percentile(np.concatenate(times), percent)),
                    tolerance=NEAR_MEDIAN if percent == 50 else None,
                    source=TABLE_7,
                    note=range_note([float(np.percentile(mine, percent)) for mine in times]),
                )
            )
        jobs = sum(one.jobs[row] for one in found)
        rows += _mix(reason.name, np.array(reason.trials_by_size), np.array([one.trials[row] for one in found]), jobs)
    published = np.array([reason.trials_by_size for reason in REASONS]).sum(axis=0)
    return rows + _mix("all", published, np.array([one.trials.sum(axis=0) for one in found]), ENOUGH_JOBS)


def _mix(name: str, published: Ints, trials: Floats, jobs: float) -> list[FigureRow]:
    """Return the parts of a reason's trials by size, to two points where enough jobs failed for it.

    `trials` is (seed, class).
    """
    seen = trials[trials.sum(axis=1) > 0]
    checked = jobs >= ENOUGH_JOBS
    return [
        FigureRow(
            series="Table 7: trials by size",
            x=f"{name}, {size}",
            quantity="trials",
            unit="of the reason's",
            published=float(published[column] / published.sum()),
            measured=float(trials[:, column].sum() / trials.sum()) if len(seen) else None,
            tolerance=NEAR_SIZE * float(published.sum() / published[column]) if checked and published[column] else None,
            source=TABLE_7,
            note=range_note((seen[:, column] / seen.sum(axis=1)).tolist()),
        )
        for column, size in enumerate(SIZES)
    ]
