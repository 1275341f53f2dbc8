"""Downsampling of long columns to at most `MOST_POINTS` points."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats

MOST_POINTS = 400


def cdf(values: Floats, floor: float = 0.0) -> tuple[Floats, Floats]:
    """Return points of the empirical distribution of the finite `values`: x, and the share of values at most x.

    Values below `floor` count as `floor`, so that a log axis can show jobs that did not wait.
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = np.sort(np.maximum(finite[np.isfinite(finite)], floor))
    if finite.size == 0:
        return np.empty(0), np.empty(0)
    rank = np.unique(np.linspace(0, finite.size - 1, min(finite.size, MOST_POINTS)).round().astype(np.int64))
    x = np.unique(finite[rank])
    return x, np.searchsorted(finite, x, side="right") / finite.size


def thinned(at_s: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Merge neighbouring bins until there are at most `MOST_POINTS`; return their starts and the end of the last.

    `rows` has shape (row, bin); merged bins hold the mean of the finite values, and the last value is repeated.
    """
    bins = at_s.size
    if bins == 0:
        return at_s, rows
    together = -(-bins // (MOST_POINTS - 1))
    groups = -(-bins // together)
    padded = np.full((rows.shape[0], groups * together), np.nan)
    padded[:, :bins] = rows
    parts = padded.reshape(rows.shape[0], groups, together)
    known = np.isfinite(parts)
    count = known.sum(axis=2)
    means = np.full(count.shape, np.nan)
    np.divide(np.where(known, parts, 0.0).sum(axis=2), count, out=means, where=count > 0)
    width = at_s[-1] - at_s[-2] if bins > 1 else 1.0
    return np.append(at_s[::together], at_s[-1] + width), np.concatenate([means, means[:, -1:]], axis=1)
