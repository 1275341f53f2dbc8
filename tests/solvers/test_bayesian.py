"""Surrogates, acquisition functions and the search: known values, and what every search promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.model.equations import cholesky, solve_lower
from eunomia.solvers.bayesian import METHODS, GridSearch, SearchGrid
from eunomia.solvers.bayesian.acquisition import distribution, expected_improvement, lower_bound
from eunomia.solvers.bayesian.gaussian_process import GaussianProcess
from eunomia.solvers.bayesian.grid import scaled, unordered
from eunomia.solvers.bayesian.random_forest import RandomForest
from eunomia_reproduction.bayesian import best_ratios, times

AXIS = scaled(np.arange(1.0, 49).tolist())


def measured(method: str, values: Floats, budget: int, *, seed: int = 0, epsilon: float = 0.0) -> list[int]:
    """Return the points that a search measures of (row, column) values."""
    grid = SearchGrid(tuple(scaled(np.arange(float(size)).tolist()) for size in values.shape))
    search = GridSearch(grid, method, budget=budget, seed=seed, epsilon=epsilon)
    points: list[int] = []
    while len(points) < budget and (point := search.ask()) is not None:
        points.append(point)
        search.tell(point, float(values.flat[point]))
    return points


def test_acquisition_functions_have_their_textbook_values() -> None:
    mean, sd = np.array([1.0]), np.array([0.5])
    assert expected_improvement(mean, sd, 1.2)[0] == pytest.approx(0.315219, abs=5e-7)
    assert distribution(np.array([(1.2 - 1.0) / 0.5]))[0] == pytest.approx(0.655422, abs=5e-7)
    assert lower_bound(mean, sd)[0] == 0.0


@given(st.floats(-30, 30))
def test_the_normal_distribution_is_that_of_the_error_function(x: float) -> None:
    assert distribution(np.array([x]))[0] == pytest.approx(math.erfc(-x / math.sqrt(2)) / 2, rel=1e-12, abs=1e-300)


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(-5, 5))
def test_expected_improvement_is_never_negative_and_certain_without_a_deviation(m: float, s: float, f: float) -> None:
    found = expected_improvement(np.array([m, m]), np.array([s, 0.0]), f)
    assert found[0] >= 0
    assert found[1] == max(f - m, 0.0)


def test_nothing_more_is_expected_of_points_that_were_measured_without_noise() -> None:
    y = np.random.default_rng(0).normal(size=20)
    assert (expected_improvement(y, np.zeros(20), y.min()) == 0).all()


def test_factors_are_those_of_lapack() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 6, 6))
    matrix, right = root @ root.swapaxes(1, 2) + np.eye(6), rng.normal(size=(4, 6, 2))
    lower = cholesky(matrix)
    assert np.allclose(lower, np.linalg.cholesky(matrix))
    assert np.allclose(lower @ solve_lower(lower, right), right)
    with pytest.raises(ValueError, match="positive definite"):
        cholesky(-np.eye(3))


def test_a_gaussian_process_passes_through_its_measurements_and_is_unsure_between_them() -> None:
    x = np.array([0.0, 0.1, 0.2, 0.3, 0.8, 0.9, 1.0])[:, None]
    y = np.square(4 * x[:, 0] - 2) - 1
    model = GaussianProcess.fit(x, y, np.random.default_rng(0))
    mean, sd = model.predict(x)
    assert np.allclose(mean, y, atol=0.02)
    assert model.predict(np.array([[0.55]]))[1][0] > 3 * sd.max()


def test_a_forest_follows_a_step_and_is_unsure_at_it() -> None:
    x = np.linspace(0, 1, 20)[:, None]
    mean, sd = RandomForest.fit(x, (x[:, 0] > 0.5) * 1.0, np.random.default_rng(0)).predict(
        np.array([[0.1], [0.5], [0.9]])
    )
    assert np.allclose(mean[[0, 2]], [0, 1], atol=0.05)
    assert sd[1] > 2 * max(sd[0], sd[2])


@pytest.mark.parametrize("method", METHODS)
def test_no_point_is_measured_twice_and_a_small_grid_is_exhausted(method: str) -> None:
    values = times("parameter servers")[:3, :4]
    points = measured(method, values, 20)
    assert sorted(points) == list(range(12))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_measures_the_same_points(method: str) -> None:
    values = times("heavy push")[::4, ::4]
    assert measured(method, values, 8, seed=3) == measured(method, values, 8, seed=3)


def test_the_initial_design_has_the_centre_and_one_point_of_each_third() -> None:
    points = np.array(measured("gp-ei", times("parameter servers"), 4, seed=5))
    rows, columns = np.unravel_index(points, (48, 48))
    assert (rows[0], columns[0]) == (23, 23)
    assert sorted(rows[1:] // 16) == sorted(columns[1:] // 16) == [0, 1, 2]


def test_a_search_ends_when_little_improvement_is_expected() -> None:
    flat = np.ones((20, 20))
    assert len(measured("gp-ei", flat, 15, epsilon=0.05)) == 6
    assert len(measured("gp-ei", times("parameter servers"), 15, epsilon=0.0)) == 15


def test_grid_search_spreads_its_points_evenly() -> None:
    assert measured("grid", np.ones((9, 9)), 9) == [9 * row + column for row in (1, 4, 7) for column in (1, 4, 7)]


def test_a_grid_of_a_hundred_thousand_points_is_searched_by_steps_to_neighbours() -> None:
    values = 2.0 + np.add.outer(np.square(np.linspace(-1, 1, 400)), np.square(np.linspace(-0.5, 1.5, 300)))
    points = measured("gp-ei", values, 14)
    assert len(set(points)) == 14
    assert min(values.flat[point] for point in points) < 2.01


def test_words_are_equally_far_from_each_other() -> None:
    place = unordered(3)
    assert np.allclose([np.square(place[i] - place[j]).sum() for i, j in ((0, 1), (0, 2), (1, 2))], 1)


def test_the_synthetic_objective_has_its_published_optimum() -> None:
    values = times("parameter servers")
    assert values.min() == pytest.approx(5419.7, abs=0.05)
    assert np.unravel_index(values.argmin(), values.shape) == (26, 47)


def test_twelve_measurements_come_within_two_per_cent() -> None:
    assert max(best_ratios("parameter servers", "gp-ei", seed)[-1] for seed in range(4)) <= 1.02


def test_random_search_comes_within_five_per_cent_in_little_more_than_half_of_50_seeds() -> None:
    """The search space separates the methods: published 56 %, and 1.14 at the 90th percentile."""
    found = np.array([best_ratios("parameter servers", "random", seed)[-1] for seed in range(50)])
    assert 0.4 < (found <= 1.05).mean() < 0.75
    assert np.percentile(found, 90) > 1.08


@pytest.mark.slow
def test_twelve_measurements_come_within_two_per_cent_in_95_per_cent_of_50_seeds() -> None:
    found = np.array([best_ratios("parameter servers", "gp-ei", seed)[-1] for seed in range(50)])
    assert (found <= 1.02).mean() >= 0.95
