"""Average JCT against load: figures 8, 9 and 10 of Gavel's paper, and the distribution of JCTs at one load.

Every run has Gavel's own mechanism, its workload from its own random streams, and the jobs 4000 … 4999 measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.model.arrays import Floats
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.gavel.figure_runs import HOUR_S, ROUNDS, FigurePoint, FigureRun
from eunomia_reproduction.gavel.published import (
    AGNOSTIC,
    AWARE,
    FINISH_TIME,
    FINISH_TIME_SINGLE,
    MEAN_OF_SEEDS,
    MULTI,
    NOTEBOOKS,
    SINGLE,
    Published,
)
from eunomia_reproduction.gavel.published_means import MEANS_NOTEBOOKS, means_of
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NEAR = 0.05
GAIN_NEAR = 0.10
CORNERS = 3  # highest rates at which our default point is shown beside Gavel's
CDF_RATE, FAIR_RATE = 5.6, 2.6  # jobs per hour, on one accelerator each and of gangs
ISOLATED = "gavel:isolated"
PERCENTS = (5, 10, 25, 50, 75, 90, 95, 99)
_PAPER = "Narayanan et al., OSDI 2020"


class Again(NamedTuple):
    """Points, each the name of a curve and a rate, that are run a second time, in another way."""

    how: str
    points: tuple[tuple[str, float], ...]
    changes: Mapping[str, Any]  # fields of the run


# With gangs these are answered where the published solver stops, not only near it.
SOLVED_CURVES = (AWARE, AGNOSTIC)
OTHER_PAIRS = tuple(Again(f"pairs of seed {k}", (("Gandiva", 4.4),), {"draws": k}) for k in (1, 2, 3))
ASKED_OFTEN = (  # with another least time between two asks
    Again(  # as in an early version of the published scheduler
        "asked at each change",
        (("Gavel, FTF", 2.6), ("Gavel, FTF, singles", 5.2), ("Gavel, FTF, singles", 5.6)),
        {"mechanism": (*ROUNDS, ("solve_gap_s", 0.0))},
    ),
    Again(  # as in the copy of that scheduler in Shockwave's code
        "asked after 1000 s",
        (
            ("FTF, agnostic", 2.6),
            *(("Gavel, FTF", rate) for rate in (2.4, 2.6, 2.8, 3.0)),
            *(("FTF, agnostic, singles", rate) for rate in (5.2, 5.6)),
            *(("Gavel, FTF, singles", rate) for rate in (4.8, 5.2, 5.6, 6.0)),
        ),
        {"mechanism": (*ROUNDS, ("solve_gap_s", 1000.0))},
    ),
)


def fig8(request: Request) -> FigureTable:
    """Return average JCT against load, one accelerator a job, under LAS and its rivals."""
    return _against_load({"gavel-fig8": ("Jobs on one accelerator", SINGLE)}, request, gains=True, again=OTHER_PAIRS)


def fig9(request: Request) -> FigureTable:
    """Return average JCT against load with gangs, under LAS and its rivals."""
    return _against_load({"gavel-fig9": ("Jobs on 1, 2, 4 or 8 accelerators", MULTI)}, request, gains=True)


def fig10(request: Request) -> FigureTable:
    """Return average JCT against load under finish-time fairness, and how fair it is to each job."""
    panels = {
        "gavel-fig10": ("Finish-time fairness, gangs", FINISH_TIME),
        "gavel-fig10-singles": ("Finish-time fairness, one accelerator a job", FINISH_TIME_SINGLE),
    }
    table = _against_load(panels, request, again=ASKED_OFTEN)
    figure, failed = _fairness_cdf(request)
    return replace(table, figures=(*table.figures, figure), notes=(*table.notes, *failed))


def cdf(request: Request) -> FigureTable:
    """Return the distribution of JCTs at 5.6 jobs per hour; no points of it were published."""
    curves = [curve for curve in SINGLE if CDF_RATE in curve.known]
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


def _fairness_cdf(request: Request) -> tuple[Figure, list[str]]:
    """Return the distribution of JCT ÷ JCT under `isolated` at one load of gangs, and which runs of it failed.

    No points of it were published.
    """
    cells = {
        curve.name: run_of(curve, FAIR_RATE)
        for curve in (*FINISH_TIME, *(one for one in MULTI if one.name in (AGNOSTIC, AWARE)))
    }
    alone = FigureRun(policy=ISOLATED, rate=FAIR_RATE, multi=True)
    runs = measure([alone, *cells.values()], request)
    lines = []
    for name, cell in cells.items():
        found = np.sort(ratios(runs.shown.get(cell), runs.shown.get(alone)))
        part = (np.arange(len(found)) + 1) / max(len(found), 1)
        lines.append(FigureCurve(name=name, x=found.tolist(), y=part.tolist()))
    figure = Figure(
        name="gavel-fig10-cdf",
        title=f"Finish-time fairness of gangs at {FAIR_RATE} jobs per hour",
        x_label="JCT ÷ JCT under isolated",
        y_label="part of the jobs",
        curves=tuple(lines),
        x_log=True,
        steps=True,
    )
    return figure, [f"not in gavel-fig10-cdf: {cell.name}: {why}" for cell, why in runs.failed.items()]


def ratios(one: FigurePoint | None, alone: FigurePoint | None) -> Floats:
    """Return JCT ÷ JCT under `isolated` of each job that ended in both runs."""
    if one is None or alone is None:
        return np.zeros(0)
    pairs = [(one.jct_s.get(name), jct) for name, jct in alone.jct_s.items()]
    return np.array([mine / jct for mine, jct in pairs if mine is not None and jct is not None])


def _against_load(
    panels: Mapping[str, tuple[str, Sequence[Published]]],
    request: Request,
    *,
    gains: bool = False,
    again: Sequence[Again] = (),
) -> FigureTable:
    """Run every published point, for each seed, and put both side by side; a picture for each panel."""
    points = [(curve, x) for _, curves in panels.values() for curve in curves for x in curve.known]
    cells = {(curve.name, x): run_of(curve, x) for curve, x in points}
    wanted = [replace(cell, seed=seed) for cell in cells.values() for seed in range(request.seeds)]
    at = [x for name, x in cells if name == AWARE][-CORNERS:]
    corners = {x: replace(cells[AWARE, x], as_published=False, as_solved=False) for x in at}
    others = {(way.how, *point): replace(cells[point], **way.changes) for way in again for point in way.points}
    runs = measure([*wanted, *corners.values(), *others.values()], request)
    rows = list(runs.failures())
    for curve, x in points:
        rows += _point(curve, x, cells[curve.name, x], runs, request.seeds)
        for way in again:
            if (other := others.get((way.how, curve.name, x))) is not None:
                rows += _point(replace(curve, name=f"{curve.name}, {way.how}"), x, other, runs, seeds=1)
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
    if gains:
        rows += _range_of_gains(cells, runs)
    figures = tuple(
        Figure(
            name=name,
            title=title,
            x_label="jobs per hour",
            y_label="average JCT, hours",
            y_log=True,
            curves=tuple(line for curve in curves for line in _lines(curve, cells, runs, request.seeds)),
        )
        for name, (title, curves) in panels.items()
    )
    return FigureTable(rows=tuple(rows), notes=notes(), figures=figures)


def _range_of_gains(cells: Mapping[tuple[str, float], FigureRun], runs: Runs) -> list[FigureRow]:
    """Return the least and the largest ratio over the loads of which both curves have a point, and where it is."""
    ratios = {
        x: gain
        for name, x in cells
        if name == AWARE
        and (AGNOSTIC, x) in cells
        and (gain := over(runs.jct_h(cells[AGNOSTIC, x]), runs.jct_h(cells[AWARE, x]))) is not None
    }
    found = (
        {}
        if not ratios
        else {"least": min(ratios, key=ratios.__getitem__), "most": max(ratios, key=ratios.__getitem__)}
    )
    return [
        FigureRow(
            series=f"{AGNOSTIC} ÷ {AWARE}",
            x=f"{which} over the loads",
            quantity="average JCT, gain",
            unit="×",
            measured=ratios[x],
            note=f"at {x:g} jobs per hour, seed 0; the poster's 1.4 to 3.5 is of means of three seeds: gavel-means",
        )
        for which, x in found.items()
    ]


def run_of(curve: Published, x: float) -> FigureRun:
    """Return the run behind a point of a curve, with seed 0."""
    as_solved = curve.multi and curve.name in SOLVED_CURVES
    return FigureRun(policy=curve.policy, rate=x, multi=curve.multi, as_solved=as_solved)


def notes() -> tuple[str, ...]:
    """Return what the numbers of a stream rest on."""
    return (
        "Gavel's mechanism, throughputs and random streams, with the order of job types that its figures had; 36 V100, "
        "36 P100, 36 K80; jobs 4000 … 4999 measured, others come before, between and after them.",
        "Optima are not unique: Gavel's solver ends inside the face of optima, so do the policies here; and under "
        "max-min fairness its shares of equal jobs differ in the last digits, so theirs do.",
    )


def _point(curve: Published, x: float, cell: FigureRun, runs: Runs, seeds: int) -> list[FigureRow]:
    dropped = runs.number(cell, lambda one: one.dropped)
    row = FigureRow(
        series=curve.name,
        x=x,
        quantity="average JCT",
        unit="h",
        published=curve.points[x],
        measured=runs.jct_h(cell),
        tolerance=NEAR,
        source=NOTEBOOKS,
        note=f"{dropped} jobs dropped" if dropped else "",
    )
    if seeds == 1:
        return [row]
    of_all = estimate(np.array(_of_seeds(cell, runs, seeds)))
    if of_all is None or of_all.low is None or of_all.high is None:
        return [row]
    mean = replace(
        row,
        quantity=f"average JCT, mean of {seeds} seeds",
        published=means_of(curve).get(x) if seeds == len(MEAN_OF_SEEDS) else None,
        measured=of_all.mean,
        source=MEANS_NOTEBOOKS,
        note=f"95 % interval {of_all.low:.2f} … {of_all.high:.2f} h over {seeds} seeds",
    )
    return [row, mean]


def _of_seeds(cell: FigureRun, runs: Runs, seeds: int) -> list[float]:
    """Return the average JCT in hours for each seed; a run that failed has none."""
    found = [runs.jct_h(replace(cell, seed=seed)) for seed in range(seeds)]
    return [hours for hours in found if hours is not None]


def _lines(curve: Published, cells: dict[tuple[str, float], FigureRun], runs: Runs, seeds: int) -> list[FigureCurve]:
    at = curve.known
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
