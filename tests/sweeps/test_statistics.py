"""How sure a difference is: intervals as in the tables, pairs by seed, and the words that follow from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.metrics.statistics import PairedDifference, estimate, one_run, paired, student_t


def difference(this: list[float], other: list[float]) -> PairedDifference:
    found = paired(dict(enumerate(this)), dict(enumerate(other)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("confidence", "degrees", "t"),
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 9, 2.262), (0.95, 120, 1.980), (0.99, 4, 4.604), (0.90, 5, 2.015)],
)
def test_students_t_is_that_of_the_printed_tables(confidence: float, degrees: int, t: float) -> None:
    assert student_t(confidence, degrees) == pytest.approx(t, abs=6e-4)


def test_the_interval_of_three_seeds_is_as_by_hand() -> None:
    found = estimate(np.array([9.0, 10.0, 11.0]))
    assert found is not None
    assert (found.mean, found.seeds) == (10.0, 3)
    assert found.half == pytest.approx(4.3027 * 1.0 / math.sqrt(3), rel=1e-4)


def test_one_seed_has_an_average_and_no_interval() -> None:
    found = estimate(np.array([7.0]))
    assert found is not None
    assert (found.mean, found.half, found.low, found.high) == (7.0, None, None, None)
    assert difference([7.0], [8.0]).real is None
    assert estimate(np.empty(0)) is None


def test_only_seeds_that_both_have_are_paired() -> None:
    found = paired({0: 1.0, 1: 2.0, 7: 100.0}, {0: 2.0, 1: 4.0, 8: 100.0})
    assert found is not None
    assert (found.change.mean, found.change.seeds) == (-1.5, 2)
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_what_one_seed_draws_cancels_out_when_both_meet_it() -> None:
    hours = np.array([1.0, 10.0, 100.0])  # seeds differ a hundredfold, the policies by a fifth under each
    found = difference(list(0.8 * hours * [0.99, 1.0, 1.01]), list(hours))
    assert found.log_ratio is not None
    assert math.exp(found.log_ratio.mean) == pytest.approx(0.8, rel=1e-3)
    assert found.real
    assert found.change.half is not None
    assert found.change.half > abs(found.change.mean)  # which differences alone would not have shown


def test_a_difference_smaller_than_what_seeds_vary_by_is_not_real() -> None:
    assert difference([1.3, 0.8, 1.1], [1.0, 1.0, 1.0]).real is False


def test_what_is_zero_somewhere_is_judged_by_differences() -> None:
    found = difference([0.0, 0.0, 0.0], [5.0, 6.0, 7.0])
    assert found.log_ratio is None
    assert found.real
    assert difference([0.0, 0.0], [0.0, 0.0]).alike


def test_two_are_alike_only_when_it_is_sure_that_less_than_one_per_cent_parts_them() -> None:
    assert difference([1.004, 1.005, 1.006], [1.0, 1.0, 1.0]).alike  # significant, but negligible
    assert difference([1.001, 0.999, 1.0], [1.0, 1.0, 1.0]).alike
    assert not difference([1.1, 0.9, 1.005], [1.0, 1.0, 1.0]).alike  # as near on average, by chance
    assert not difference([1.0], [1.0]).alike


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=8), st.floats(1e-3, 1e3))
def test_an_interval_knows_no_unit(values: list[float], scale: float) -> None:
    base = [value * (1 + 0.1 * k) for k, value in enumerate(values)]
    one, other = difference(values, base), difference([v * scale for v in values], [v * scale for v in base])
    assert one.log_ratio is not None
    assert other.log_ratio is not None
    assert other.log_ratio.mean == pytest.approx(one.log_ratio.mean, abs=1e-9)
    assert other.log_ratio.half == pytest.approx(one.log_ratio.half or 0.0, abs=1e-9)


def test_an_interval_of_five_seeds_holds_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(3.0, 1.0, (4000, 5))
    held = [found.half is not None and abs(found.mean - 3.0) <= found.half for row in draws if (found := estimate(row))]
    assert np.mean(held) == pytest.approx(0.95, abs=0.012)


def test_seeds_that_gave_the_very_same_numbers_are_one_run_and_one_number_that_differs_parts_them() -> None:
    same = {"jct_mean_s": {0: 5.0, 1: 5.0, 2: 5.0}, "cost_usd": {0: 1.0, 1: 1.0, 2: 1.0}}
    assert one_run(same)
    assert not one_run({**same, "preemptions": {0: 0.0, 1: 0.0, 2: 1.0}})
    assert not one_run({**same, "rho_themis_max": {0: 1.0, 1: 1.0}})
    assert not one_run({"jct_mean_s": {0: 5.0}})
    assert not one_run({})
