"""The fairest product and the mechanism on top of it, on any input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles

from eunomia.model.arrays import Floats
from eunomia.solvers.proportional import NashWelfareResult, fairest_product, strategy_proof


def solved(one: oracles.Instance) -> NashWelfareResult:
    return fairest_product(one.rate, one.size, one.capacity, one.weight)


def able(one: oracles.Instance) -> Floats:
    """Return which rows can get something (row,)."""
    return (one.rate[:, one.capacity > 0] > 0).any(axis=1)


@settings(max_examples=150)
@given(oracles.problems(40, 5))
def test_shares_fit_and_reach_their_levels(one: oracles.Instance) -> None:
    best = solved(one)
    x = best.x
    assert (x >= 0).all() and (x[one.rate == 0] == 0).all()
    assert (x.sum(axis=1) <= 1 + 1e-9).all()
    assert (one.size @ x <= one.capacity * (1 + 1e-9)).all()
    np.testing.assert_allclose((one.rate * x).sum(axis=1), best.level, rtol=1e-9)
    reached = one.weight[able(one)] @ np.log(best.level[able(one)])
    assert best.objective == pytest.approx(reached, abs=1e-8 * one.weight.sum())


@settings(max_examples=150)
@given(oracles.problems(40, 5))
def test_the_bound_proves_the_objective(one: oracles.Instance) -> None:
    best = solved(one)
    assert 0.0 <= best.gap <= 1e-6
    assert best.bound >= best.objective - 2e-9 * one.weight.sum()  # capacities hold to 1e-9


@settings(max_examples=60)
@given(oracles.problems(20, 4, decades=4))
def test_no_feasible_change_helps_in_proportion(one: oracles.Instance) -> None:
    """Σ w (y' − y) / y ≤ 0 for all feasible levels y': the most of its left side is a linear program."""
    best, can = solved(one), able(one)
    if can.any():
        pull = (one.weight[can] / best.level[can])[:, None] * one.rate[can]
        most = oracles.best_total(pull, one.size[can], one.capacity)
        assert most is not None
        assert most <= one.weight[can].sum() * (1 + 1e-5)


@settings(max_examples=100)
@given(oracles.problems(40, 5, decades=2))
def test_every_used_column_is_worth_its_price(one: oracles.Instance) -> None:
    """w T_k / y − s p_k is the largest of all columns where x_k > 0, at least 0, and 0 for a row with time left."""
    best = solved(one)
    x, can = best.x, able(one)
    open_columns = one.capacity > 0
    worth = one.weight[can, None] * one.rate[can] / best.level[can, None] - one.size[can, None] * best.price
    worth[:, ~open_columns] = -np.inf
    most = np.maximum(worth.max(axis=1), 0.0)
    lost = ((most[:, None] - np.where(x[can] > 0, worth, 0.0)) * x[can]).sum() + most @ (1 - x[can].sum(axis=1))
    assert lost <= (3e-5 + 2 * best.gap**0.5) * one.weight.sum()  # of the first order where the gap is of the second
    assert (best.price >= 0).all()
    assert best.price @ (one.capacity - one.size @ x) <= 1e-6 * one.weight.sum()


@settings(max_examples=50)
@given(oracles.problems(20, 4, decades=2))
def test_alike_rows_have_alike_levels(one: oracles.Instance) -> None:
    twice = fairest_product(
        np.tile(one.rate, (2, 1)), np.tile(one.size, 2), 2 * one.capacity, np.tile(one.weight, 2)
    ).level
    np.testing.assert_allclose(twice[: len(one.size)], twice[len(one.size) :], rtol=1e-4)
    np.testing.assert_allclose(twice[: len(one.size)], solved(one).level, rtol=1e-4)


def test_a_row_that_no_column_serves_gets_nothing_and_is_left_out_of_the_product() -> None:
    rate = np.array([[0.0, 3.0], [2.0, 0.0], [0.0, 0.0]])
    best = fairest_product(rate, np.ones(3), np.array([1.0, 0.0]), np.ones(3))
    np.testing.assert_allclose(best.x, [[0, 0], [1, 0], [0, 0]], atol=1e-9)
    assert best.objective == pytest.approx(np.log(2), abs=1e-9)
    empty = fairest_product(np.zeros((2, 2)), np.ones(2), np.ones(2), np.ones(2))
    assert empty.objective == empty.bound == empty.gap == 0.0
    assert not empty.x.any()


def large(rows: int, columns: int, load: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Rows no two of which are alike."""
    rng = np.random.default_rng(rows + columns)
    rate = np.exp(rng.normal(0, 1, (rows, 1)) + np.linspace(0, 1.6, columns) + rng.normal(0, 0.35, (rows, columns)))
    size, weight = rng.choice([1.0, 2, 4, 8], rows), rng.choice([1.0, 2.0], rows)
    return rate, size, rng.dirichlet(np.full(columns, 5.0)) * size.sum() / load, weight


@pytest.mark.parametrize(("columns", "load"), [(1, 8.0), (3, 8.0), (3, 0.7), (4, 1.0)])
def test_many_rows_are_solved_through_samples_and_proven_without_them(columns: int, load: float) -> None:
    rate, size, capacity, weight = large(20_000, columns, load)
    best = fairest_product(rate, size, capacity, weight)
    row, column, share = best.entries()
    assert best.gap <= 1e-9
    assert (np.bincount(column, size[row] * share, columns) <= capacity * (1 + 1e-9)).all()
    assert (np.bincount(row, share) <= 1 + 1e-9).all()
    np.testing.assert_allclose(np.bincount(row, rate[row, column] * share), best.level, rtol=1e-9)
    assert best.objective == pytest.approx(weight @ np.log(best.level), abs=1e-9 * weight.sum())


def test_many_rows_of_few_kinds_are_solved_as_their_kinds() -> None:
    rng = np.random.default_rng(0)
    kind, size = rng.integers(0, 3, 6_000), rng.choice([1.0, 2.0], 6_000)
    rate, capacity = rng.uniform(1, 5, (3, 3))[kind], np.full(3, 400.0)
    best = fairest_product(rate, size, capacity, np.ones(6_000))
    group = kind * 2 + (size == 2)
    total = np.bincount(group, size)
    first = np.unique(group, return_index=True)[1]
    merged = fairest_product(rate[first], total, capacity, np.bincount(group).astype(float))
    assert best.gap <= 1e-9
    np.testing.assert_allclose(best.level[first], merged.level, rtol=1e-5)


def test_the_same_input_gives_the_same_bytes() -> None:
    problem = large(8_000, 3, 4.0)
    one = fairest_product(*problem)
    for bytes_between in range(1, 4_000, 200):  # the answers lie elsewhere in memory
        elsewhere = np.empty(bytes_between, dtype=np.int8)
        two = fairest_product(*problem)
        assert one.x.tobytes() == two.x.tobytes(), elsewhere.size
        assert (one.objective, one.bound, one.price.tobytes()) == (two.objective, two.bound, two.price.tobytes())


@settings(max_examples=50)
@given(oracles.problems(8, 3, decades=0), st.integers(0, 2**32 - 1))
def test_no_row_gains_by_reporting_other_rates(one: oracles.Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    liar = int(rng.integers(len(one.size)))
    honest, payments = strategy_proof(one.rate, one.size, one.capacity, one.weight)
    assert (payments > 0).all() and (payments <= 1).all()
    reported = one.rate.copy()
    reported[liar] *= rng.lognormal(0.0, 1.0, reported.shape[1])
    lied, _ = strategy_proof(reported, one.size, one.capacity, one.weight)
    gained = one.rate[liar] @ lied[liar]
    assert gained <= one.rate[liar] @ honest[liar] * (1 + 1e-5) + 1e-12


@settings(max_examples=30)
@given(oracles.problems(10, 3, decades=0))
def test_payments_are_what_solving_without_each_row_gives(one: oracles.Instance) -> None:
    shares, payments = strategy_proof(one.rate, one.size, one.capacity, one.weight)
    best, can = solved(one), able(one)
    np.testing.assert_allclose(shares, best.x * payments[:, None], atol=1e-12)
    for row in np.flatnonzero(can):
        rest = np.arange(len(can)) != row
        without = fairest_product(one.rate[rest], one.size[rest], one.capacity, one.weight[rest]).objective
        others = best.objective - one.weight[row] * np.log(best.level[row])
        assert payments[row] == pytest.approx(min(np.exp((others - without) / one.weight[row]), 1.0), abs=1e-5)
        assert payments[row] >= np.exp(-1) - 1e-5  # Cole, Gkatzelis and Goel 2013, theorem on the part kept
