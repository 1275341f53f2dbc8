"""Mean finish-time fairness at one load: each job's JCT over its JCT when the cluster is split evenly."""

from __future__ import annotations

import numpy as np

from eunomia_reproduction.gavel.curves import notes
from eunomia_reproduction.gavel.figure_runs import FigurePoint, FigureRun
from eunomia_reproduction.gavel.published import FTF_RATE, MEAN_FTF, NOTEBOOKS
from eunomia_reproduction.gavel.runs import measure
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NEAR = 0.10
ISOLATED = "gavel:isolated"


def ftf(request: Request) -> FigureTable:
    """Return the mean of JCT ÷ JCT under `isolated`, job by job, at 5.6 jobs per hour on one accelerator each."""
    cells = {policy: FigureRun(policy=policy, rate=FTF_RATE) for policy in (ISOLATED, *MEAN_FTF)}
    runs = measure(cells.values(), request)
    alone = runs.shown.get(cells[ISOLATED])
    rows = [
        FigureRow(
            series=policy,
            x=FTF_RATE,
            quantity="mean JCT ÷ JCT under isolated",
            unit="",
            published=published,
            measured=_mean_ratio(runs.shown.get(cells[policy]), alone),
            tolerance=NEAR,
            source=NOTEBOOKS,
        )
        for policy, published in MEAN_FTF.items()
    ]
    return FigureTable(rows=(*runs.failures(), *rows), notes=notes())


def _mean_ratio(one: FigurePoint | None, alone: FigurePoint | None) -> float | None:
    if one is None or alone is None:
        return None
    pairs = [(one.jct_s.get(name), jct) for name, jct in alone.jct_s.items()]
    return float(np.mean([mine / jct for mine, jct in pairs if mine is not None and jct is not None]))
