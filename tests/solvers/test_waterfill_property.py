"""Lexicographic water filling against a plain sequence of linear programs, one level and one row at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import highspy
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Bools, Floats
from eunomia.solvers.water_filling import screen, waterfill_many
from eunomia.solvers.water_filling.least_load import least_load
from eunomia.solvers.water_filling.tree import Inner, Tree, flat
from eunomia.solvers.water_filling.waterfill import Filled, _Filling, fill


@dataclass(frozen=True)
class Instance:
    """One problem; `cap` and `tree` may be absent."""

    rate: Floats
    size: Floats
    capacity: Floats
    need: Floats
    cap: Floats | None = None
    tree: Tree | None = None

    def fill(self) -> Filled:
        return fill(self.rate, self.size, self.capacity, self.need, cap=self.cap, tree=self.tree)


def trees(rng: np.random.Generator, rows: int) -> Tree:
    """Draw a tree of up to three floors; rows may hang anywhere, groups may be empty."""
    groups = int(rng.integers(1, 6))
    inner = [("share", "first")[i] for i in rng.integers(0, 2, groups)]
    return Tree(
        parent=np.array([rng.integers(max(-1, g - 3), g) for g in range(groups)]),
        weight=rng.integers(1, 4, groups).astype(float),
        inner=tuple(inner),  # type: ignore[arg-type]
        group_of=rng.integers(-1 if rng.random() < 0.3 else 0, groups, rows),
        row_weight=rng.integers(1, 4, rows).astype(float),
    )


@st.composite
def instances(draw: st.DrawFn, *, most_rows: int = 12, with_tree: bool = True) -> Instance:
    """Small problems, scarce or plenty, with ties, zeros, rows that no column serves and columns without capacity."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(1, most_rows)), draw(st.integers(1, 5))
    alike, kinds = draw(st.booleans()), draw(st.integers(1, 4))
    if alike:  # few kinds of rows, in whole numbers
        rate = rng.integers(0, 4, (kinds, columns)).astype(float)[rng.integers(0, kinds, rows)]
        need = rng.integers(1, 3, rows).astype(float)
    else:
        rate = rng.lognormal(0, 1, (rows, columns)) * (rng.random((rows, columns)) > 0.2)
        need = rng.lognormal(0, 1, rows)
    size = rng.choice([1.0, 2.0, 4.0], rows)
    capacity = rng.integers(0 if draw(st.booleans()) else 1, 5, columns).astype(float)
    capacity *= draw(st.sampled_from([1.0, size.sum() / max(capacity.sum(), 1.0)]))
    cap = rng.uniform(0.1, 2.0, rows) if draw(st.booleans()) else None
    tree = trees(rng, rows) if with_tree and draw(st.booleans()) else None
    return Instance(rate, size, capacity, need, cap, tree)


class LevelBook:
    """A program in which row i has the rate left[i] · x, and t; solved for one thing after another."""

    left: Floats  # (row, variable)
    rows: int
    t: int  # place of the variable t, the last

    def _open(self, left: Floats, sides: list[tuple[Floats, float]]) -> None:
        """Write the program; rows 0 … are the levels: left · x − pace · t ≥ so far. sides are a · x ≤ b."""
        inf, whole = highspy.kHighsInf, np.arange(self.t + 1, dtype=np.int32)
        self.left = left
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.highs.setOptionValue(option, 1e-10)
        for _ in range(self.t + 1):
            self.highs.addVar(0.0, inf)
        for values in left:
            self.highs.addRow(0.0, inf, self.t + 1, whole, np.append(values, 0.0))
        for values, most in sides:
            some = np.flatnonzero(values).astype(np.int32)
            self.highs.addRow(-inf, most, len(some), some, values[some])
        self.highs.changeObjectiveSense(highspy.ObjSense.kMaximize)

    def most(self, cost: Floats, so_far: Floats, pace: Floats) -> float:
        """Return the most of cost · (x, t) when row i has so_far[i] + pace[i] t at least, but for rounding."""
        self.highs.changeColsCost(self.t + 1, np.arange(self.t + 1, dtype=np.int32), cost)
        for rounding in (1e-12, 1e-11, 1e-10, 1e-9):
            for i in range(self.rows):
                self.highs.changeRowBounds(i, so_far[i] * (1 - rounding), highspy.kHighsInf)
                self.highs.changeCoeff(i, self.t, -pace[i])
            self.highs.run()
            if self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                return float(self.highs.getInfo().objective_function_value)
            self.highs.clearSolver()
        raise AssertionError(self.highs.modelStatusToString(self.highs.getModelStatus()))

    def of_row(self, i: int, so_far: Floats) -> float:
        """Return the highest rate of row i when no row falls below so_far."""
        return self.most(np.append(self.left[i], 0.0), so_far, np.zeros(self.rows))

    def of_all(self, so_far: Floats, pace: Floats) -> float:
        """Return the largest t."""
        return self.most(np.append(np.zeros(self.t), 1.0), so_far, pace)


class Textbook(LevelBook):
    """The program with a variable for every row and column, and t."""

    def __init__(self, problem: Instance):
        rows, columns = self.rows, _ = problem.rate.shape
        self.t = rows * columns
        places = np.arange(self.t).reshape(rows, columns)
        left, time, taken = np.zeros((rows, self.t)), np.zeros((rows, self.t)), np.zeros((columns, self.t))
        for i in range(rows):
            left[i, places[i]], time[i, places[i]] = problem.rate[i], 1.0
        for k in range(columns):
            taken[k, places[:, k]] = problem.size
        sides = [(row, 1.0) for row in time] + list(zip(taken, problem.capacity.tolist(), strict=True))
        if problem.cap is not None:
            sides += list(zip(left, problem.cap.tolist(), strict=True))
        self._open(left, sides)


def paces(tree: Tree | None, active: Bools) -> Floats:
    """Return at what pace each row rises while those active are the ones that can."""
    if tree is None:
        return active.astype(float)
    children: dict[int, list[tuple[str, int, float]]] = {g: [] for g in range(-1, len(tree.parent))}
    for g in range(len(tree.parent)):
        children[tree.parent[g]].append(("group", g, tree.weight[g]))
    for i in range(len(active)):
        children[tree.group_of[i]].append(("row", i, tree.row_weight[i]))
    pace = np.zeros(len(active))

    def rises(kind: str, index: int) -> bool:
        return bool(active[index]) if kind == "row" else any(rises(k, c) for k, c, _ in children[index])

    def give(group: int, amount: float) -> None:
        rising = [child for child in children[group] if rises(*child[:2])]
        served = rising[:1] if group >= 0 and tree.inner[group] == "first" else rising
        whole = sum(weight for *_, weight in served)
        for kind, index, weight in served:
            if kind == "row":
                pace[index] = amount * weight / whole
            else:
                give(index, amount * weight / whole)

    give(-1, 1.0)
    return pace


def by_sequence(book: LevelBook, need: Floats, tree: Tree | None) -> Floats:
    """Return the levels, raised one after the other; a row stops when it can gain 3e-8 of its best rate at most."""
    so_far = np.zeros(len(need))
    best = np.array([book.of_row(i, so_far) for i in range(len(need))])
    active = best > 1e-9
    while active.any():
        pace = paces(tree, active) * need
        scale = pace.max()
        so_far = so_far + pace / scale * book.of_all(so_far, pace / scale)
        gain = np.array([book.of_row(i, so_far) for i in range(len(need))]) - so_far
        assert (gain <= 3e-8 * best)[active & (pace > 0)].any(), "a level program ended though every row can rise"
        active &= gain > 3e-8 * best
    return so_far / need


def demand_valid(problem: Instance, filled: Filled) -> None:
    """The shares fit, and reach the levels."""
    x = filled.x
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    assert (problem.size @ x <= problem.capacity * (1 + 1e-9)).all()
    reached = (problem.rate * x).sum(axis=1)
    np.testing.assert_allclose(reached, filled.level * problem.need, rtol=1e-9, atol=1e-12)
    if problem.cap is not None:
        assert (reached <= problem.cap * (1 + 1e-9)).all()


@given(instances())
@settings(deadline=None, max_examples=120)
def test_every_level_is_what_a_sequence_of_linear_programs_finds(problem: Instance) -> None:
    filled = problem.fill()
    demand_valid(problem, filled)
    np.testing.assert_allclose(
        filled.level * problem.need,
        by_sequence(Textbook(problem), problem.need, problem.tree) * problem.need,
        rtol=1e-7,
        atol=1e-8,
    )


@given(instances(most_rows=30))
@settings(deadline=None, max_examples=50)
def test_there_are_no_more_phases_than_columns_and_one_in_which_the_rest_fits(problem: Instance) -> None:
    filled = problem.fill()
    assert filled.phases <= problem.rate.shape[1] + 1
    assert filled.gap <= 1e-9
    for price in filled.price:
        assert (price >= 0).all()
        assert not price.any() or price @ problem.capacity == pytest.approx(1)


@given(instances(with_tree=False), st.integers(2, 5))
@settings(deadline=None, max_examples=30)
def test_rows_that_are_alike_get_alike_whatever_their_number(problem: Instance, times: int) -> None:
    one = problem.fill()
    cap = None if problem.cap is None else np.tile(problem.cap, times)
    rate, size, need = np.tile(problem.rate, (times, 1)), np.tile(problem.size, times), np.tile(problem.need, times)
    many = fill(rate, size, problem.capacity * times, need, cap=cap)
    np.testing.assert_allclose(many.level, np.tile(one.level, times), rtol=1e-9, atol=1e-12)


def test_columns_that_fill_at_one_moment_are_priced_together() -> None:
    """Either price alone proves the moment; rows that use the other column would be left to a full one."""
    rng = np.random.default_rng(476040)
    rate = rng.lognormal(0, 1, (12, 5)) * (rng.random((12, 5)) > 0.2)
    need, size = rng.lognormal(0, 1, 12), rng.choice([1.0, 2.0, 4.0], 12)
    capacity, cap = rng.integers(1, 5, 5).astype(float), rng.uniform(0.1, 2.0, 12)
    problem = Instance(np.tile(rate, (5, 1)), np.tile(size, 5), 5 * capacity, np.tile(need, 5), np.tile(cap, 5))
    filled = problem.fill()
    demand_valid(problem, filled)
    one = fill(rate, size, capacity, need, cap=cap)
    np.testing.assert_allclose(filled.level, np.tile(one.level, 5), rtol=1e-9)


@pytest.mark.parametrize("kind", ["flat", "tree"])
def test_rows_that_are_nearly_alike_have_an_answer(kind: str) -> None:
    """Where rates agree but for a last few digits, the last digit of a level can cost a millionth of all there is."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows, columns = int(rng.choice([12, 40, 200])), int(rng.integers(2, 6))
        rate = rng.integers(0, 4, (4, columns)).astype(float)[rng.integers(0, 4, rows)]
        rate *= 1 + 10.0 ** -rng.integers(8, 15) * rng.standard_normal(rate.shape)
        size, need = rng.choice([1.0, 2.0, 4.0, 8.0], rows), rng.integers(1, 3, rows).astype(float)
        capacity = rng.dirichlet(np.full(columns, 3.0)) * size.sum() * rng.choice([0.125, 0.8, 1.0, 2.0])
        problem = Instance(rate, size, capacity, need, None, trees(rng, rows) if kind == "tree" else None)
        demand_valid(problem, problem.fill())


def crowded(seed: int, rows: int, columns: int, supply: float, kind: str) -> Instance:
    """Draw many rows, no two alike, whose sizes fill `supply` times the capacity's inverse."""
    rng = np.random.default_rng(seed)
    rate = rng.lognormal(0, 1, (rows, 1)) * rng.uniform(0.2, 1, columns) * np.exp(rng.normal(0, 0.35, (rows, columns)))
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows, p=[0.7, 0.1, 0.15, 0.05])
    capacity = rng.dirichlet(np.full(columns, 3.0)) * size.sum() * supply
    need = rate @ capacity / capacity.sum() / size
    tree = None if kind == "flat" else trees(rng, rows)
    return Instance(rate, size, capacity, need, None, tree)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(200, 400),
    st.integers(1, 4),
    st.sampled_from([0.125, 0.8, 1.1, 2.0]),
    st.sampled_from(["flat", "tree"]),
)
@example(4, 200, 4, 1.1, "flat")  # from its last basis HiGHS took this for a program without a point
@settings(deadline=None, max_examples=25)
def test_many_rows_are_filled_as_the_general_solver_fills_them(
    seed: int, rows: int, columns: int, supply: float, kind: str
) -> None:
    problem = crowded(seed, rows, columns, supply, kind)
    quick = problem.fill()
    demand_valid(problem, quick)
    tree = flat(rows) if problem.tree is None else problem.tree
    room = problem.rate.max(axis=1) / problem.need
    slow = _Filling(problem.rate.T, problem.size, problem.capacity, problem.need, room, tree).run_few()
    np.testing.assert_allclose(quick.level, slow.level, rtol=1e-6, atol=1e-7 * slow.level.max())


@pytest.mark.parametrize("rows", [800, 5_000])
def test_rows_that_cannot_use_a_column_are_not_taken_for_tied_to_it(rows: int) -> None:
    """Most rows get nothing from one column, which costs nothing: that is no other way to be served."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rate = rng.lognormal(0, 0.1, (rows, 3))
        rate[:, 1] *= rng.random(rows) < 0.3
        size, need = rng.integers(1, 5, rows).astype(float), rng.uniform(0.5, 2, rows)
        problem = Instance(rate, size, np.full(3, 0.2 * rows), need)
        quick = problem.fill()
        demand_valid(problem, quick)
        assert quick.gap <= 1e-9
        if rows < 1_000:
            slow = _Filling(rate.T, size, problem.capacity, need, rate.max(axis=1) / need, flat(rows)).run_few()
            np.testing.assert_allclose(quick.level, slow.level, rtol=1e-6)


def test_twenty_thousand_rows_leave_no_gap_and_give_the_same_bytes_twice() -> None:
    problem = crowded(1, 20_000, 3, 0.8, "flat")
    first, again = problem.fill(), problem.fill()
    demand_valid(problem, first)
    assert first.gap <= 1e-9 and first.phases <= 4
    assert first.x.tobytes() == again.x.tobytes() and first.level.tobytes() == again.level.tobytes()


def few_kinds(seed: int, rows: int, columns: int, supply: float, inner: Inner | None) -> Instance:
    """Draw rows of few kinds, multiples of each other in part, whose needs and weights are no two alike."""
    rng = np.random.default_rng(seed)
    kinds = rng.lognormal(0, 1, (6, columns)) * (rng.random((6, columns)) > 0.15)
    rate = kinds[rng.integers(0, 6, rows)] * rng.choice([1.0, rng.uniform(0.5, 2)], rows)[:, None]
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows, p=[0.7, 0.1, 0.15, 0.05])
    capacity = rng.dirichlet(np.full(columns, 3.0)) * size.sum() * supply
    need = rng.lognormal(0, 0.5, rows)
    if inner is None:
        return Instance(rate, size, capacity, need)
    tree = Tree(
        parent=np.array([-1, -1, 0, 0]),
        weight=rng.integers(1, 4, 4).astype(float),
        inner=("share", inner, "share", inner),
        group_of=rng.integers(1, 4, rows),
        row_weight=rng.uniform(1, 4, rows),
    )
    return Instance(rate, size, capacity, need, None, tree)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(200, 400),
    st.integers(1, 4),
    st.sampled_from([0.125, 0.9, 1.1]),
    st.sampled_from([None, "share", "first"]),
)
@settings(deadline=None, max_examples=15)
def test_rows_of_few_kinds_with_needs_of_their_own_are_filled_like_any_others(
    seed: int, rows: int, columns: int, supply: float, inner: Inner | None
) -> None:
    """Beside it the textbook program on all rows, each by itself: without a tree the lowest level is what it finds."""
    problem = few_kinds(seed, rows, columns, supply, inner)
    quick = problem.fill()
    demand_valid(problem, quick)
    served = problem.rate.max(axis=1) > 0
    if inner is None and served.any():
        lowest = Textbook(problem).of_all(np.zeros(rows), problem.need * served)
        assert quick.level[served].min() == pytest.approx(lowest, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("inner", [None, "share", "first"])
def test_a_hundred_thousand_rows_of_few_kinds_leave_no_gap(inner: Inner | None) -> None:
    problem = few_kinds(0, 100_000, 3, 0.5, inner)
    filled = problem.fill()
    demand_valid(problem, filled)
    assert filled.gap <= 1e-9


@pytest.mark.parametrize(
    ("seed", "supply"), [(27, 0.9), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((8, 1.0), (20, 1.1)))]
)
def test_a_large_tree_near_balance_has_an_optimum(seed: int, supply: float) -> None:
    """Rows served one after the other have small differences of large sums; a phase may take too much for free."""
    problem = crowded(seed, 100_000, 4, supply, "tree")
    filled = problem.fill()
    demand_valid(problem, filled)
    assert filled.gap <= 1e-9


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 5))
@settings(deadline=None, max_examples=30)
def test_the_least_load_serves_each_of_many_rows_of_one_direction(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    rate = rng.lognormal(0, 1, columns)[:, None] * rng.choice([0.5, 1.0, 2.0], rows)
    best, load = rate.max(axis=0), rng.choice([1.0, 2.0], rows)
    need = best * rng.choice([0.0, rng.random(), 1.0, *(rate[:, 0] / rate[:, 0].max())], rows)
    capacity = rng.uniform(0.5, 1.5, columns) * rows
    bounds, start = (np.zeros(columns), np.ones(columns)), np.full((1, columns), 1 / columns)
    found = least_load((rate, load, need), capacity, np.zeros(columns), bounds, start)
    np.testing.assert_allclose((rate * found.share).sum(axis=0), need, rtol=1e-9, atol=1e-9)
    assert (found.share.sum(axis=0) <= 1 + 1e-9).all()
    assert (found.share @ load / capacity).max() <= 1 + found.over + 1e-9


@given(st.integers(0, 2**32 - 1), st.integers(5, 60), st.integers(2, 4))
@settings(deadline=None, max_examples=40)
def test_worths_kept_between_bounds_prove_the_most_that_any_between_them_proves(
    seed: int, rows: int, columns: int
) -> None:
    """Bounds around the best worths, near or far, and a start inside them; much of the load may be there already."""
    rng = np.random.default_rng(seed)
    rate, load = rng.lognormal(0, 1, (columns, rows)), rng.choice([1.0, 2.0], rows)
    need, capacity = rate.max(axis=0) * rng.uniform(0, 1, rows), rng.uniform(0.5, 1.5, columns) * rows
    base = capacity * rng.choice([0.0, 0.99]) * rng.uniform(0.9, 1, columns)
    anywhere, alike = (np.zeros(columns), np.ones(columns)), np.full(columns, 1 / columns)
    best = least_load((rate, load, need), capacity, base, anywhere, alike[None])
    assert proven(rate, load, need, capacity, base, best.worth) == pytest.approx(1 + best.over, abs=1e-9)
    width = rng.choice([1e-3, 0.05, 1.0]) * rng.random((2, columns))
    least, most = best.worth * (1 - width[0]), np.minimum(best.worth + width[1], 1.0)
    start = least + (most - least) * (1 - least.sum()) / (most.sum() - least.sum())
    found = least_load((rate, load, need), capacity, base, (least, most), start[None])
    assert found.over == pytest.approx(best.over, abs=1e-9)
    assert (least - 1e-12 <= found.worth).all() and (found.worth <= most + 1e-12).all()
    beyond = np.minimum(start + 0.5 * (most - start), best.worth)  # these bounds keep the best out
    outside = least_load((rate, load, need), capacity, base, (least, np.maximum(beyond, start)), start[None])
    assert outside.over <= best.over + 1e-9
    assert proven(rate, load, need, capacity, base, outside.worth) == pytest.approx(1 + outside.over, abs=1e-9)


def test_a_load_that_rounding_keeps_from_a_proof_is_proven_by_the_general_solver() -> None:
    """Needs that fill two columns to the last digit."""
    fast = [
        24.07874164802883,
        12.30945710836314,
        6.718018983715693,
        4.283394693579429,
        92.45962369746418,
        80.57327178233763,
    ]
    slow = [
        4.526984170206317,
        5.408579667232778,
        1.7747309241622307,
        0.491495615534552,
        46.83849564699484,
        29.868649951098917,
    ]
    rate = np.array([fast, slow])
    needs = [
        14.302862909112509,
        8.859018387796413,
        4.24637495393816,
        2.387445154556079,
        69.64905967225464,
        55.22096086671552,
    ]
    need = np.array(needs)
    load, capacity, base = np.array([1.0, 1.0, 2.0, 1.0, 2.0, 1.0]), np.full(2, 4.0), np.zeros(2)
    found = least_load(
        (rate, load, need), capacity, base, (np.zeros(2), np.ones(2)), np.array([[1.0, 0.0], [0.5, 0.5]])
    )
    assert found.over == pytest.approx(0.0, abs=1e-12)
    assert proven(rate, load, need, capacity, base, found.worth) == pytest.approx(1 + found.over, abs=1e-12)
    np.testing.assert_allclose((rate * found.share).sum(axis=0), need, rtol=1e-9)
    assert (found.share @ load / capacity).max() <= 1 + 1e-9


def proven(rate: Floats, load: Floats, need: Floats, capacity: Floats, base: Floats, worth: Floats) -> float:
    """Return the load that worths prove: what the cheapest mixes cost, by trying every pair of columns and idle."""
    price, total = worth / capacity, float(base @ (worth / capacity))
    for i, asked in enumerate(need):
        speed, cost = np.append(rate[:, i], 0.0), np.append(load[i] * price, 0.0)
        fast, slow = np.flatnonzero(speed >= asked), np.flatnonzero(speed < asked)
        pairs = [cost[k] for k in fast]
        for k in fast:
            part = (asked - speed[slow]) / (speed[k] - speed[slow])
            pairs.extend(part * cost[k] + (1 - part) * cost[slow])
        total += min(pairs)
    return total


@pytest.mark.parametrize(("seed", "supply"), [(0, 0.3), (1, 0.95), (2, 1.1)])
def test_the_first_look_at_very_many_rows_leaves_the_levels_as_they_are(
    seed: int, supply: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups in groups, the one with rows at its side, the other nearly full: v of each is a guess that is proven."""
    problem = crowded(seed, 60_000, 3, supply, "flat")
    rng = np.random.default_rng(seed)
    tree = Tree(
        parent=np.array([-1, -1, 0, 0, 1]),
        weight=np.array([1.0, 30.0, 2.0, 1.0, 1.0]),
        inner=("share",) * 5,
        group_of=rng.choice([-1, 0, 2, 3, 4], len(problem.size), p=[0.1, 0.2, 0.3, 0.3999, 0.0001]),
        row_weight=rng.uniform(1, 4, len(problem.size)),
    )
    problem = replace(problem, tree=tree)
    looked = problem.fill()
    demand_valid(problem, looked)
    monkeypatch.setattr(screen, "LARGE", 10**9)
    monkeypatch.setattr(waterfill_many, "LARGE", 10**9)
    np.testing.assert_allclose(looked.level, problem.fill().level, rtol=1e-8)
