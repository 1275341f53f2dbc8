"""A mean or a ratio over seeds or traces as a row, and the ends of its 95 % interval as two more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.metrics.statistics import estimate, paired
from eunomia.model import elementary
from eunomia_reproduction.table import FigureRow

LOW, HIGH = ", low", ", high"  # end the quantity of the rows with the ends of an interval
DIGITS = 4  # of the ends of a mean, in rows and in words


def ratio_rows(
    series: str,
    quantity: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    x: float | str = "",
    unit: str = "",
    digits: int = 4,
    published: float | None = None,
    source: str = "",
    note: str = "",
) -> list[FigureRow]:
    """Return ours ÷ theirs (place,): geometric mean, and the ends of its 95 % interval (t of the mean logarithm).

    All values are above 0. With one place there is no interval, and so no rows of its ends.
    """
    found = paired(dict(enumerate(ours)), dict(enumerate(theirs)), 0.95)
    assert found is not None and found.log_ratio is not None
    ratio, about = found.log_ratio, {"published": published, "source": source, "note": note}
    return [
        FigureRow(
            series=series, x=x, quantity=quantity + end, unit=unit,
            measured=round(float(elementary.exp(value)), digits),
            **(about if not end else {}),  # type: ignore[arg-type]
        )
        for end, value in (("", ratio.mean), (LOW, ratio.low), (HIGH, ratio.high))
        if value is not None
    ]  # fmt: skip


def with_ends(row: FigureRow, values: Sequence[float]) -> list[FigureRow]:
    """Return the row of a mean of these values, and rows of the ends of its interval; of one value there are none."""
    found = estimate(np.array(values))
    if found is None or found.low is None or found.high is None:
        return [row]
    bare = replace(row, published=None, tolerance=None, source="", note="")
    ends = ((LOW, found.low), (HIGH, found.high))
    return [
        row,
        *(replace(bare, quantity=row.quantity + end, measured=float(f"{value:.{DIGITS}g}")) for end, value in ends),
    ]
