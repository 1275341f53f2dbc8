"""The level of many rows: worked by hand, degenerate tables, and large ones that prove themselves."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.draws import draw

from eunomia.model.arrays import Floats
from eunomia.solvers import max_min
from eunomia.solvers.max_min import MaxMinResult, highest_level
from eunomia.solvers.pricing.assemble import Edges
from eunomia.solvers.pricing.final_lp import vertex
from eunomia.solvers.pricing.rows import NeedRows


@pytest.fixture
def by_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send small tables down the road of the large ones."""
    monkeypatch.setattr(max_min, "_distinct", lambda rows: None)


def table(rows: int, columns: int, seed: int, load: float = 8.0) -> tuple[Floats, Floats, Floats, Floats]:
    """Return rate, size, capacity and need of rows that are all different."""
    rng = np.random.default_rng(seed)
    log = np.linspace(1.4, 0, columns) + rng.normal(0, 0.35, (rows, columns)) + rng.normal(0, 1, (rows, 1))
    rate, size = np.asfortranarray(np.exp(log)), rng.choice([1.0, 2.0, 4.0, 8.0], rows)
    capacity = rng.dirichlet(np.full(columns, 5.0)) * size.sum() / load
    return rate, size, capacity, rng.choice([1.0, 2.0], rows) * (rate @ capacity) / capacity.sum() / size


def demand_proven(found: MaxMinResult, rate: Floats, size: Floats, capacity: Floats, need: Floats) -> None:
    """Assert that the shares reach the level and fit, that both proofs meet, and that both forms of x agree."""
    x = found.x
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    assert (size @ x <= capacity * (1 + 1e-9)).all()
    assert ((rate * x).sum(axis=1) >= need * (1 - 1e-9)).all()
    assert found.objective <= found.bound <= found.objective * (1 + 1e-9)
    row, column, share = found.entries()
    again = np.zeros_like(x)
    again[row, column] = share
    np.testing.assert_array_equal(again, x)
    assert (np.diff(row) >= 0).all()


@pytest.mark.usefixtures("by_prices")
def test_two_rows_of_opposite_tastes_both_get_their_fastest_column() -> None:
    """Each has all of the column on which it is 3 times as fast, and all its time: no price, for the time binds."""
    found = highest_level(np.array([[3.0, 1.0], [1.0, 3.0]]), np.ones(2), np.ones(2), np.ones(2))
    np.testing.assert_allclose(found.x, np.eye(2), atol=1e-9)
    assert found.objective == pytest.approx(3.0, rel=1e-12)


@pytest.mark.usefixtures("by_prices")
def test_prices_say_what_a_column_is_worth() -> None:
    """Sizes 1 and 2 at rates 2 and 1 share one unit: t / 2 + 2 t = 1. All the value is that column's."""
    found = highest_level(np.array([[2.0], [1.0]]), np.array([1.0, 2.0]), np.array([1.0]), np.ones(2))
    np.testing.assert_allclose(found.price, [1.0])
    assert found.objective == pytest.approx(1 / (1 / 2 + 2 / 1), rel=1e-12)


@pytest.mark.usefixtures("by_prices")
def test_a_row_that_no_column_serves_gets_nothing_and_lowers_no_other() -> None:
    found = highest_level(np.array([[0.0, 0.0], [2.0, 1.0]]), np.ones(2), np.ones(2), np.ones(2))
    np.testing.assert_allclose(found.x, [[0, 0], [1, 0]], atol=1e-12)
    assert found.objective == pytest.approx(2.0)


@pytest.mark.usefixtures("by_prices")
def test_a_row_served_only_by_a_column_without_capacity_keeps_the_level_at_zero() -> None:
    found = highest_level(np.array([[1.0, 0.0], [2.0, 1.0]]), np.ones(2), np.array([0.0, 1.0]), np.ones(2))
    assert found.objective == found.bound == 0
    assert not found.x.any()


@pytest.mark.usefixtures("by_prices")
def test_rows_without_a_need_get_nothing() -> None:
    found = highest_level(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2), np.ones(2), np.array([0.0, 1.0]))
    assert not found.x[0].any()
    np.testing.assert_array_equal(found.binding, [max_min.FREE, max_min.FULL])
    assert not highest_level(np.ones((2, 1)), np.ones(2), np.ones(1), np.zeros(2)).x.any()


@pytest.mark.parametrize("columns", [1, 3, pytest.param(6, marks=pytest.mark.slow)])
def test_twenty_thousand_rows_meet_their_bound(columns: int) -> None:
    rate, size, capacity, need = table(20_000, columns, columns)
    found = highest_level(rate, size, capacity, need)
    demand_proven(found, rate, size, capacity, need * found.objective)
    assert found.price @ capacity == pytest.approx(1.0)
    assert (found.binding == max_min.PRICED).all()


@pytest.mark.parametrize("load", [0.3, 1.2, 2.0])
def test_columns_with_room_to_spare_have_no_price(load: float) -> None:
    """With three times the capacity, of which the last column has nearly all, only the others can be scarce."""
    rate, size, capacity, need = table(5_000, 3, 7, load)
    capacity[2] *= 20
    found = highest_level(rate, size, capacity, need)
    demand_proven(found, rate, size, capacity, need * found.objective)
    assert found.price[2] == 0
    assert (found.binding != max_min.PRICED).any()


@pytest.mark.parametrize(("spread", "load", "seed"), [(0.2, 8.0, 1), (0.2, 8.0, 2), (2.0, 8.0, 3), (0.5, 1.0, 4)])
def test_rows_with_an_age_reach_their_level(spread: float, load: float, seed: int) -> None:
    """Steps to do, the time that they take on an equal part of all capacity, and ages up to twice as much."""
    rate, size, capacity, need = table(4_000, 3, seed, load)
    rng = np.random.default_rng(seed)
    equal = need * size
    steps = equal * np.exp(rng.normal(0, spread, len(size)))
    base = steps / equal / np.minimum(1, capacity.sum() / (len(size) * size))
    age = base * rng.uniform(0, 2, len(size))
    found = highest_level(rate, size, capacity, steps, base=base, age=age)
    t = found.objective
    demand_proven(found, rate, size, capacity, steps * t / (base - age * t))


def test_what_is_left_over_is_spent_where_it_is_worth_most() -> None:
    """Rows far from full on a column with room take all their time there when time is what is wished."""
    rate, size, capacity, need = table(1_000, 2, 5, 0.2)
    found = highest_level(rate, size, capacity, need, second=np.ones_like)
    demand_proven(found, rate, size, capacity, need * found.objective)
    np.testing.assert_allclose(found.x.sum(axis=1), 1.0, atol=1e-9)


def test_the_same_table_gives_the_same_bytes() -> None:
    rate, size, capacity, need = table(20_000, 3, 3)
    first, second = (highest_level(rate, size, capacity, need).entries() for _ in range(2))
    assert [part.tobytes() for part in first] == [part.tobytes() for part in second]


def test_the_order_in_memory_does_not_matter() -> None:
    rate, size, capacity, need = table(3_000, 3, 4)
    by_column = highest_level(rate, size, capacity, need)
    by_row = highest_level(np.ascontiguousarray(rate), size, capacity, need)
    np.testing.assert_array_equal(by_column.x, by_row.x)


def test_a_row_that_no_sample_met_may_hold_the_level_down_or_be_lost() -> None:
    rate, size, capacity, need = table(20_000, 3, 7)
    for slow in range(0, 20_000, 8_001):
        late, lost = rate.copy(), rate.copy()
        late[slow] *= 1e-4
        demand_proven(found := highest_level(late, size, capacity, need), late, size, capacity, need * found.objective)
        lost[slow] = 0.0
        assert not highest_level(lost, size, capacity, need).x[slow].any()


@pytest.mark.parametrize("columns", [2, 3])
def test_one_slow_row_among_many_leaves_nothing_a_price(columns: int) -> None:
    """All others ask for next to nothing at the level that it can have; no sample meets it."""
    rng = np.random.default_rng(2)
    rate, size = rng.uniform(5, 10, (20_000, columns)), np.ones(20_000)
    need, capacity = rng.uniform(0.5, 2, 20_000), np.full(columns, 200_000.0)
    rate[7] = 0.01
    found = highest_level(rate, size, capacity, need)
    assert found.objective == pytest.approx(0.01 / need[7], rel=1e-9)
    assert not found.price.any()


@pytest.mark.parametrize("seed", [3, 38, 74])
def test_needs_with_heavy_tails_are_met_to_the_last_digits(seed: int) -> None:
    """The solver of the last program leaves rows short by up to 1e-8, which is more than an answer may be off."""
    jobs = draw(2_048, 3, seed, spread=2.0)
    found = highest_level(jobs.throughput, jobs.size, jobs.capacity, jobs.steps, base=jobs.alone, age=jobs.age)
    demand_proven(found, jobs.throughput, jobs.size, jobs.capacity, found.edges.rows.need(found.objective)[0])


def test_many_rows_of_few_sorts_are_solved_as_sorts() -> None:
    rate, size, capacity, need = table(40, 3, 8)
    often = np.tile(np.arange(40), 250)
    found = highest_level(rate[often], size[often], capacity * 250, need[often])
    assert found.objective == pytest.approx(highest_level(rate, size, capacity, need).objective, rel=1e-9)
    demand_proven(found, rate[often], size[often], capacity * 250, need[often] * found.objective)


def test_a_row_that_gets_nothing_uses_nothing_whatever_its_other_code_says() -> None:
    rows = NeedRows(np.ones((2, 1)), np.zeros(1), np.ones(1), np.ones(1), None, None, None)
    left, right = np.array([1], dtype=np.int8), np.array([-1], dtype=np.int8)
    edges = Edges(2, rows, 0.5, left, right, np.empty(0, dtype=np.int64), np.empty((2, 0)))
    np.testing.assert_array_equal(edges.demand(), [0, 0])
    assert not edges.dense().any()


def test_the_last_program_serves_a_row_that_only_the_free_column_serves() -> None:
    rows = NeedRows(np.array([[0.0]]), np.array([2.0]), np.array([4.0]), np.array([7.78]), None, None, None)
    with np.errstate(all="raise"):
        found = vertex(rows, np.array([11.0]), np.zeros((3, 1)), 0.0, 2 / 7.78, 0.1)
    assert found.t == pytest.approx(2 / 7.78)
    assert found.x.tolist() == [[0.0]]
    assert found.u == pytest.approx(1.0)
