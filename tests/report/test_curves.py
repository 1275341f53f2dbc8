"""Curves stay true when they are made short."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eunomia.report.chart import MOST_POINTS, cdf, thinned

values = arrays(np.float64, st.integers(1, 1500), elements=st.floats(0, 1e6), fill=st.floats(0, 1e6))


@given(values)
def test_every_point_lies_on_the_true_distribution_and_the_last_is_all(column):
    x, y = cdf(column)
    assert x.size <= MOST_POINTS
    assert np.allclose(y, [(column <= at).mean() for at in x])
    assert y[-1] == 1.0


def test_jobs_below_the_floor_stand_at_the_floor_and_unknown_ones_are_left_out():
    x, y = cdf(np.array([0.0, 0.5, 8.0, 16.0, np.nan]), floor=1.0)
    assert x.tolist() == [1.0, 8.0, 16.0]
    assert y.tolist() == [0.5, 0.75, 1.0]


@given(st.integers(1, 2000))
def test_thinned_bins_are_few_and_keep_their_span_and_their_averages(bins):
    at_s = np.arange(bins) * 60.0
    starts, rows = thinned(at_s, np.arange(bins, dtype=float)[None, :])
    together = int(starts[1] // 60) if starts.size > 2 else bins
    assert starts.size == rows.shape[1] <= MOST_POINTS
    assert starts[0] == 0
    assert starts[-1] == (bins * 60.0 if bins > 1 else 1.0)
    assert rows[0, 0] == np.arange(min(together, bins)).mean()


def test_unknown_bins_are_left_out_of_an_average_and_a_group_of_them_stays_unknown():
    at_s, column = np.arange(800.0), np.ones(800)
    column[[0, 3, 4, 5]] = np.nan
    _, rows = thinned(at_s, column[None, :])
    assert rows[0, 0] == 1.0
    assert np.isnan(rows[0, 1])
    assert np.isfinite(rows[0, 2:]).all()
