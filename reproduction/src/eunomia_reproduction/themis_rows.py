"""Rows of Themis' experiments: means over seeds with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia_reproduction.table import FigureRow
from eunomia_reproduction.themis_runs import Shown, Summary, summary_of

SOURCE = "Mahajan et al., NSDI 2020, section 8"


def summaries(by_seed: Mapping[int, Shown]) -> list[Summary]:
    return [summary_of(by_seed[seed]) for seed in sorted(by_seed)]


def mean_row(
    series: str, quantity: str, unit: str, by_seed: Sequence[Summary], published: float | None, x: float | str = ""
) -> FigureRow:
    values = [summary[quantity] for summary in by_seed]
    mean = estimate(np.array(values))
    if mean is None:
        note = "no app finished"
    elif mean.low is None:
        note = "one seed"
    else:
        note = f"mean of {len(values)} seeds, 95 % interval {mean.low:.4g} to {mean.high:.4g}"
    return FigureRow(
        series=series,
        x=x,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=None if mean is None else mean.mean,
        source=SOURCE if published is not None else "",
        note=note,
    )
