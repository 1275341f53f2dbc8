"""Rows of Themis' experiments: means over seeds with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia_reproduction.expected import MACHINE_TIME
from eunomia_reproduction.ratio_rows import DIGITS, ratio_rows, with_ends
from eunomia_reproduction.table import FigureRow
from eunomia_reproduction.themis_runs import Shown, Summary, summary_of

SOURCE = "Mahajan et al., NSDI 2020, section 8"


def summaries(by_seed: Mapping[int, Shown]) -> list[Summary]:
    return [summary_of(by_seed[seed]) for seed in sorted(by_seed)]


def mean_rows(
    series: str, quantity: str, unit: str, by_seed: Sequence[Summary], published: float | None, x: float | str = ""
) -> list[FigureRow]:
    """Return the mean of a number over seeds, and the ends of its interval, but for CPU time."""
    values = [summary[quantity] for summary in by_seed]
    mean = estimate(np.array(values))
    if mean is None:
        note = "no app finished"
    elif mean.low is None:
        note = "one seed"
    else:
        note = f"mean of {len(values)} seeds, 95 % interval {mean.low:.{DIGITS}g} to {mean.high:.{DIGITS}g}"
    row = FigureRow(
        series=series,
        x=x,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=None if mean is None else mean.mean,
        source=SOURCE if published is not None else "",
        note=note,
    )
    return [row] if quantity.startswith(MACHINE_TIME) else with_ends(row, values)


def ratios(
    series: str, quantity: str, above: Mapping[int, Shown], below: Mapping[int, Shown], x: float | str = ""
) -> list[FigureRow]:
    """Return a number of some runs over that of others, paired by seed; nothing without a seed of both."""
    seeds = sorted(above.keys() & below.keys())
    if not seeds:
        return []
    one, other = ([summary_of(some[seed])[quantity] for seed in seeds] for some in (above, below))
    return ratio_rows(series, quantity, one, other, x=x)
