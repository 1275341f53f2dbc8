"""Rows with the same rates and the same weight for their size are one row: the mean of their shares is as good."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Ints
from eunomia.solvers.smooth.tally import Rows

_WORTH = 0.5  # merged rows, of all, up to which merging is worth its while


def merged(rows: Rows) -> tuple[Rows, Ints] | None:
    """Return rows that stand for all those alike, and which of them each row became (row,); None if few are alike."""
    ratio = rows.weight / rows.size
    mark = np.sqrt(np.arange(2.0, 2.0 + len(rows.rate))) @ rows.rate + np.pi * ratio
    _, first, became = np.unique(mark, return_index=True, return_inverse=True)
    if len(first) > _WORTH * len(rows):
        return None
    rate = np.ascontiguousarray(rows.rate[:, first])
    if not ((rate[:, became] == rows.rate).all() and (ratio[first][became] == ratio).all()):
        return None  # two marks met by chance
    size, weight = np.zeros(len(first)), np.zeros(len(first))
    np.add.at(size, became, rows.size)
    np.add.at(weight, became, rows.weight)
    return Rows(rate, size, weight), became
