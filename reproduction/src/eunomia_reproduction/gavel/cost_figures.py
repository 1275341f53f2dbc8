"""What money buys: least cost against most throughput, with and without deadlines.

The paper's workload is half ResNet-50, half A3C jobs on one accelerator each; their durations are 0.5, 1, 2, 4 or 8
days, and deadlines are 1.2, 2 or 10 times that on a V100, a third each. Its cost policy is about 1.4 times cheaper than
maximising throughput, with 35 % of the jobs late, and about 1.2 times with deadlines and none late. That takes rounds
in which a job runs only where it has a share: where waiting jobs get the remaining capacity, all run on V100s under any
policy. The other durations, Philly's, are those of the final version of the published code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

JOBS = 500  # in all, each measured
GAIN_NEAR, LATE_NEAR = 0.10, 0.20
FASTEST, CHEAPEST = "gavel:max_sum_throughput_perf", "gavel:max_sum_throughput_normalized_by_cost_perf"
PUNCTUAL = f"{CHEAPEST}_SLOs"
SHARES_ONLY, FILLED = "rounds, shares only", "rounds, remaining capacity to waiting jobs"
ROUNDS: dict[str, tuple[tuple[str, Any], ...]] = {
    SHARES_ONLY: (("name", "gavel"), ("fill", False)),
    FILLED: (("name", "gavel"),),
}
LATE, GAIN = "jobs after their deadline", "cost, gain"
QUANTITIES: dict[str, tuple[str, Callable[[FigurePoint], float]]] = {  # unit, and what it is of a run
    "cost": ("US$", lambda one: one.cost_usd),
    LATE: ("%", lambda one: 100.0 * one.late / JOBS),
    "average JCT": ("h", lambda one: one.jct_h),
}
_SOURCE = "Narayanan et al., OSDI 2020, section 7, as remembered"
AT = 0.8  # jobs per hour, at which the published numbers are compared: the cluster is half full
PUBLISHED: Mapping[tuple[str, str], tuple[float, float]] = {  # number and tolerance, by policy and quantity
    (CHEAPEST, GAIN): (1.4, GAIN_NEAR),
    (CHEAPEST, LATE): (35.0, LATE_NEAR),
    (PUNCTUAL, GAIN): (1.2, GAIN_NEAR),
    (PUNCTUAL, LATE): (0.0, 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostWorkload:
    """Jobs of these types and durations, at these rates, under these policies and rounds."""

    name: str
    table: str
    durations: str
    rates: tuple[float, ...]  # jobs per hour
    policies: tuple[str, ...]
    rounds: tuple[str, ...]
    published: Mapping[tuple[str, str], tuple[float, float]]


WORKLOADS = (
    CostWorkload(
        name="half ResNet-50, half A3C, of half a day to eight days",
        table="cost",
        durations="days",
        rates=(0.4, AT, 1.2),
        policies=(FASTEST, CHEAPEST, PUNCTUAL),
        rounds=(SHARES_ONLY,),
        published=PUBLISHED,
    ),
    *(
        CostWorkload(
            name=name,
            table=table,
            durations="philly",
            rates=(4.0,),
            policies=(FASTEST, CHEAPEST, PUNCTUAL),
            rounds=(SHARES_ONLY, FILLED),
            published={},
        )
        for table, name in {"cost": "half ResNet-50, half A3C", "published": "all job types"}.items()
    ),
)


def cost(request: Request) -> FigureTable:
    """Return cost, late jobs and average JCT under each policy, and how much cheaper the cheap ones are."""
    points = [
        (load, cut, policy, rate)
        for load in WORKLOADS
        for cut in load.rounds
        for rate in load.rates
        for policy in load.policies
    ]
    cells = {(load.name, cut, policy, rate): _run(load, cut, policy, rate) for load, cut, policy, rate in points}
    runs = measure(cells.values(), request)
    rows = list(runs.failures())
    for load, cut, policy, rate in points:
        cell, fastest = cells[load.name, cut, policy, rate], cells[load.name, cut, FASTEST, rate]
        found = {quantity: (unit, runs.number(cell, of)) for quantity, (unit, of) in QUANTITIES.items()}
        if policy != FASTEST:
            found[GAIN] = "×", over(_usd(runs, fastest), _usd(runs, cell))
        for quantity, (unit, measured) in found.items():
            published, near = load.published.get((policy, quantity), (None, None)) if rate == AT else (None, None)
            rows.append(
                FigureRow(
                    series=f"{load.name}; {cut}; {policy.removeprefix('gavel:')}",
                    x=rate,
                    quantity=quantity,
                    unit=unit,
                    published=published,
                    measured=measured,
                    tolerance=near,
                    source="measured only" if published is None else _SOURCE,
                )
            )
    note = f"{JOBS:,} jobs, one accelerator each, on 36 V100, 36 P100, 36 K80; x is jobs per hour; seed 0."
    late = (
        "A job is late when it ends after submission + factor x duration; Gavel compares a duration with that instant."
    )
    return FigureTable(rows=tuple(rows), notes=(note, late))


def _run(load: CostWorkload, cut: str, policy: str, rate: float) -> FigureRun:
    return FigureRun(
        policy=policy,
        rate=rate,
        jobs=JOBS,
        window=None,
        deadlines=True,
        table=load.table,
        durations=load.durations,
        mechanism=ROUNDS[cut],
    )


def _usd(runs: Runs, cell: FigureRun) -> float | None:
    return runs.number(cell, lambda one: one.cost_usd)
