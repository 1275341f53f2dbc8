"""Mean finish-time fairness: each job's JCT over its JCT when the cluster is split evenly."""

from __future__ import annotations

import numpy as np

from eunomia_reproduction.gavel.curves import ISOLATED, notes, ratios
from eunomia_reproduction.gavel.figure_runs import FigureRun
from eunomia_reproduction.gavel.published import FTF_RATE, MEAN_FTF, NOTEBOOKS, OVER_ISOLATED
from eunomia_reproduction.gavel.runs import measure
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NEAR = 0.05


def ftf(request: Request) -> FigureTable:
    """Return the mean of JCT ÷ JCT under `isolated`, job by job, on one accelerator each."""
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
    return FigureTable(rows=(*runs.failures(), *rows), notes=notes())
