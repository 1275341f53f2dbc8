"""Curves fitted to losses: known curves are found again and tell what is to come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.model.curve_fits import FEWEST, fit_curves, largest_change, losses_at, to_fitted_form, until_flat
from eunomia.model.curves import Curve

SEEN = np.arange(61.0)
FIRST = np.array([0.1, 0.0, 0.05, 0.5, 0.0])  # 1 / (0.05 k + 0.5) + 0.1
SECOND = np.array([0.2, 0.0, 0.0, 0.9**10, math.log(0.9)])  # 0.9^(k − 10) + 0.2


def history(*curves: Floats, steps: Floats = SEEN) -> Floats:
    """Return what is seen of these curves, (run, loss, 2)."""
    return np.stack([np.stack((steps, losses_at(curve, steps)), axis=1) for curve in curves])


def at(curve: Floats, k: float) -> float:
    return float(losses_at(curve, np.array(k)))


@pytest.mark.parametrize("slaq", [False, True])
def test_losses_of_first_order_methods_foretell_later_ones(slaq: bool) -> None:
    """1 / 0.5 + 0.1 = 2.1 at first, 0.28182 after 100 steps, 0.19524 after 200."""
    assert [at(FIRST, k) for k in (0, 100)] == pytest.approx([2.1, 0.28182], abs=1e-5)
    (found,) = fit_curves(history(FIRST), slaq=slaq)
    assert at(found, 200) == pytest.approx(0.19524, rel=0.02)


def test_losses_of_second_order_methods_foretell_later_ones() -> None:
    """0.9^0 + 0.2 = 1.2 after 10 steps, 0.21478 after 50."""
    assert [at(SECOND, k) for k in (10, 50)] == pytest.approx([1.2, 0.21478], abs=1e-5)
    (found,) = fit_curves(history(SECOND, steps=SEEN[:31]))
    assert at(found, 50) == pytest.approx(0.21478, rel=0.02)


def test_the_family_that_fits_the_end_of_the_history_is_chosen() -> None:
    first, second = fit_curves(history(FIRST, SECOND))
    assert first[4] == 0
    assert first[2] > 0
    assert second[4] < 0
    assert (second[1:3] == 0).all()


def test_a_noisy_history_still_foretells() -> None:
    seen = history(FIRST)
    seen[0, :, 1] *= 1 + 0.01 * np.random.default_rng(0).standard_normal(len(SEEN))
    (found,) = fit_curves(seen, slaq=False)
    assert at(found, 200) == pytest.approx(0.19524, rel=0.15)


@given(st.floats(0.3, 5.0), st.floats(0.0, 0.5), st.floats(2.0, 100.0), st.floats(10.0, 1e6))
@settings(max_examples=30, deadline=None)
def test_a_run_whose_first_half_was_seen_has_its_curve_known(
    start: float, floor: float, rate: float, total: float
) -> None:
    (truth,) = to_fitted_form(np.array([Curve(start, floor * start, rate)]), np.array([total]))
    assert at(truth, total / 4) == pytest.approx(float(Curve(start, floor * start, rate).loss(0.25)))
    (found,) = fit_curves(history(truth, steps=np.linspace(0, total / 2, 40)), slaq=False)
    assert at(found, total) == pytest.approx(at(truth, total), rel=0.02)
    assert at(found, 0) == pytest.approx(start, rel=0.02)


def test_losses_that_do_not_fall_are_a_constant() -> None:
    seen = history(FIRST, FIRST)
    seen[0, :, 1], seen[1, :, 1] = 0.7, 1 + SEEN / 100
    flat, rising = fit_curves(seen)
    assert at(flat, 500) == pytest.approx(0.7, rel=1e-3)
    assert at(rising, 500) == pytest.approx(at(rising, 0), rel=1e-9)


def test_each_run_is_fitted_by_itself_whoever_else_is_and_however_much_was_seen() -> None:
    """What was not seen is nan: at the end, or in between."""
    seen = np.full((3, 80, 2), np.nan)
    seen[0, :61], seen[2, 5:66] = history(FIRST)[0], history(SECOND)[0]
    seen[1, : FEWEST - 1] = history(FIRST)[0, : FEWEST - 1]
    together = fit_curves(seen)
    assert np.isnan(together[1]).all()  # too few
    for row, alone in ((0, history(FIRST)), (2, history(SECOND))):
        assert together[row] == pytest.approx(fit_curves(alone)[0], rel=1e-6, abs=1e-9)


def test_a_loss_that_is_no_number_above_0_is_left_out() -> None:
    seen = history(FIRST)
    seen[0, 7, 1], seen[0, 9, 1], seen[0, 11, 1] = math.inf, -1.0, 0.0
    assert at(fit_curves(seen)[0], 200) == pytest.approx(0.19524, rel=0.02)


@pytest.mark.parametrize(("b", "first"), [(1.0, 18), (0.175, 32), (0.05, 45)])
def test_a_curve_is_flat_at_the_first_epoch_that_ends_ten_with_a_small_fall(b: float, first: int) -> None:
    """1 / (b k + 1), an epoch a step, beside the search epoch by epoch of the authors' code."""
    falls = [1 / (b * (k - 9) + 1) - 1 / (b * k + 1) for k in range(9, 100)]
    assert 9 + next(k for k, fall in enumerate(falls) if fall <= 0.05) == first
    curves = np.array([[0.3, 0.0, b, 1.0, 0.0]])
    assert until_flat(curves, np.array([1.0]), 0.05).tolist() == [first]
    assert until_flat(curves * [1, 1, 1 / 7, 1, 1], np.array([7.0]), 0.05).tolist() == [7 * first]


def test_a_constant_is_flat_and_the_first_ten_epochs_of_others_are_not() -> None:
    curves = np.array([[0.5, 0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0], [np.nan] * 5])
    np.testing.assert_array_equal(until_flat(curves, np.ones(3), 0.95), [0.0, 9.0, np.nan])


@given(st.integers(0, 2**32 - 1))
def test_the_largest_change_of_a_step_is_that_of_all_steps_so_far(seed: int) -> None:
    """Up to rounding of the steepest step to a whole one."""
    rng = np.random.default_rng(seed)
    a, b, c, s = rng.uniform(0, 1e-3), rng.uniform(0, 0.05), rng.uniform(0.5, 2.0), -rng.uniform(0, 0.1)
    curve = np.array([0.1, a, b, c, 0.0] if rng.random() < 0.7 else [0.1, 0.0, 0.0, c, s])
    done = int(rng.integers(0, 100))
    changes = -np.diff(losses_at(curve, np.arange(max(done, 1) + 1.0)))
    assert largest_change(curve[None], np.array([float(done)])) == pytest.approx([changes.max()], rel=2e-3)


@pytest.mark.parametrize("slaq", [False, True])
def test_later_losses_tell_more(slaq: bool) -> None:
    """Losses l that rise from third to third are a constant. Of 1/l it is the mean by w l⁴, an error of 1/l being l²
    times one of l: Σ w l⁴ / Σ w l³. By Optimus w is 1, 16 and 256: 63.6017 / 91.389. By SLAQ it is e^(-age / 10),
    1.5566, 2.3222 and 3.4644 for the thirds: 1.23005 / 1.88447. Alike they would tell 0.632.
    """
    seen = np.stack((np.arange(12.0), np.repeat([0.5, 0.6, 0.7], 4)), axis=1)[None]
    (found,) = fit_curves(seen, slaq=slaq)
    assert [at(found, k) for k in (0, 50)] == pytest.approx(
        [1.23005 / 1.88447 if slaq else 63.6017 / 91.389] * 2, rel=1e-5
    )
