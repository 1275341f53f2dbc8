"""Configuration by Bayesian optimisation: four surrogate–acquisition pairs beside random and grid search.

Seven synthetic completion times of a training job with w workers and p parameter servers, 1 … 48 of each, in seconds:
T(w, p) = 1000 (compute / w + 0.01 + push w / p + workers w + servers p). Published: of four pairs, a Gaussian process
with expected improvement is best in every scenario (Chinese master's thesis, 2020, by its published summary); random
and grid search are ours. Each method measures 12 points, four of them the initial design; all have the same seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.metrics.statistics import paired
from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.solvers.bayesian import METHODS, GridSearch, SearchGrid
from eunomia.solvers.bayesian.grid import scaled
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.table import FigureRow, FigureTable, Request

SIDE, BUDGET = 48, 12
OBJECTIVES = {  # compute, push, workers, servers
    "parameter servers": (60.0, 3.0, 0.02, 0.02),
    "heavy compute": (240.0, 3.0, 0.02, 0.02),
    "light compute": (10.0, 3.0, 0.02, 0.02),
    "heavy push": (60.0, 12.0, 0.02, 0.02),
    "costly workers": (60.0, 3.0, 0.2, 0.02),
    "costly servers": (60.0, 3.0, 0.02, 0.2),
    "both costly": (60.0, 6.0, 0.1, 0.1),
}
NEAR = {"gp-ei": (1.02, 0.95, 0.05), "random": (1.05, 0.56, 0.25)}  # ratio, published share within it, tolerance
PAIRS = tuple(method for method in METHODS if method[:2] in ("gp", "rf"))  # that the thesis compares
MEAN = "best found ÷ optimum, mean"
BEST_OTHER = "the best other pair"
FEWEST = 20  # seeds of which a share says something
SOURCE = "specification of the synthetic objective, 50 seeds"


def times(name: str) -> Floats:
    """Return the completion times of one objective, (w, p), in s."""
    compute, push, workers, servers = OBJECTIVES[name]
    w, p = np.arange(1.0, SIDE + 1)[:, None], np.arange(1.0, SIDE + 1)[None]
    return np.asarray(1000 * (compute / w + 0.01 + push * w / p + workers * w + servers * p))


def best_ratios(name: str, method: str, seed: int) -> Floats:
    """Return the best time found ÷ the optimum after each measurement, (measurement,)."""
    values, axis = times(name).ravel(), scaled(np.arange(1.0, SIDE + 1).tolist())
    search = GridSearch(SearchGrid((axis, axis)), method, budget=BUDGET, seed=seed, epsilon=0.0)
    found = np.full(BUDGET, np.inf)
    for k in range(BUDGET):
        point = search.ask()
        if point is None:
            break
        found[k] = values[point]
        search.tell(point, float(values[point]))
    return np.asarray(np.minimum.accumulate(found) / values.min())


def reproduce(request: Request) -> FigureTable:
    """Run every method on every objective and seed."""
    rows, curves = [], {}
    for name in OBJECTIVES:
        for method in METHODS:
            found = np.stack([best_ratios(name, method, seed) for seed in range(request.seeds)])
            curves[name, method] = found
            request.tell(f"{name}, {method}: mean ratio {found[:, -1].mean():.4f}")
            last = found[:, -1]
            rows += [_row(method, name, MEAN, float(last.mean()))]
            rows += [_row(method, name, "best found ÷ optimum, 90th percentile", float(np.percentile(last, 90)))]
            if name == "parameter servers" and method in NEAR:
                near, published, tolerance = NEAR[method]
                share = float((last <= near).mean())
                rows.append(
                    FigureRow(
                        series=method, x=name, quantity=f"share of seeds within {near:g} × optimum", unit="",
                        published=published, measured=share,
                        tolerance=tolerance if request.seeds >= FEWEST else None, is_least=method == "gp-ei",
                        source=SOURCE, note="the published value is a lower bound" if method == "gp-ei" else "",
                    )
                )  # fmt: skip
    for name in OBJECTIVES:
        for other in METHODS:
            rows += _relative(curves, name, other) if other != "gp-ei" else []
    rows += best_of_pairs(rows)
    figures = tuple(
        Figure(
            name=f"bo-{name.replace(' ', '-')}", title=f"best of k measurements, {request.seeds} seeds: {name}",
            x_label="measurements", y_label="÷ optimum, mean",
            curves=tuple(
                FigureCurve(name=method, x=list(range(1, BUDGET + 1)), y=curves[name, method].mean(axis=0).tolist())
                for method in METHODS
            ),
        )
        for name in OBJECTIVES
    )  # fmt: skip
    notes = (
        f"{request.seeds} seed(s), {BUDGET} measurements each, 4 of them the initial design; no early end.",
        "Published: Gaussian process with expected improvement best of four pairs in every scenario. A geometric mean "
        "below 1 over the seeds says the same of one other method; its ends are those of the 95 % interval.",
    )
    return FigureTable(rows=tuple(rows), notes=notes, figures=figures)


def _row(method: str, name: str, quantity: str, value: float) -> FigureRow:
    return FigureRow(series=method, x=name, quantity=quantity, unit="", measured=round(value, 6))


def _relative(curves: dict[tuple[str, str], Floats], name: str, other: str) -> list[FigureRow]:
    """Return the geometric mean over the seeds of best found ÷ that of another method, and the ends of its interval."""
    mine, theirs = (dict(enumerate(curves[name, method][:, -1].tolist())) for method in ("gp-ei", other))
    both = paired(mine, theirs)
    assert both is not None
    assert both.log_ratio is not None  # ratios to an optimum are 1 or more
    log, quantity = both.log_ratio, _against(other)
    ends = {"": log.mean} | ({} if log.low is None or log.high is None else {", low": log.low, ", high": log.high})
    return [_row("gp-ei", name, quantity + end, float(elementary.exp(value))) for end, value in ends.items()]


def _against(other: str) -> str:
    return f"best found ÷ that of {other}, geometric mean"


def best_of_pairs(rows: Sequence[FigureRow]) -> list[FigureRow]:
    """Return how the Gaussian process with expected improvement compares with the best of the other pairs, from rows.

    For each objective the ratio to the pair with the least mean of the others; and in how many objectives its own mean
    is the least, and in how many no other pair is ahead, as far as the intervals tell.
    """
    value = {(row.series, row.x, row.quantity): row.measured for row in rows}
    found, least, level = list[FigureRow](), 0, 0
    for name in OBJECTIVES:
        means = {pair: value[pair, name, MEAN] or math.inf for pair in PAIRS}
        rival = min((pair for pair in PAIRS if pair != "gp-ei"), key=lambda pair: means[pair])
        least += means["gp-ei"] <= means[rival]
        lows = [value.get(("gp-ei", name, f"{_against(pair)}, low")) or 0.0 for pair in PAIRS]
        level += all(low <= 1 for low in lows)
        for end in ("", ", low", ", high"):
            ratio = value.get(("gp-ei", name, _against(rival) + end))
            if ratio is not None:
                found.append(replace(_row("gp-ei", name, _against(BEST_OTHER) + end, ratio), note=rival))
    words = "objectives in which its mean is the least of the four pairs", "objectives in which none of them is ahead"
    return [
        *found,
        FigureRow(
            series="gp-ei", quantity=words[0], unit="", published=len(OBJECTIVES), measured=least, tolerance=0.0,
            source="thesis, every scenario",
        ),
        FigureRow(series="gp-ei", quantity=words[1], unit="", measured=level, note="95 % intervals over the seeds"),
    ]  # fmt: skip
