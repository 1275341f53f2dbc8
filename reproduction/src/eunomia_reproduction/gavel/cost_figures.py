"""What money buys: least cost against most throughput, with and without deadlines.

The paper's workload is half ResNet-50, half A3C jobs on one accelerator each; deadlines are 1.2, 2 or 10 times the
duration on a V100. Its cost policy is about 1.4 times cheaper than maximising throughput. That takes rounds in which a
job runs only where it has a share: where waiting jobs get the remaining capacity, all run on V100s under any policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

RATE, JOBS = 4.0, 500  # jobs per hour; jobs in all, each measured
GAIN, NEAR = 1.4, 0.10
FASTEST, CHEAPEST = "gavel:max_sum_throughput_perf", "gavel:max_sum_throughput_normalized_by_cost_perf"
PUNCTUAL = f"{CHEAPEST}_SLOs"
ROUNDS: dict[str, tuple[tuple[str, Any], ...]] = {
    "rounds, shares only": (("name", "gavel"), ("fill", False)),
    "rounds, remaining capacity to waiting jobs": (("name", "gavel"),),
}
CHECKED = "rounds, shares only"
TABLES = {"cost": "half ResNet-50, half A3C", "published": "all job types"}
QUANTITIES: dict[str, tuple[str, Callable[[FigurePoint], float]]] = {  # unit, and what it is of a run
    "cost": ("US$", lambda one: one.cost_usd),
    "jobs after their deadline": ("%", lambda one: 100.0 * one.late / JOBS),
    "average JCT": ("h", lambda one: one.jct_h),
}
_SOURCE = "Narayanan et al., OSDI 2020, section 7, as remembered"


def cost(request: Request) -> FigureTable:
    """Return cost, late jobs and average JCT under each policy, and how much cheaper the cheap ones are."""
    cells = {
        (table, cut, policy): FigureRun(
            policy=policy, rate=RATE, jobs=JOBS, window=None, deadlines=True, table=table, mechanism=mechanism
        )
        for table in TABLES
        for cut, mechanism in ROUNDS.items()
        for policy in (FASTEST, CHEAPEST, PUNCTUAL)
    }
    runs = measure(cells.values(), request)
    rows = list(runs.failures())
    for (table, cut, policy), cell in cells.items():
        series = f"{TABLES[table]}; {cut}; {policy.removeprefix('gavel:')}"
        rows += [
            FigureRow(
                series=series,
                x=RATE,
                quantity=quantity,
                unit=unit,
                measured=runs.number(cell, of),
                source="measured only",
            )
            for quantity, (unit, of) in QUANTITIES.items()
        ]
        if policy != FASTEST:
            checked = policy == CHEAPEST and (table, cut) == ("cost", CHECKED)
            rows.append(
                FigureRow(
                    series=series,
                    x=RATE,
                    quantity="cost, gain",
                    unit="×",
                    published=GAIN if checked else None,
                    measured=over(_usd(runs, cells[table, cut, FASTEST]), _usd(runs, cell)),
                    tolerance=NEAR if checked else None,
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
