"""The fairest product: worked by hand, and beside a general conic solver's values."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.arrays import Floats
from eunomia.solvers.proportional import fairest_product, strategy_proof


def test_two_rows_of_opposite_tastes_have_their_own_column_each() -> None:
    """Prices (1, 1) sell both columns whole: T / p is 3 on the own and 1 on the other column. Product 3 · 3."""
    best = fairest_product(np.array([[3.0, 1.0], [1.0, 3.0]]), np.ones(2), np.ones(2), np.ones(2))
    np.testing.assert_allclose(best.x, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(best.level, [3, 3], rtol=1e-9)
    assert best.objective == pytest.approx(np.log(9), abs=1e-9)


def test_one_column_is_divided_by_weight_whatever_the_sizes() -> None:
    """Σ w log x with Σ s x = 6 gives s x = 6 w / Σ w = (1, 2, 3); the price is Σ w / N = 1."""
    best = fairest_product(
        np.array([[7.0], [0.1], [2.0]]), np.array([4.0, 4.0, 8.0]), np.array([6.0]), np.arange(1.0, 4)
    )
    np.testing.assert_allclose(best.x[:, 0], [1 / 4, 1 / 2, 3 / 8], rtol=1e-9)
    assert best.price[0] == pytest.approx(1.0, rel=1e-6)


def test_time_binds_a_row_that_could_pay_for_more() -> None:
    """Rows (2, 1), (1, 1) and one unit of each: all their time brings 2 and 1 at most, and both can have that."""
    best = fairest_product(np.array([[2.0, 1.0], [1.0, 1.0]]), np.ones(2), np.ones(2), np.ones(2))
    np.testing.assert_allclose(best.level, [2, 1], rtol=1e-8)
    assert best.objective == pytest.approx(np.log(2), abs=1e-8)


def test_a_row_between_two_columns_splits_so_that_both_are_full() -> None:
    """Alike rows (2, 1), a unit of each column: ½ and ½ each, level 1.5. Three such rows: levels (2 + 1) / 3 = 1."""
    two, three = (fairest_product(np.tile([2.0, 1.0], (n, 1)), np.ones(n), np.ones(2), np.ones(n)) for n in (2, 3))
    np.testing.assert_allclose(two.level, 1.5, rtol=1e-8)
    np.testing.assert_allclose(three.level, 1.0, rtol=1e-8)
    np.testing.assert_allclose(three.x.sum(axis=0), [1, 1], rtol=1e-8)


def test_a_column_that_is_not_scarce_costs_nothing() -> None:
    """Each has its best column whole with capacity to spare."""
    best = fairest_product(np.array([[2.0, 5.0], [4.0, 1.0]]), np.ones(2), np.array([3.0, 3.0]), np.ones(2))
    np.testing.assert_array_equal(best.price, 0)
    np.testing.assert_allclose(best.level, [5, 4], rtol=1e-8)


def test_two_rows_who_want_the_same_column_pay_by_what_they_take_from_each_other() -> None:
    """One column, one unit: halves. Alone the other would have 1 instead of ½: f = ½ for both, who keep a quarter."""
    shares, payments = strategy_proof(np.array([[3.0], [5.0]]), np.ones(2), np.ones(1), np.ones(2))
    np.testing.assert_allclose(payments, 0.5, rtol=1e-8)
    np.testing.assert_allclose(shares, 0.25, rtol=1e-8)


def test_payments_are_to_the_power_of_one_over_the_own_weight() -> None:
    """Weights 1 and 2 share ⅓ and ⅔. The first takes ⅔ → 1 from the second: f = (⅔)²; the second ⅓ → 1: f = √⅓."""
    _, payments = strategy_proof(np.array([[1.0], [1.0]]), np.ones(2), np.ones(1), np.array([1.0, 2.0]))
    np.testing.assert_allclose(payments, [(2 / 3) ** 2, (1 / 3) ** 0.5], rtol=1e-8)


def drawn(seed: int, rows: int, columns: int) -> tuple[Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    rate = np.round(rng.uniform(0.5, 9, (rows, columns)), 1)
    size, weight = rng.choice([1.0, 2, 4], rows), rng.choice([1.0, 2.0, 5.0], rows)
    return rate, size, rng.integers(1, 2 + rows // 2, columns).astype(float), weight


@pytest.mark.parametrize(
    ("seed", "rows", "columns", "conic"),
    [
        (1, 5, 2, 1.133555832),
        (2, 12, 3, 17.495940832),
        (3, 30, 4, 115.731093064),
        (4, 60, 3, 176.876611694),
        (5, 8, 6, 49.229280479),
    ],
)
def test_the_objective_is_that_of_a_conic_solver(seed: int, rows: int, columns: int, conic: float) -> None:
    """Clarabel 0.11 through cvxpy on the program as it is written, tolerances 1e-12."""
    assert fairest_product(*drawn(seed, rows, columns)).objective == pytest.approx(conic, abs=2e-7)
