"""Each job's JCT over its JCT when the cluster is split evenly: its mean, and its distribution at one load."""

from __future__ import annotations

import numpy as np

from eunomia_reproduction.gavel.curves import ISOLATED, PERCENTS, notes, ratios
from eunomia_reproduction.gavel.figure_runs import FigureRun
from eunomia_reproduction.gavel.published import FTF_RATE, MEAN_FTF, NOTEBOOKS, OVER_ISOLATED
from eunomia_reproduction.gavel.runs import Runs, measure
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NEAR = 0.05
CDF_POLICIES = (
    "gavel:max_min_fairness",
    "gavel:max_min_fairness_perf",
    "gavel:max_min_fairness_packed",
    "gavel:finish_time_fairness_perf",
)


def ftf(request: Request) -> FigureTable:
    """Return the mean of JCT ÷ JCT under `isolated`, on one accelerator each, and its percentiles at one load."""
    points = [(curve.policy, x, value) for curve in OVER_ISOLATED for x, value in curve.known.items()]
    points += [(policy, FTF_RATE, value) for policy, value in MEAN_FTF.items()]
    cells = {(policy, x): FigureRun(policy=policy, rate=x) for policy, x, _ in points}
    alone = {x: FigureRun(policy=ISOLATED, rate=x) for _, x, _ in points}
    runs = measure([*alone.values(), *cells.values()], request)
    rows = []
    for policy, x, published in points:
        found = ratios(runs.shown.get(cells[policy, x]), runs.shown.get(alone[x]))
        rows.append(
            FigureRow(
                series=policy,
                x=x,
                quantity="mean JCT ÷ JCT under isolated",
                unit="",
                published=published,
                measured=float(np.mean(found)) if len(found) else None,
                tolerance=NEAR,
                source=NOTEBOOKS,
            )
        )
    rows += [row for policy in CDF_POLICIES for row in _percentiles(policy, cells, alone, runs)]
    return FigureTable(rows=(*runs.failures(), *rows), notes=notes())


def _percentiles(
    policy: str, cells: dict[tuple[str, float], FigureRun], alone: dict[float, FigureRun], runs: Runs
) -> list[FigureRow]:
    """Return the distribution of JCT ÷ JCT under `isolated` at one load; no points of it were published."""
    found = ratios(runs.shown.get(cells[policy, FTF_RATE]), runs.shown.get(alone[FTF_RATE]))
    return [
        FigureRow(
            series=policy,
            x=FTF_RATE,
            quantity=f"JCT ÷ JCT under isolated, percentile {percent}",
            unit="",
            measured=float(np.percentile(found, percent)) if len(found) else None,
            source="measured only",
        )
        for percent in PERCENTS
    ]
