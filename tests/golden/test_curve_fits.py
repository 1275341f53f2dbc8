"""Curves fitted to losses: known curves are found again and tell what is to come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.curve_fits import FirstOrder, SecondOrder, curve, first_order, fit, second_order
from eunomia.model.curves import Curve

SEEN = np.arange(61.0)


def test_losses_of_first_order_methods_foretell_later_ones() -> None:
    """l(k) = 1 / (0.05 k + 0.5) + 0.1: 2.1 at first, 0.28182 after 100 steps, 0.19524 after 200."""
    truth = FirstOrder(0.0, 0.05, 0.5, 0.1)
    assert truth.loss(np.array([0.0, 100.0])) == pytest.approx([2.1, 0.28182], abs=1e-5)
    for squared in (False, True):
        found = first_order(SEEN, truth.loss(SEEN), squared=squared)
        assert found.loss(np.array([200.0])) == pytest.approx(0.19524, rel=0.02)


def test_losses_of_second_order_methods_foretell_later_ones() -> None:
    """l(k) = 0.9^(k − 10) + 0.2: 1.2 after 10 steps, 0.21478 after 50."""
    truth = SecondOrder(np.log(0.9), -10 * np.log(0.9), 0.2)
    assert truth.loss(np.array([10.0, 50.0])) == pytest.approx([1.2, 0.21478], abs=1e-5)
    found = second_order(SEEN[:31], truth.loss(SEEN[:31]))
    assert found.loss(np.array([50.0])) == pytest.approx(0.21478, rel=0.02)


def test_the_family_that_fits_the_end_of_the_history_is_chosen() -> None:
    sublinear, linear = FirstOrder(0.0, 0.05, 0.5, 0.1), SecondOrder(-0.1, 1.0, 0.2)
    assert isinstance(fit(SEEN, sublinear.loss(SEEN)), FirstOrder)
    assert isinstance(fit(SEEN, linear.loss(SEEN)), SecondOrder)


def test_a_noisy_history_still_foretells() -> None:
    truth = FirstOrder(0.0, 0.05, 0.5, 0.1)
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(len(SEEN))
    found = first_order(SEEN, truth.loss(SEEN) * noise, squared=False)
    assert found.loss(np.array([200.0])) == pytest.approx(0.19524, rel=0.15)


@given(st.floats(0.3, 5.0), st.floats(0.0, 0.5), st.floats(2.0, 100.0))
@settings(max_examples=20, deadline=None)
def test_a_run_whose_first_half_was_seen_has_its_curve_known(start: float, floor: float, rate: float) -> None:
    truth = Curve(start, floor * start, rate)
    steps = np.linspace(0, 500, 40)
    found = curve(steps, np.asarray(truth.loss(steps / 1000)), total=1000.0)
    assert found.loss(1.0) == pytest.approx(truth.loss(1.0), rel=0.02)
    assert found.start == pytest.approx(truth.start, rel=0.02)


def test_losses_that_do_not_fall_are_a_constant() -> None:
    flat = np.full(len(SEEN), 0.7)
    assert fit(SEEN, flat).loss(np.array([500.0])) == pytest.approx(0.7, rel=1e-3)
    rising = second_order(SEEN, 1 + SEEN / 100)
    assert rising.s == 0


def test_what_no_curve_can_be_fitted_to_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        first_order(SEEN[:3], np.ones(3))
    for bad in (0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="leave such losses out"):
            second_order(SEEN, np.where(SEEN == 7, bad, 1.0))
