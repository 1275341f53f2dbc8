"""The headline points of figures 8 to 10 as the means of three seeds that were published, and what awareness gains."""

from __future__ import annotations

import statistics
from dataclasses import replace

from eunomia_reproduction.gavel.curves import GAIN_NEAR, NEAR, notes, run_of
from eunomia_reproduction.gavel.figure_runs import FigureRun
from eunomia_reproduction.gavel.published import AGNOSTIC, AWARE, MEAN_OF_SEEDS, SHARING, Published
from eunomia_reproduction.gavel.published_means import (
    MEANS_NOTEBOOKS,
    MULTI_CURVES,
    SINGLE_CURVES,
    means_of,
)
from eunomia_reproduction.gavel.runs import Runs, measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

SINGLES_AT, GANGS_AT = 5.6, 2.4  # jobs per hour: of the poster's largest and smallest gain
POINTS: tuple[tuple[Published, float], ...] = (
    *((SINGLE_CURVES[name], SINGLES_AT) for name in (AGNOSTIC, AWARE, SHARING)),
    *((MULTI_CURVES[name], GANGS_AT) for name in (AGNOSTIC, AWARE)),
)
GAINS = ((AWARE, False), (SHARING, False), (AWARE, True))  # over the agnostic policy, and whether with gangs
POSTER = "Narayanan et al., OSDI 2020, abstract and poster: 1.4 to 3.5 times"
QUANTITY = "average JCT, mean of seeds 0-2"


def means(request: Request) -> FigureTable:
    """Return the points as means, the same of each seed, and ratios of means."""
    cells = {(curve.name, curve.multi): run_of(curve, x) for curve, x in POINTS}
    runs = measure([replace(cell, seed=seed) for cell in cells.values() for seed in MEAN_OF_SEEDS], request)
    found = {key: mean_of_seeds(runs, cell) for key, cell in cells.items()}
    published = {(curve.name, curve.multi): means_of(curve)[x] for curve, x in POINTS}
    rows = list(runs.failures())
    for curve, x in POINTS:
        key = curve.name, curve.multi
        each = ", ".join(_hours(runs.jct_h(replace(cells[key], seed=seed))) for seed in MEAN_OF_SEEDS)
        rows.append(
            FigureRow(
                series=_series(*key),
                x=x,
                quantity=QUANTITY,
                unit="h",
                published=published[key],
                measured=found[key],
                tolerance=NEAR,
                source=MEANS_NOTEBOOKS,
                note=f"of each seed: {each} h",
            )
        )
    for name, multi in GAINS:
        slow, fast = (AGNOSTIC, multi), (name, multi)
        rows.append(
            FigureRow(
                series=f"{AGNOSTIC} ÷ {_series(name, multi)}",
                x=GANGS_AT if multi else SINGLES_AT,
                quantity="average JCT, gain, of means of seeds 0-2",
                unit="×",
                published=published[slow] / published[fast],
                measured=over(found[slow], found[fast]),
                tolerance=GAIN_NEAR,
                source=POSTER,
            )
        )
    return FigureTable(rows=tuple(rows), notes=notes())


def mean_of_seeds(runs: Runs, cell: FigureRun) -> float | None:
    """Return the average JCT in hours as the mean over the published seeds; None where one of them failed."""
    found = [runs.jct_h(replace(cell, seed=seed)) for seed in MEAN_OF_SEEDS]
    known = [hours for hours in found if hours is not None]
    return statistics.mean(known) if len(known) == len(found) else None


def _series(name: str, multi: bool) -> str:
    return f"{name}, gangs" if multi else name


def _hours(value: float | None) -> str:
    return "failed" if value is None else f"{value:.2f}"
