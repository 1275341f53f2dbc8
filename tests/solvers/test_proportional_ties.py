"""The fairest product where rows are tied between columns, weights spread far, and capacity just about suffices."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.unlucky import FAMILIES, problem
from tests import oracles

from eunomia.model.arrays import Floats
from eunomia.solvers.nash_welfare import box_refinement
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows, settled
from eunomia.solvers.nash_welfare.barrier import ALONE, MOST_STEPS, interior
from eunomia.solvers.nash_welfare.response import OPEN
from eunomia.solvers.nash_welfare.symmetry import MergedRows, merged
from eunomia.solvers.proportional import NashWelfareResult, fairest_product


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make samples, boxes and merged rows do the work on tables that are small enough to judge."""
    for name, most in (("FEW", 48), ("_SEVERAL", 96), ("_SOME", 8)):
        monkeypatch.setattr(box_refinement, name, most)


def check(best: NashWelfareResult, rate: Floats, size: Floats, capacity: Floats, weight: Floats) -> None:
    """Check that the answer is feasible, is what it says of itself, and is proven."""
    x, able = best.x, best.level > 0
    assert (x >= 0).all() and (x[rate == 0] == 0).all()
    assert (x.sum(axis=1) <= 1 + 1e-9).all()
    assert (size @ x <= capacity * (1 + 1e-9)).all()
    np.testing.assert_allclose((rate * x).sum(axis=1), best.level, rtol=1e-9)
    assert able[rate.max(axis=1) > 0].all()
    assert best.objective == pytest.approx(weight[able] @ np.log(best.level[able]), abs=1e-8 * weight[able].sum())
    assert best.gap <= 1e-6


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
@pytest.mark.parametrize("family", FAMILIES)
def test_unlucky_tables_are_solved_and_proven_by_linear_programs(family: str, seed: int) -> None:
    """Σ w (y' − y) / y ≤ gap for all feasible y': the most of its left side is a linear program."""
    rate, size, capacity, weight = problem(family, 160, 2 + seed % 3, seed)
    best = fairest_product(rate, size, capacity, weight)
    check(best, rate, size, capacity, weight)
    able = best.level > 0
    bound, total = best.bound, weight[able].sum()
    if weight.max() < 1e3 * weight.min():  # more than a linear program can tell apart
        pull = (weight[able] / best.level[able])[:, None] * rate[able]
        most = oracles.best_total(pull, size[able], capacity)
        assert most is not None
        assert most <= total * (1 + 2e-5)
    assert bound >= best.objective - 2e-9 * total


@pytest.mark.parametrize("family", FAMILIES)
def test_the_way_through_samples_and_merged_rows_changes_nothing(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        one = problem(family, 400, 3, seed + 10)
        whole = fairest_product(*one)
        with monkeypatch.context() as patch:
            for name, most in (("FEW", 48), ("_SEVERAL", 96), ("_SOME", 8)):
                patch.setattr(box_refinement, name, most)
            parts = fairest_product(*one)
        weight = one[3].sum()
        assert parts.objective == pytest.approx(whole.objective, abs=(parts.gap + whole.gap + 1e-9) * weight), seed


@pytest.mark.parametrize(
    ("family", "columns", "seed"),
    [pytest.param("rank one", 8, 2, marks=pytest.mark.slow), ("half rank one", 3, 4), ("one rate", 3, 0)],
)
def test_many_tied_rows_are_solved_as_few(family: str, columns: int, seed: int) -> None:
    one = problem(family, 20_000, columns, seed)
    best = fairest_product(*one)
    check(best, *one)
    assert best.gap <= 1e-8


def elsewhere(array: Floats, offset: int) -> Floats:
    """Return a copy of the array that begins so many numbers into a block of memory."""
    order = "F" if array.flags.f_contiguous else "C"
    copy = np.empty(array.size + offset)[offset:].reshape(array.shape, order=order)
    copy[...] = array
    return copy


@pytest.mark.parametrize(
    ("family", "columns", "seed"), [("continuous", 3, 1), ("continuous", 4, 7), ("one rate", 3, 1)]
)
def test_the_answer_does_not_depend_on_where_the_input_lies(family: str, columns: int, seed: int) -> None:
    one, rng = problem(family, 8_000, columns, seed), np.random.default_rng(0)
    first, kept = fairest_product(*one), []
    for _ in range(40):
        kept.append(np.empty(int(rng.integers(1, 6_000)), dtype=np.int8))
        rate, size, capacity, weight = (elsewhere(array, int(rng.integers(8))) for array in one)
        again = fairest_product(rate, size, capacity, weight)
        assert again.x.tobytes() == first.x.tobytes()
        assert (again.objective, again.bound) == (first.objective, first.bound)
        assert again.price.tobytes() == first.price.tobytes()


def tied(seed: int, rows: int = 500, columns: int = 4) -> tuple[NashRows, Floats]:
    """Rows alike up to a scale, tied at the prices between all columns with idle time, or between twins."""
    rng = np.random.default_rng(seed)
    column = rng.uniform(1, 3, columns)
    rate = np.exp(rng.normal(0, 1, rows)) * column[:, None]
    price = column * 0.05
    if seed % 2:
        price = np.sort(rng.uniform(0.02, 0.1, columns))
        price[1] = price[0]
        rate[1] = rate[0]
        rate[2:] = rate[0] * rng.uniform(1.1, 5, (columns - 2, 1))
    weight = np.exp(rng.normal(-2.5, 1.5, rows))
    return NashRows(np.ascontiguousarray(rate), np.ones(rows), weight), price


@pytest.mark.parametrize("seed", range(8))
def test_merged_rows_want_at_all_prices_of_the_box_what_the_rows_want(seed: int) -> None:
    rows, price = tied(seed)
    box = 1e-3 * price
    alike = merged(rows, price, box)
    assert alike is not None
    assert len(alike.rows) < len(rows) // 5
    assert alike.rows.weight.sum() == pytest.approx(rows.weight.sum())
    rng = np.random.default_rng(seed)
    for _ in range(20):  # off the ties each of which the prices choose one end
        near = price + box * rng.uniform(-1, 1, len(price))
        wants = [settled(some, near, -near)[0].demand(near) for some in (rows, alike.rows)]
        off = np.abs(wants[0] - wants[1]).sum() / wants[0].sum()
        assert off <= 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_members_share_what_their_merged_row_has(seed: int) -> None:
    """Σ s x is the same, time is at most 1, and each member is at its best at the prices."""
    rows, price = tied(seed)
    alike = merged(rows, price, 1e-6 * price)
    assert alike is not None
    share, x = mixed(alike, rows, price)
    np.testing.assert_allclose(share[1:] @ rows.size, x[1:] @ alike.rows.size, rtol=1e-7)
    assert (share >= 0).all() and np.allclose(share.sum(axis=0), 1.0)
    level = (rows.rate * share[1:]).sum(axis=0)
    value = rows.weight @ np.log(level) - rows.size @ (price @ share[1:])
    assert value == pytest.approx(settled(rows, price, -price)[0].value(price), abs=1e-6 * rows.weight.sum())


def mixed(alike: MergedRows, rows: NashRows, price: Floats) -> tuple[Floats, Floats]:
    """Return shares of the members, and x of the merged rows, at an optimum in which ties are split."""
    few = alike.rows
    wants = settled(few, price, -price)[0].demand(price)
    capacity = np.full(len(price), max(wants.sum() / len(price), 1e-9))
    none = np.zeros(len(price))
    at = price.copy()
    x, steps = interior(
        few.rate, few.size, few.weight, capacity, (none, np.diag(none), none),
        price * (1 - 1e-7), price * (1 + 1e-7), at, 1e-10, ALONE, MOST_STEPS,
    )  # fmt: skip
    assert 0 <= steps < MOST_STEPS
    everyone = np.full(len(few), OPEN, dtype=np.int16)
    edges, member, share = alike.shares(rows, everyone, np.arange(len(few)), x)
    assert (edges == OPEN).all() and len(member) == len(rows)
    return share, x


def test_a_row_of_nearly_all_weight_leaves_the_picks_of_a_sample_to_the_others() -> None:
    rng = np.random.default_rng(0)
    weight = rng.uniform(1, 2, 5_000)
    weight[17] = 1e9
    rows = NashRows(rng.uniform(1, 2, (3, 5_000)), np.ones(5_000), weight)
    sample = rows.sample(500)
    assert len(np.unique(sample.weight)) > 300
    assert sample.weight.max() == 1e9
    assert sample.weight.sum() == pytest.approx(weight.sum(), rel=1e-12)
    assert sample.size.sum() == pytest.approx(5_000, rel=1e-9)


def test_light_rows_are_resolved_beside_heavy_ones_in_few_steps() -> None:
    """Weights over 12 decades, three columns of which one is not scarce: levels obey every row's own optimum."""
    rng = np.random.default_rng(3)
    rate, weight = rng.uniform(0.5, 5, (3, 600)), 10.0 ** rng.uniform(-6, 6, 600)
    capacity, none = np.array([100.0, 250.0, 600.0]), np.zeros(3)
    total = weight.sum()
    price = total / (3 * capacity)
    start = price.copy()
    x, steps = interior(
        rate, np.ones(600), weight, capacity, (none, np.diag(none), none),
        none, 2 * total / capacity, start, 1e-10, ALONE, MOST_STEPS,
    )  # fmt: skip
    assert 0 <= steps < 120
    worth = weight * rate / (rate * x[1:]).sum(axis=0) - start[:, None]
    lost = (np.maximum(worth.max(axis=0), 0) * x.sum(axis=0) - (worth * x[1:]).sum(axis=0)) / weight
    assert lost.max() <= 1e-6
