"""Totals over divisible capacity: equal to the textbook program, proven, feasible, on both roads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.oracles import Instance

from eunomia.model.arrays import Floats
from eunomia.solvers.fractional_program import best_ratio
from eunomia.solvers.linear import LinearResult, best_total
from eunomia.solvers.linear_totals import box_refinement
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.linear_totals.symmetry import alike
from eunomia.solvers.min_late_jobs import late_rows
from eunomia.solvers.optimal_face import Face, central, closest
from eunomia.solvers.program import Infeasible

KINDS = ("plain", "weighted", "cost", "ceiling", "floor", "too much")


def program(p: Instance, kind: str) -> tuple[Floats, Floats, Floats]:
    """Return worth, rate and floor of one kind of program on this instance."""
    able, none = (p.rate > 0).any(axis=1), np.zeros(len(p.size))
    if kind == "weighted":
        return p.rate * p.weight[:, None], p.rate, none
    if kind == "ceiling":
        return p.rate, -p.rate, -0.3 * p.rate.max(axis=1)
    if kind in ("plain",):
        return p.rate, p.rate, none
    level = oracles.highest_level(p.rate, p.size, p.capacity, p.need)
    cost = -p.size[:, None] * np.linspace(1, 2, len(p.capacity)) * np.ones_like(p.rate)
    if kind == "too much":
        return p.rate, p.rate, p.need * max(level, 0.01) * 1.05 * able
    return (cost if kind == "cost" else p.rate), p.rate, p.need * level * 0.9 * able


def demand_optimal(total: LinearResult, p: Instance, worth: Floats, rate: Floats, floor: Floats) -> None:
    """Demand what the textbook reaches, a proof of it, and shares that fit to 1e-9."""
    wanted = oracles.best_total(worth, p.size, p.capacity, rate, floor)
    assert wanted is not None
    assert total.objective == pytest.approx(wanted, rel=1e-7, abs=1e-12)
    assert total.gap <= 1e-9
    x = total.x
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    assert (p.size @ x <= p.capacity * (1 + 1e-9)).all()
    assert ((rate * x).sum(axis=1) >= floor - 1e-9 * np.abs(floor)).all()


@settings(max_examples=150)
@given(oracles.problems(), st.sampled_from(KINDS))
def test_the_total_is_that_of_the_textbook_program(p: Instance, kind: str) -> None:
    worth, rate, floor = program(p, kind)
    if oracles.best_total(worth, p.size, p.capacity, rate, floor) is None:
        with pytest.raises(Infeasible):
            best_total(worth, p.size, p.capacity, rate=rate, floor=floor)
        return
    demand_optimal(best_total(worth, p.size, p.capacity, rate=rate, floor=floor), p, worth, rate, floor)


@settings(max_examples=150)
@given(oracles.problems(), st.sampled_from(KINDS), st.sampled_from((8, 16)))
def test_narrowing_boxes_of_prices_finds_the_same_total(p: Instance, kind: str, sample: int) -> None:
    """The road of many rows, made to narrow few: samples of 8 rows err so much that boxes miss and must be fixed."""
    worth, rate, floor = program(p, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_refinement, "FEW", 2)
        patch.setattr(box_refinement, "SAMPLE", sample)
        if oracles.best_total(worth, p.size, p.capacity, rate, floor) is None:
            with pytest.raises(Infeasible):
                best_total(worth, p.size, p.capacity, rate=rate, floor=floor)
            return
        demand_optimal(best_total(worth, p.size, p.capacity, rate=rate, floor=floor), p, worth, rate, floor)


def many(rows: int, seed: int, kind: str) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return worth, size, capacity, rate, floor of a large problem."""
    rng = np.random.default_rng(seed)
    rate = rng.lognormal(size=(rows, 1)) * rng.uniform(1, 5, 3) * rng.lognormal(0, 0.35, (rows, 3))
    if kind == "floors, few rates":
        rate = rate[rng.integers(0, 50, rows)]
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows)
    worth = rate[rng.integers(0, 50, rows)] if kind == "alike" else rate
    if "best is 1" in kind:
        worth = rate / rate.max(axis=1, keepdims=True)
    floor = rate.min(axis=1) * rng.uniform(0, 0.2, rows) * ("floors" in kind)
    capacity = rng.uniform(0.2, 1, 3) * size.sum() / 6
    return np.asfortranarray(worth), size, capacity, rate, floor


@pytest.mark.parametrize("kind", ["plain", "alike", "best is 1", "floors", "floors, best is 1", "floors, few rates"])
def test_of_many_rows_primal_and_dual_meet(kind: str) -> None:
    worth, size, capacity, rate, floor = many(5_000, 7, kind)
    total = best_total(worth, size, capacity, rate=rate, floor=floor)
    assert total.gap <= 1e-9
    x = total.x
    assert (size @ x <= capacity * (1 + 1e-9)).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    assert ((rate * x).sum(axis=1) >= floor * (1 - 1e-9)).all()
    again = best_total(worth, size, capacity, rate=rate, floor=floor)
    assert again.share.tobytes() == total.share.tobytes() and again.price.tobytes() == total.price.tobytes()


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(1, 10), st.floats(0, 1))
def test_what_a_class_gets_for_its_mean_floor_meets_the_floor_of_each_row(
    seed: int, columns: int, bend: float, more: float
) -> None:
    """Floors anywhere between two neighbouring rates; shares between the least that will do and all at the fastest."""
    rng = np.random.default_rng(seed)
    speed, rows = rng.uniform(0.1, 5, columns), 7
    ends = np.sort(np.append(speed, 0.0))
    upper = int(rng.integers(1, columns + 1))
    floor = ends[upper - 1] + (ends[upper] - ends[upper - 1]) * rng.uniform(1e-6, 1, rows) ** bend
    floor = np.maximum(floor, ends[upper - 1] * (1 + 1e-12))  # a floor at the slower rate would be of another class
    scaled = rng.choice([0.5, 1.0, 2.0], rows)  # powers of two: no rounding tells the rows apart
    part = LinearRows(np.ones((columns, rows)), np.ones(rows), np.outer(speed, scaled), floor * scaled, 10.0)
    classes = alike(part)
    assert classes is not None and classes.rows.count is not None and len(classes.rows.size) == 1
    slow = np.where(ends < ends[upper], ends, -1).argmax()  # in order of speed, idling among them
    least = np.zeros(columns + 1)
    mean = classes.rows.floor[0] * speed.max()
    least[upper] = (mean - ends[slow]) / (ends[upper] - ends[slow])
    least[slow] += 1 - least[upper]
    x = (1 - more) * least + more * (np.arange(columns + 1) == columns)
    order = np.argsort(speed)
    row, column, share = classes.shares(np.zeros(columns, int), order, x[1:])
    dense = np.zeros((rows, columns))
    dense[row, column] = share
    assert np.allclose(dense.sum(axis=0)[order], rows * x[1:], rtol=1e-9, atol=1e-12)
    assert (dense >= -1e-12).all() and (dense.sum(axis=1) <= 1 + 1e-9).all()
    assert (dense @ speed >= floor * (1 - 1e-9)).all()


def test_floors_that_many_rows_cannot_have_together_are_refused() -> None:
    worth, size, capacity, rate, _ = many(2_000, 3, "plain")
    with pytest.raises(Infeasible, match="lower"):
        best_total(worth, size, capacity, rate=rate, floor=rate.max(axis=1))


@settings(max_examples=60)
@given(oracles.problems(most_rows=20, most_columns=4), st.integers(0, 2**16))
def test_the_closest_optimum_moves_no_more_than_any_other_and_the_central_one_is_optimal(
    p: Instance, seed: int
) -> None:
    total = best_total(p.rate, p.size, p.capacity)
    face = Face.of_prices(p.rate, p.size, p.capacity, total.price)
    previous = np.random.default_rng(seed).dirichlet(np.ones(len(p.capacity) + 1), len(p.size))[:, :-1]
    near, inside = closest(face, previous), central(face)

    def moved(x: Floats) -> float:
        return float((p.size[:, None] * np.abs(x - previous)).sum())

    for x in (near, inside):
        assert (p.rate * x).sum() == pytest.approx(total.objective, rel=1e-8, abs=1e-12)
        assert (p.size @ x <= p.capacity * (1 + 1e-9) + 1e-12).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    slack = 1e-7 * p.size.sum()
    assert moved(near) <= min(moved(inside), moved(total.x)) + slack
    assert np.allclose(closest(face, near), near, atol=1e-7)


@settings(max_examples=60)
@given(oracles.problems(most_rows=8, most_columns=3, decades=4), st.floats(1.05, 3))
def test_no_set_of_late_rows_weighs_less(p: Instance, over: float) -> None:
    level = oracles.highest_level(p.rate, p.size, p.capacity, p.need)
    floor = p.need * max(level, 0.1) * over
    late = late_rows(p.rate, p.size, p.capacity, floor, weight=p.weight)
    assert late.least
    assert late.weight == pytest.approx(oracles.least_late(p.rate, p.size, p.capacity, floor, p.weight), rel=1e-9)
    floor[late.rows] = 0.0
    best_total(p.rate, p.size, p.capacity, rate=p.rate, floor=floor)


def test_of_many_rows_those_kept_can_be_met_and_the_bound_is_below() -> None:
    _, size, capacity, rate, _ = many(1_000, 5, "plain")
    floor = rate.max(axis=1) * np.random.default_rng(5).uniform(0, 1, 1_000)
    late = late_rows(rate, size, capacity, floor)
    assert 0 < late.bound <= late.weight == len(late.rows)
    floor[late.rows] = 0.0
    best_total(rate, size, capacity, rate=rate, floor=floor)


@settings(max_examples=60)
@given(oracles.problems(most_rows=30, most_columns=4, decades=4), st.sampled_from((0.0, 2.0)), st.booleans())
def test_the_ratio_is_that_of_the_textbook_program(p: Instance, base: float, floors: bool) -> None:
    bottom = p.size[:, None] * np.linspace(1, 3, len(p.capacity))
    level = oracles.highest_level(p.rate, p.size, p.capacity, p.need)
    floor = p.need * level * 0.5 * (p.rate > 0).any(axis=1) * floors
    open_places = (p.rate > 0) & (p.capacity > 0)
    if not open_places.any() and base == 0:
        return
    wanted: float | None = float((p.rate / bottom)[open_places].max(initial=0.0))
    if base or floor.any():
        wanted = oracles.best_ratio(p.rate, bottom, p.size, p.capacity, p.rate, floor, base)
    ratio = best_ratio(p.rate, bottom, p.size, p.capacity, base=base, rate=p.rate, floor=floor)
    assert ratio.objective == pytest.approx(wanted, rel=1e-7, abs=1e-12)
    assert ratio.gap <= 1e-9
    x = ratio.x
    assert (p.rate * x).sum() == pytest.approx(ratio.objective * (base + (bottom * x).sum()), rel=1e-7, abs=1e-12)
