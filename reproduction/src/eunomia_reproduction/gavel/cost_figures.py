"""What money buys: least cost against most throughput, with and without deadlines.

The paper says that its cost policy is about 1.4 times cheaper than maximising throughput, and names no workload; here
it is a stream of jobs on one accelerator each, whose deadlines are 1.2, 2 or 10 times the duration on a V100.
"""

from __future__ import annotations

from collections.abc import Callable

from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

RATE, JOBS = 4.0, 1000  # jobs per hour; jobs in all, each measured
GAIN = 1.4
FASTEST, CHEAPEST = "gavel:max_sum_throughput_perf", "gavel:max_sum_throughput_normalized_by_cost_perf"
PUNCTUAL = f"{CHEAPEST}_SLOs"
OURS = "throughput_per_cost?deadlines=true"
QUANTITIES: dict[str, tuple[str, Callable[[FigurePoint], float]]] = {  # unit, and what it is of a run
    "cost": ("US$", lambda one: one.cost_usd),
    "jobs after their deadline": ("%", lambda one: 100.0 * one.late / JOBS),
    "average JCT": ("h", lambda one: one.jct_h),
}
_SOURCE = "Narayanan et al., OSDI 2020, section 7, as remembered; workload not said"


def cost(request: Request) -> FigureTable:
    """Return cost, late jobs and average JCT under each policy, and how much cheaper the cheap ones are."""
    cells = {
        policy: FigureRun(policy=policy, rate=RATE, jobs=JOBS, window=None, deadlines=True)
        for policy in (FASTEST, CHEAPEST, PUNCTUAL, OURS)
    }
    runs = measure(cells.values(), request)
    rows = list(runs.failures())
    for policy, cell in cells.items():
        rows += [
            FigureRow(
                series=policy,
                x=RATE,
                quantity=quantity,
                unit=unit,
                measured=runs.number(cell, of),
                source="measured only",
            )
            for quantity, (unit, of) in QUANTITIES.items()
        ]
    for policy in (CHEAPEST, PUNCTUAL, OURS):
        rows.append(
            FigureRow(
                series=f"{FASTEST} ÷ {policy}",
                x=RATE,
                quantity="cost, gain",
                unit="×",
                published=GAIN,
                measured=over(_usd(runs, cells[FASTEST]), _usd(runs, cells[policy])),
                source=_SOURCE,
            )
        )
    note = f"{JOBS:,} jobs at {RATE:g} jobs per hour, one accelerator each, on 36 V100, 36 P100, 36 K80; seed 0."
    late = (
        "A job is late when it ends after submission + factor x duration; Gavel compares a duration with that instant."
    )
    return FigureTable(rows=tuple(rows), notes=(note, late))


def _usd(runs: Runs, cell: FigureRun) -> float | None:
    return runs.number(cell, lambda one: one.cost_usd)
