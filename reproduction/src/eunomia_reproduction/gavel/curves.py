"""Average JCT against load: figures 8, 9 and 10 of Gavel's paper, and the distribution of JCTs at one load.

Every run has Gavel's own mechanism, its workload from its own random streams, and the jobs 4000 … 4999 measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.gavel.figure_runs import HOUR_S, FigureRun
from eunomia_reproduction.gavel.published import AGNOSTIC, FINISH_TIME, MULTI, NOTEBOOKS, SINGLE, Published
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NEAR, SATURATED_NEAR, SATURATED_H = 0.05, 0.10, 40.0  # tolerance below and above so many hours of average JCT
GAIN_NEAR = 0.10
CDF_RATE = 5.6  # jobs per hour
PERCENTS = (5, 10, 25, 50, 75, 90, 95, 99)
_PAPER = "Narayanan et al., OSDI 2020"


def fig8(request: Request) -> FigureTable:
    """Return average JCT against load, one accelerator a job, under LAS and its rivals."""
    gains = ((AGNOSTIC, "Gavel", 5.6, 3.3), (AGNOSTIC, "Gavel, space sharing", 5.6, 4.9))
    return _against_load("gavel-fig8", "Jobs on one accelerator", SINGLE, False, request, gains)


def fig9(request: Request) -> FigureTable:
    """Return average JCT against load with gangs, under LAS and its rivals."""
    return _against_load("gavel-fig9", "Jobs on 1, 2, 4 or 8 accelerators", MULTI, True, request, ())


def fig10(request: Request) -> FigureTable:
    """Return average JCT against load with gangs, under finish-time fairness."""
    return _against_load("gavel-fig10", "Finish-time fairness, gangs", FINISH_TIME, True, request, ())


def cdf(request: Request) -> FigureTable:
    """Return the distribution of JCTs at 5.6 jobs per hour; no points of it were published."""
    curves = [curve for curve in SINGLE if curve.points.get(CDF_RATE) is not None]
    cells = {curve.name: FigureRun(policy=curve.policy, rate=CDF_RATE) for curve in curves}
    runs = measure(cells.values(), request)
    rows, lines = list(runs.failures()), []
    for name, cell in cells.items():
        if cell not in runs.shown:
            continue
        jct = np.sort([value for value in runs.shown[cell].jct_s.values() if value is not None]) / HOUR_S
        rows += [
            FigureRow(
                series=name, x=percent, quantity=f"JCT, percentile {percent}", unit="h", measured=value, source=_PAPER
            )
            for percent, value in zip(PERCENTS, np.percentile(jct, PERCENTS).tolist(), strict=True)
        ]
        part = (np.arange(len(jct)) + 1) / len(jct)
        lines.append(FigureCurve(name=name, x=jct.tolist(), y=part.tolist()))
    figure = Figure(
        name="gavel-cdf",
        title=f"JCT at {CDF_RATE} jobs per hour",
        x_label="JCT, hours",
        y_label="part of the jobs",
        curves=tuple(lines),
        x_log=True,
        steps=True,
    )
    return FigureTable(
        rows=tuple(rows), notes=("No points of this figure were published: measured only.",), figures=(figure,)
    )


def _against_load(
    name: str,
    title: str,
    curves: Sequence[Published],
    multi: bool,
    request: Request,
    gains: Sequence[tuple[str, str, float, float]],
) -> FigureTable:
    """Run every published point, for each seed, and put both side by side."""
    points = [(curve, x) for curve in curves for x, value in curve.points.items() if value is not None]
    cells = {(curve.name, x): FigureRun(policy=curve.policy, rate=x, multi=multi) for curve, x in points}
    wanted = [replace(cell, seed=seed) for cell in cells.values() for seed in range(request.seeds)]
    corners = {x: replace(cell, as_published=False) for (name, x), cell in cells.items() if name == "Gavel"}
    runs = measure([*wanted, *corners.values()], request)
    rows = list(runs.failures())
    for curve, x in points:
        rows += _point(curve, x, cells[curve.name, x], runs, request.seeds)
    rows += [
        FigureRow(
            series="Gavel, point=any",
            x=x,
            quantity="average JCT",
            unit="h",
            measured=runs.jct_h(cell),
            note="the corner of the face of optima that this project returns by default",
        )
        for x, cell in corners.items()
    ]
    rows += [
        FigureRow(
            series=f"{slow} ÷ {fast}",
            x=x,
            quantity="average JCT, gain",
            unit="×",
            published=published,
            measured=over(runs.jct_h(cells[slow, x]), runs.jct_h(cells[fast, x])),
            tolerance=GAIN_NEAR,
            source=_PAPER,
        )
        for slow, fast, x, published in gains
    ]
    figure = Figure(
        name=name,
        title=title,
        x_label="jobs per hour",
        y_label="average JCT, hours",
        y_log=True,
        curves=tuple(line for curve in curves for line in _lines(curve, cells, runs, request.seeds)),
    )
    return FigureTable(rows=tuple(rows), notes=notes(), figures=(figure,))


def notes() -> tuple[str, ...]:
    """Return what the numbers of a stream rest on."""
    return (
        "Gavel's mechanism, throughputs and random streams; 36 V100, 36 P100, 36 K80; jobs 4000 … 4999 measured, "
        "others come before, between and after them.",
        "Optima are not unique: Gavel's solver ends inside the face of optima, so point=interior here where the policy "
        "has one; pairs have none, and their corner leaves other jobs waiting than the middle would.",
    )


def near(published_h: float) -> float:
    """Return how far a measured average JCT may be from a published one."""
    return NEAR if published_h < SATURATED_H else SATURATED_NEAR


def _point(curve: Published, x: float, cell: FigureRun, runs: Runs, seeds: int) -> list[FigureRow]:
    published, dropped = curve.points[x], runs.number(cell, lambda one: one.dropped)
    assert published is not None
    row = FigureRow(
        series=curve.name,
        x=x,
        quantity="average JCT",
        unit="h",
        published=published,
        measured=runs.jct_h(cell),
        tolerance=near(published),
        source=NOTEBOOKS,
        note=f"{dropped} jobs dropped" if dropped else "",
    )
    if seeds == 1:
        return [row]
    of_all = estimate(np.array(_of_seeds(cell, runs, seeds)))
    if of_all is None or of_all.low is None or of_all.high is None:
        return [row]
    note = f"95 % interval {of_all.low:.2f} … {of_all.high:.2f} h over {seeds} seeds"
    return [
        row,
        replace(row, quantity=f"average JCT, mean of {seeds} seeds", measured=of_all.mean, tolerance=None, note=note),
    ]


def _of_seeds(cell: FigureRun, runs: Runs, seeds: int) -> list[float]:
    """Return the average JCT in hours for each seed; a run that failed has none."""
    found = [runs.jct_h(replace(cell, seed=seed)) for seed in range(seeds)]
    return [hours for hours in found if hours is not None]


def _lines(curve: Published, cells: dict[tuple[str, float], FigureRun], runs: Runs, seeds: int) -> list[FigureCurve]:
    at = {x: value for x, value in curve.points.items() if value is not None}
    found = {x: runs.jct_h(cells[curve.name, x]) for x in at}
    measured = {x: hours for x, hours in found.items() if hours is not None}
    each = [_of_seeds(cells[curve.name, x], runs, seeds) for x in measured] if seeds > 1 else []
    return [
        FigureCurve(name=curve.name, x=list(at), y=list(at.values()), published=True),
        FigureCurve(
            name=curve.name,
            x=list(measured),
            y=list(measured.values()),
            low=[min(hours) for hours in each],
            high=[max(hours) for hours in each],
        ),
    ]
