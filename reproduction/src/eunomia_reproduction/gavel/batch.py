"""What was published as means of three seeds: makespans of jobs that are all there at the start, and priorities."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.gavel.curves import GAIN_NEAR, NEAR, notes
from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun
from eunomia_reproduction.gavel.published import MAKESPAN, MEAN_OF_SEEDS, NOTEBOOKS, PRIORITIES, Published
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

GAIN, GAIN_AT = 2.5, (500.0, 700.0)
FEWER = (0, 1)  # seeds whose mean is the published one of the aware policy at its highest load
_FIFO = "FIFO is what the published code does under that name: it draws a type for each job, and uses another one."
Means = dict[tuple[str, float], float | None]


def makespan(request: Request) -> FigureTable:
    """Return makespans beside the published ones, and by what factor Gavel's policy is shorter than FIFO's."""
    cells = {
        (curve.name, x): FigureRun(policy=curve.policy, rate=math.inf, multi=True, jobs=int(x), window=None)
        for curve in MAKESPAN
        for x in curve.known
    }
    runs, means = _means(cells, lambda _, one: one.makespan_h, request)
    rows = _rows(MAKESPAN, "makespan, mean of seeds 0-2", cells, runs, means)
    rows += [
        FigureRow(
            series="FIFO ÷ Gavel",
            x=int(x),
            quantity="makespan, gain",
            unit="×",
            published=GAIN,
            measured=over(means["FIFO", x], means["Gavel", x]),
            tolerance=GAIN_NEAR,
            source=NOTEBOOKS,
        )
        for x in GAIN_AT
    ]
    figure = _figure("gavel-makespan", "All jobs at the start, gangs", "jobs", "makespan, hours", MAKESPAN, means)
    return FigureTable(rows=tuple(rows), notes=(_FIFO,), figures=(figure,))


def priorities(request: Request) -> FigureTable:
    """Return average JCT against load of the jobs of weight 5, a fifth of all, and of the others, under filling."""
    cells = {
        (curve.name, x): FigureRun(policy=curve.policy, rate=x, multi=True, priorities=True)
        for curve in PRIORITIES
        for x in curve.known
    }
    runs, means = _means(cells, _jct_of_weight, request)
    rows = _rows(PRIORITIES, "average JCT, mean of seeds 0-2", cells, runs, means)
    rows += [_of_fewer(curve, cells, runs) for curve in PRIORITIES if curve.policy == PRIORITIES[0].policy]
    figure = _figure(
        "gavel-priorities", "Weights 5 and 1, gangs", "jobs per hour", "average JCT, hours", PRIORITIES, means
    )
    return FigureTable(rows=tuple(rows), notes=notes(), figures=(figure,))


def _jct_of_weight(name: str, one: FigurePoint) -> float:
    """Return the average JCT in hours of the jobs of the weight that the curve's name ends with."""
    return one.jct_by_weight_h[name.rpartition(" ")[2]]


def _of_fewer(curve: Published, cells: dict[tuple[str, float], FigureRun], runs: Runs) -> FigureRow:
    """Return the last point of a curve again, as a mean of fewer seeds."""
    x = max(curve.known)
    found = [runs.shown.get(replace(cells[curve.name, x], seed=seed)) for seed in FEWER]
    known = [_jct_of_weight(curve.name, one) for one in found if one is not None]
    return FigureRow(
        series=f"{curve.name}, seeds 0 and 1",
        x=x,
        quantity="average JCT, mean of seeds 0 and 1",
        unit="h",
        published=curve.known[x],
        measured=statistics.mean(known) if len(known) == len(FEWER) else None,
        tolerance=NEAR,
        source=NOTEBOOKS,
    )


def _means(
    cells: dict[tuple[str, float], FigureRun], of: Callable[[str, FigurePoint], float], request: Request
) -> tuple[Runs, Means]:
    """Return the runs, and the mean over the seeds of each point; None where a run failed."""
    runs = measure([replace(cell, seed=seed) for cell in cells.values() for seed in MEAN_OF_SEEDS], request)
    means: Means = {}
    for (name, x), cell in cells.items():
        each = [runs.shown.get(replace(cell, seed=seed)) for seed in MEAN_OF_SEEDS]
        found = [of(name, one) for one in each if one is not None]
        means[name, x] = statistics.mean(found) if len(found) == len(each) else None
    return runs, means


def _rows(
    curves: Sequence[Published], quantity: str, cells: dict[tuple[str, float], FigureRun], runs: Runs, means: Means
) -> list[FigureRow]:
    rows = list(runs.failures())
    for curve in curves:
        for x, published in curve.known.items():
            seeds = [runs.shown.get(replace(cells[curve.name, x], seed=seed)) for seed in MEAN_OF_SEEDS]
            dropped = sum(one.dropped for one in seeds if one is not None)
            rows.append(
                FigureRow(
                    series=curve.name,
                    x=x,
                    quantity=quantity,
                    unit="h",
                    published=published,
                    measured=means[curve.name, x],
                    tolerance=NEAR,
                    source=NOTEBOOKS,
                    note=f"{dropped} jobs dropped" if dropped else "",
                )
            )
    return rows


def _figure(name: str, title: str, x_label: str, y_label: str, curves: Sequence[Published], means: Means) -> Figure:
    lines = []
    for curve in curves:
        measured = {x: value for x in curve.known if (value := means[curve.name, x]) is not None}
        lines.append(FigureCurve(name=curve.name, x=list(curve.known), y=list(curve.known.values()), published=True))
        lines.append(FigureCurve(name=curve.name, x=list(measured), y=list(measured.values())))
    return Figure(name=name, title=title, x_label=x_label, y_label=y_label, curves=tuple(lines))
