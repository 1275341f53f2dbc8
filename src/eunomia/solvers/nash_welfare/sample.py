"""Samples that stand for many rows, drawn by weight and size."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows

_HEAVY = 8  # picks that one row takes, from which on it is taken for certain and leaves them to others


@kernel()
def _walk(size: Floats, weight: Floats, per_size: float, per_weight: float, places: Floats, found: Ints) -> None:
    """Write for each place, in rising order, the first row up to which the rows' chances sum to it."""
    total, q = 0.0, 0
    for i in range(len(size)):
        total += size[i] * per_size + weight[i] * per_weight
        while q < len(places) and places[q] <= total:
            found[q] = i
            q += 1


def drawn(rows: NashRows, picks: int) -> NashRows:
    """Return a sample that stands for the rows: drawn by weight and size, one from each of `picks` equal parts.

    Its total weight and size are the rows' own: where they just about fill the columns, prices hang on those.
    """
    per_weight, per_size = 0.5 / rows.weight.sum(), 0.5 / rows.size.sum()
    places = (np.arange(picks) + np.random.default_rng(len(rows)).random(picks)) / picks
    found = np.full(picks, len(rows) - 1)
    _walk(rows.size, rows.weight, per_size, per_weight, places, found)
    row, times = np.unique(found, return_counts=True)
    heavy = row[times > _HEAVY]
    if len(heavy):
        light = np.delete(np.arange(len(rows)), heavy)
        if len(light) == 0:
            return rows
        return rows.part(heavy) + drawn(rows.part(light), picks - len(heavy))
    chance = rows.size[row] * per_size + rows.weight[row] * per_weight
    sample = rows.part(row, times / (picks * chance))
    size, weight = rows.size.sum() / sample.size.sum(), rows.weight.sum() / sample.weight.sum()
    return NashRows(sample.rate, sample.size * size, sample.weight * weight)
