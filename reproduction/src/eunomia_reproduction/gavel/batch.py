"""Makespan against the number of jobs, all of them there at the start: gangs on 36 V100, 36 P100 and 36 K80."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.gavel.figure_runs import FigureRun
from eunomia_reproduction.gavel.published import MAKESPAN, NOTEBOOKS, STATIC_AT, Published
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NEAR, GAIN_NEAR = 0.10, 0.10
GAIN, GAIN_AT = 2.5, (500.0, 700.0)
DRAWN = Published(name="FIFO, a type drawn for each job", policy="gavel:fifo", points=dict.fromkeys(STATIC_AT))
DRAWS = 15  # of types, by FIFO, on the same jobs
NOTES = (
    "FIFO is what the published code does under that name. It draws types, and with all jobs there at the start it "
    f"depends on the first few draws whether all of them crowd on the V100s; the median of {DRAWS} draws is shown. On "
    "the type that is drawn, wide gangs hold up the queue.",
)
Places = dict[tuple[str, float], list[FigureRun]]


def makespan(request: Request) -> FigureTable:
    """Return makespans beside the published ones, and by what factor Gavel's policy is shorter than FIFO's."""
    cells = {(curve.name, x): _cells(curve, x) for curve in (*MAKESPAN, DRAWN) for x in STATIC_AT}
    runs = measure([c for drawn in cells.values() for s in range(request.seeds) for c in _seeded(drawn, s)], request)
    rows = list(runs.failures())
    rows += [_point(curve, x, cells[curve.name, x], runs, request) for curve in (*MAKESPAN, DRAWN) for x in STATIC_AT]
    rows += [
        FigureRow(
            series="FIFO ÷ Gavel",
            x=int(x),
            quantity="makespan, gain",
            unit="×",
            published=GAIN,
            measured=over(_hours(runs, cells["FIFO", x]), _hours(runs, cells["Gavel", x])),
            tolerance=GAIN_NEAR,
            source=NOTEBOOKS,
        )
        for x in GAIN_AT
    ]
    figure = Figure(
        name="gavel-makespan",
        title="All jobs at the start, gangs",
        x_label="jobs",
        y_label="makespan, hours",
        curves=tuple(line for curve in (*MAKESPAN, DRAWN) for line in _lines(curve, cells, runs)),
    )
    return FigureTable(rows=tuple(rows), notes=NOTES, figures=(figure,))


def _cells(curve: Published, x: float) -> list[FigureRun]:
    """Return the runs of a point, one for each draw of its policy."""
    published = curve is not DRAWN
    one = FigureRun(policy=curve.policy, rate=math.inf, multi=True, jobs=int(x), window=None, as_published=published)
    return [replace(one, draw=draw) for draw in range(DRAWS if curve.name == "FIFO" else 1)]


def _seeded(cells: Sequence[FigureRun], seed: int) -> list[FigureRun]:
    return [replace(cell, seed=seed) for cell in cells]


def _all_hours(runs: Runs, cells: Sequence[FigureRun]) -> list[float]:
    return [runs.shown[cell].makespan_h for cell in cells if cell in runs.shown]


def _hours(runs: Runs, cells: Sequence[FigureRun]) -> float | None:
    """Return the median over the draws; None where every run failed."""
    return statistics.median(found) if (found := _all_hours(runs, cells)) else None


def _point(curve: Published, x: float, cells: Sequence[FigureRun], runs: Runs, request: Request) -> FigureRow:
    each = [_hours(runs, _seeded(cells, seed)) for seed in range(request.seeds)]
    hours_by_source = {"seeds": [hours for hours in each if hours is not None], "draws": _all_hours(runs, cells)}
    note = "; ".join(
        f"{min(h):.1f} … {max(h):.1f} h over {len(h)} {what}" for what, h in hours_by_source.items() if len(h) > 1
    )
    return FigureRow(
        series=curve.name,
        x=int(x),
        quantity="makespan",
        unit="h",
        published=curve.points[x],
        measured=each[0],
        tolerance=None if curve is DRAWN else NEAR,
        source=NOTEBOOKS,
        note=note,
    )


def _lines(curve: Published, cells: Places, runs: Runs) -> list[FigureCurve]:
    said = {x: value for x, value in curve.points.items() if value is not None}
    found = {x: _hours(runs, cells[curve.name, x]) for x in STATIC_AT}
    measured = {x: hours for x, hours in found.items() if hours is not None}
    ours = FigureCurve(name=curve.name, x=list(measured), y=list(measured.values()))
    return [FigureCurve(name=curve.name, x=list(said), y=list(said.values()), published=True), ours] if said else [ours]
