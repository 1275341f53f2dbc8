"""Average JCT against load: figures 8, 9 and 10 of Gavel's paper, and the distribution of JCTs at one load.

Every run has Gavel's own mechanism, its workload from its own random streams, and the jobs 4000 … 4999 measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.reproduction.figure import Curve, Figure
from eunomia.reproduction.gavel.cells import HOUR_S, Cell, Shown, measure
from eunomia.reproduction.gavel.published import AGNOSTIC, FINISH_TIME, MULTI, NOTEBOOKS, SINGLE, Published
from eunomia.reproduction.table import Request, Row, Table

NEAR, SATURATED_NEAR, SATURATED_H = 0.05, 0.10, 40.0  # tolerance below and above so many hours of average JCT
GAIN_NEAR = 0.10
CDF_RATE = 5.6  # jobs per hour
PERCENTS = (5, 10, 25, 50, 75, 90, 95, 99)
_PAPER = "Narayanan et al., OSDI 2020"


def fig8(request: Request) -> Table:
    """Return average JCT against load, one accelerator a job, under LAS and its rivals."""
    gains = ((AGNOSTIC, "Gavel", 5.6, 3.3), (AGNOSTIC, "Gavel, space sharing", 5.6, 4.9))
    return _against_load("gavel-fig8", "Jobs on one accelerator", SINGLE, False, request, gains)


def fig9(request: Request) -> Table:
    """Return average JCT against load with gangs, under LAS and its rivals."""
    return _against_load("gavel-fig9", "Jobs on 1, 2, 4 or 8 accelerators", MULTI, True, request, ())


def fig10(request: Request) -> Table:
    """Return average JCT against load with gangs, under finish-time fairness."""
    return _against_load("gavel-fig10", "Finish-time fairness, gangs", FINISH_TIME, True, request, ())


def cdf(request: Request) -> Table:
    """Return the distribution of JCTs at 5.6 jobs per hour; no points of it were published."""
    curves = [curve for curve in SINGLE if curve.points.get(CDF_RATE) is not None]
    cells = {curve.name: Cell(policy=curve.policy, rate=CDF_RATE) for curve in curves}
    shown = measure(cells.values(), request)
    rows, lines = [], []
    for name, cell in cells.items():
        jct = np.sort([value for value in shown[cell].jct_s.values() if value is not None]) / HOUR_S
        rows += [
            Row(series=name, x=percent, quantity=f"JCT, percentile {percent}", unit="h", measured=value, source=_PAPER)
            for percent, value in zip(PERCENTS, np.percentile(jct, PERCENTS).tolist(), strict=True)
        ]
        part = (np.arange(len(jct)) + 1) / len(jct)
        lines.append(Curve(name=name, x=jct.tolist(), y=part.tolist()))
    figure = Figure(
        name="gavel-cdf",
        title=f"JCT at {CDF_RATE} jobs per hour",
        x_label="JCT, hours",
        y_label="part of the jobs",
        curves=tuple(lines),
        x_log=True,
        steps=True,
    )
    return Table(
        rows=tuple(rows), notes=("No points of this figure were published: measured only.",), figures=(figure,)
    )


def _against_load(
    name: str,
    title: str,
    curves: Sequence[Published],
    multi: bool,
    request: Request,
    gains: Sequence[tuple[str, str, float, float]],
) -> Table:
    """Run every published point, for each seed, and put both side by side."""
    points = [(curve, x) for curve in curves for x, value in curve.points.items() if value is not None]
    cells = {(curve.name, x): _cell(curve, x, multi) for curve, x in points}
    wanted = [replace(cell, seed=seed) for cell in cells.values() for seed in range(request.seeds)]
    corners = {x: replace(cell, as_published=False) for (name, x), cell in cells.items() if name == "Gavel"}
    shown = measure([*wanted, *corners.values()], request)
    rows: list[Row] = []
    for curve, x in points:
        rows += _point(curve, x, cells[curve.name, x], shown, request.seeds)
    rows += [
        Row(
            series="Gavel, point=any",
            x=x,
            quantity="average JCT",
            unit="h",
            measured=shown[cell].jct_h,
            note="the corner of the face of optima that this project returns by default",
        )
        for x, cell in corners.items()
    ]
    for slow, fast, x, published in gains:
        measured = shown[cells[slow, x]].jct_h / shown[cells[fast, x]].jct_h
        rows.append(
            Row(
                series=f"{slow} ÷ {fast}",
                x=x,
                quantity="average JCT, gain",
                unit="×",
                published=published,
                measured=measured,
                tolerance=GAIN_NEAR,
                source=_PAPER,
            )
        )
    figure = Figure(
        name=name,
        title=title,
        x_label="jobs per hour",
        y_label="average JCT, hours",
        y_log=True,
        curves=tuple(line for curve in curves for line in _lines(curve, cells, shown, request.seeds)),
    )
    return Table(rows=tuple(rows), notes=notes(), figures=(figure,))


def _cell(curve: Published, x: float, multi: bool) -> Cell:
    return Cell(policy=curve.policy, rate=x, multi=multi, as_published=curve.policy != "gavel:fifo")


def notes() -> tuple[str, ...]:
    """Return what the numbers of a stream rest on."""
    return (
        "Gavel's mechanism, throughputs and random streams; 36 V100, 36 P100, 36 K80; jobs 4000 … 4999 measured, "
        "others come before, between and after them.",
        "Optima are not unique: Gavel's solver ends inside the face of optima, so point=central here where the policy "
        "has one; pairs have none, and their corner leaves other jobs waiting than the middle would.",
    )


def near(published_h: float) -> float:
    """Return how far a measured average JCT may be from a published one."""
    return NEAR if published_h < SATURATED_H else SATURATED_NEAR


def _point(curve: Published, x: float, cell: Cell, shown: dict[Cell, Shown], seeds: int) -> list[Row]:
    published = curve.points[x]
    assert published is not None
    first = shown[cell]
    row = Row(
        series=curve.name,
        x=x,
        quantity="average JCT",
        unit="h",
        published=published,
        measured=first.jct_h,
        tolerance=near(published),
        source=NOTEBOOKS,
        note=f"{first.dropped} jobs dropped" if first.dropped else "",
    )
    if seeds == 1:
        return [row]
    found = estimate(np.array([shown[replace(cell, seed=seed)].jct_h for seed in range(seeds)]))
    assert found is not None
    told = f"95 % interval {found.low:.2f} … {found.high:.2f} h over {seeds} seeds"
    return [
        row,
        replace(row, quantity=f"average JCT, mean of {seeds} seeds", measured=found.mean, tolerance=None, note=told),
    ]


def _lines(curve: Published, cells: dict[tuple[str, float], Cell], shown: dict[Cell, Shown], seeds: int) -> list[Curve]:
    at = [x for x, value in curve.points.items() if value is not None]
    runs = [[shown[replace(cells[curve.name, x], seed=seed)].jct_h for seed in range(seeds)] for x in at]
    low, high = ([min(run) for run in runs], [max(run) for run in runs]) if seeds > 1 else ([], [])
    return [
        Curve(name=curve.name, x=at, y=[float(curve.points[x] or 0.0) for x in at], published=True),
        Curve(name=curve.name, x=at, y=[run[0] for run in runs], low=low, high=high),
    ]
