"""Sharing: programs over classes against programs over all pairs of rows, and how rows part what classes get."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.packing.activities import ALONE, Activities
from eunomia.solvers.packing.pair_programs import Shared, best_shared_total, highest_shared_level
from eunomia.solvers.packing.per_job_needs import best_shared_total_own, highest_shared_level_own
from eunomia.solvers.packing.row_times import Entries, expand, parted
from eunomia.solvers.program import Infeasible

EXAMPLES = settings(max_examples=40)


@dataclass(frozen=True)
class Instance:
    """Rows of a few kinds; all rates on a column without capacity are 0."""

    of: Ints  # (row,) kind
    rate: Floats  # (kind, column)
    beside: Floats  # (kind, kind, column)
    size: Floats  # (kind,)
    capacity: Floats  # (column,)
    rng: np.random.Generator

    def by_class(self) -> tuple[Classes, Ints, tuple[Floats, Floats, Floats, Ints, Floats]]:
        """Return the classes, their kinds and what the engines are given of them."""
        classes = group(self.of)
        kind = self.of[classes.representative]
        beside = self.beside[np.ix_(kind, kind)]
        return classes, kind, (self.rate[kind], beside, self.size[kind], classes.count, self.capacity)

    def by_row(self) -> Floats:
        """Return the rates of each row beside each, (row, row, column); on the diagonal the rates alone."""
        beside = self.beside[np.ix_(self.of, self.of)]
        beside[np.arange(len(self.of)), np.arange(len(self.of))] = self.rate[self.of]
        return beside

    def able(self) -> Floats:
        return (self.rate.max(axis=1) + self.beside.max(axis=(1, 2)) > 0)[self.of]


@st.composite
def problems(draw: st.DrawFn, most_rows: int = 12) -> Instance:
    rows, kinds, columns = draw(st.integers(1, most_rows)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gangs, gaps, dead_column, never = (draw(st.booleans()) for _ in range(4))
    rate = rng.uniform(0.1, 10, (kinds, columns))
    if gaps:
        rate[rng.random(rate.shape) < 0.3] = 0.0
    fits = rng.random((kinds, kinds, columns)) < (0.0 if never else 0.8)
    beside = rate[:, None, :] * rng.uniform(0.2, 1.05, (kinds, kinds, columns)) * (fits & fits.transpose(1, 0, 2))
    beside *= beside.transpose(1, 0, 2) > 0  # a pair fits where both go
    size = rng.choice([1.0, 2.0], kinds) if gangs else np.ones(kinds)
    of = rng.integers(0, kinds, rows)
    capacity = np.round(rng.uniform(0, 1.5, columns) * size[of].sum() / columns * 4) / 4
    if dead_column:
        capacity[0] = 0.0
    rate[:, capacity == 0] = beside[:, :, capacity == 0] = 0.0
    return Instance(of, rate, beside, size, capacity, rng)


def received(one: Instance, entries: Entries) -> Floats:
    """Return the effective rate of each row, (row,), once the entries are found feasible."""
    rows, kind = len(one.of), one.of
    pair = entries.second != ALONE
    first, second, column, share = entries.first, entries.second[pair], entries.column, entries.share
    time = np.bincount(first, share, rows) + np.bincount(second, share[pair], rows)
    taken = np.bincount(column, share * one.size[kind[first]], len(one.capacity))
    assert (share > 0).all() and time.max(initial=0.0) <= 1 + 1e-9 and (taken <= one.capacity * (1 + 1e-9)).all()
    assert (first[pair] != second).all() and (one.size[kind[first[pair]]] == one.size[kind[second]]).all()
    partner = np.where(pair, entries.second, 0)
    speed = np.where(pair, one.beside[kind[first], kind[partner], column], one.rate[kind[first], column])
    assert (speed > 0).all()
    back = one.beside[kind[second], kind[first[pair]], column[pair]]
    return np.bincount(first, share * speed, rows) + np.bincount(second, share[pair] * back, rows)


@given(problems())
@EXAMPLES
def test_a_level_over_classes_is_that_of_the_program_over_pairs_of_rows(one: Instance) -> None:
    need = one.rng.choice([0.5, 1.0, 2.0], len(one.size))
    classes, kind, given_ = one.by_class()
    found = highest_shared_level(*given_, need[kind])
    textbook = oracles.highest_shared_level(one.by_row(), one.size[one.of], one.capacity, need[one.of])
    assert found.objective == pytest.approx(textbook, rel=1e-7)
    assert found.objective <= found.bound * (1 + 1e-12)
    rates = received(one, expand(found, classes))
    np.testing.assert_allclose(rates, found.rate[classes.of], rtol=1e-12, atol=1e-15)
    assert (rates[one.able()] >= (need[one.of] * found.objective * (1 - 1e-12))[one.able()]).all()


@given(problems())
@EXAMPLES
def test_what_the_level_leaves_over_is_spent_so_that_no_row_can_gain_unless_another_loses(one: Instance) -> None:
    classes, kind, given_ = one.by_class()
    found = highest_shared_level(*given_, np.ones(len(kind)))
    fastest = np.maximum(given_[0].max(axis=1), given_[1].max(axis=(1, 2)))
    worth = 1 / np.where(fastest > 0, fastest, 1.0)
    again = best_shared_total(worth, *given_, floor=found.rate * (1 - 1e-9))
    assert again.objective == pytest.approx(float(worth * found.rate @ classes.count), rel=1e-7)


@given(problems())
@EXAMPLES
def test_a_total_over_classes_is_that_of_the_program_over_pairs_of_rows(one: Instance) -> None:
    worth = one.rng.uniform(0.1, 1, len(one.size))
    classes, kind, given_ = one.by_class()
    found = best_shared_total(worth[kind], *given_)
    textbook = oracles.best_shared_total(worth[one.of], one.by_row(), one.size[one.of], one.capacity)
    assert found.objective == pytest.approx(textbook, rel=1e-7)
    assert worth[one.of] @ received(one, expand(found, classes)) == pytest.approx(found.objective, rel=1e-9)


@given(problems(most_rows=9))
@EXAMPLES
def test_each_row_has_a_floor_of_its_own_under_a_total(one: Instance) -> None:
    worth = one.rng.uniform(0.1, 1, len(one.size))
    steps = np.exp(one.rng.normal(0, 2, len(one.of))) * one.able()
    reachable = highest_shared_level_own(one.rate, one.beside, one.size, one.of, one.capacity, steps).shared.objective
    floor = steps * reachable * one.rng.choice([0.5, 0.999])
    own = (one.rate, one.beside, one.size, one.of, one.capacity)
    fee = one.rng.uniform(0, 3, len(one.capacity)) * one.rng.integers(0, 2)
    found = best_shared_total_own(worth, *own, floor=floor, fee=fee)
    part = one.by_row(), one.size[one.of], one.capacity
    textbook = oracles.best_shared_bill(worth[one.of], *part, fee, floor)
    assert found.shared.objective == pytest.approx(textbook, rel=1e-7, abs=1e-9)
    assert (received(one, found.entries()) >= floor * (1 - 1e-9)).all()
    if floor.any():
        with pytest.raises(Infeasible):
            best_shared_total_own(worth, *own, floor=1.01 * steps * reachable)


@given(problems(), st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=80)
def test_rows_with_steps_of_their_own_reach_the_level_of_the_program_over_pairs_of_rows(
    one: Instance, spread: float
) -> None:
    steps = np.exp(one.rng.normal(0, spread, len(one.of)))
    found = highest_shared_level_own(one.rate, one.beside, one.size, one.of, one.capacity, steps)
    textbook = oracles.highest_shared_level(one.by_row(), one.size[one.of], one.capacity, steps)
    assert found.shared.objective == pytest.approx(textbook, rel=1e-7)
    rates = received(one, found.entries())
    np.testing.assert_allclose(rates, found.rate, rtol=1e-9, atol=1e-12)
    assert (rates[one.able()] >= (steps * found.shared.objective * (1 - 1e-9))[one.able()]).all()


@given(problems(most_rows=8), st.sampled_from([0.0, 1.0, 5.0]))
@EXAMPLES
def test_rows_with_ages_of_their_own_reach_the_level_of_the_program_over_pairs_of_rows(
    one: Instance, oldness: float
) -> None:
    steps = np.exp(one.rng.normal(0, 1, len(one.of)))
    base = one.rng.uniform(0.5, 2, len(one.of)) * steps
    age = oldness * one.rng.uniform(0, 1, len(one.of)) * base
    t = highest_shared_level_own(
        one.rate, one.beside, one.size, one.of, one.capacity, steps, base=base, age=age
    ).shared.objective

    def share_of_what_is_asked(level: float) -> float:
        left = base - age * level
        if (left[one.able()] <= 0).any():
            return 0.0
        asked = steps * level / np.where(left > 0, left, 1.0)
        return oracles.highest_shared_level(one.by_row(), one.size[one.of], one.capacity, asked)

    if t > 0:
        assert share_of_what_is_asked(t * (1 - 1e-8)) >= 1 - 1e-10
        assert share_of_what_is_asked(t * (1 + 1e-8)) <= 1 + 1e-10


@given(problems(most_rows=8), st.sampled_from([0.0, 1.0, 1e3]), st.booleans())
@EXAMPLES
def test_rows_with_nothing_left_to_do_ask_for_nothing_however_old_they_are(
    one: Instance, oldness: float, others: bool
) -> None:
    """A job that has ended, but whose end is not reported: no steps, and perhaps no time alone either."""
    rows = len(one.of)
    idle = one.rng.random(rows) < 0.5 if others else np.ones(rows, dtype=bool)
    need = np.where(idle, 0.0, np.exp(one.rng.normal(0, 1, rows)))
    base = np.where(idle, one.rng.choice([0.0, 1.0], rows), one.rng.uniform(0.5, 2, rows) * need)
    age = np.where(idle, one.rng.choice([0.0, 1.0, 1e6], rows), oldness * base)
    tables = one.rate, one.beside, one.size, one.of, one.capacity
    found = highest_shared_level_own(*tables, need, base=base, age=age)
    young = highest_shared_level_own(*tables, need, base=np.where(idle, 1.0, base), age=np.where(idle, 0.0, age))
    assert found.shared.objective == pytest.approx(young.shared.objective, rel=1e-9)
    rates = received(one, found.entries())  # whoever asks for nothing may get what is left over
    t = found.shared.objective
    asked = np.divide(need * t, base - age * t, out=np.zeros(rows), where=~idle)
    assert (rates[one.able()] >= (asked * (1 - 1e-9))[one.able()]).all()
    assert t == 0 or (need > 0).any()


@given(problems())
@settings(max_examples=20)
def test_needs_may_lie_twelve_decades_apart(one: Instance) -> None:
    need = 10.0 ** one.rng.uniform(-6, 6, len(one.size))
    _, kind, given_ = one.by_class()
    textbook = oracles.highest_shared_level(one.by_row(), one.size[one.of], one.capacity, need[one.of])
    assert highest_shared_level(*given_, need[kind]).objective == pytest.approx(textbook, rel=1e-7)


def test_spare_time_is_spent_where_needs_lie_so_far_apart_that_time_looks_endless() -> None:
    """The second row needs so little that its time is a rounding beside it; all three end at full speed."""
    rate, need = np.array([[7.1], [1.8], [4.7]]), np.array([0.08, 1.4e-5, 46500.0])
    ones = np.ones(3)
    found = highest_shared_level(rate, np.zeros((3, 3, 1)), ones, ones.astype(int), np.full(1, 4.0), need)
    assert found.objective == pytest.approx(4.7 / 46500, rel=1e-9)
    np.testing.assert_allclose(found.rate, rate[:, 0], rtol=1e-9)


def test_spending_spare_time_takes_nothing_from_a_row_that_needs_ten_decades_less() -> None:
    """Found at random: the general solver lost 4e-8 of the second row's need while it spent what was left over."""
    rate = [
        [8.583673127981688, 0.5984508145444929],
        [5.800607122880057, 2.4937780039763013],
        [4.570609158722223, 3.398744720018771],
    ]
    need = np.array([250364.59937361328, 0.0006581090032829107, 2.8845356864697836e-05])
    count, capacity = np.array([3, 1, 1]), np.array([2.5, 0.75])
    found = highest_shared_level(np.array(rate), np.zeros((3, 3, 2)), np.ones(3), count, capacity, need)
    assert found.gap <= 1e-9
    assert found.objective * need[0] == pytest.approx((8.583673127981688 * 2.5 + 0.5984508145444929 * 0.5) / 3)


@given(problems())
@settings(max_examples=20)
def test_rows_that_fit_beside_none_have_the_level_of_the_plain_program(one: Instance) -> None:
    _, _, (rate, beside, size, count, capacity) = one.by_class()
    found = highest_shared_level(rate, np.zeros_like(beside), size, count, capacity, np.ones(len(size)))
    plain = oracles.highest_level(one.rate[one.of], one.size[one.of], capacity, np.ones(len(one.of)))
    assert found.objective == pytest.approx(plain, rel=1e-7)
    assert len(found.pairs()[0]) == 0


def test_a_class_that_no_column_serves_gets_nothing_and_holds_none_down() -> None:
    rate = np.array([[0.0], [1.0]])
    found = highest_shared_level(rate, np.zeros((2, 2, 1)), np.ones(2), np.array([3, 2]), np.ones(1), np.ones(2))
    assert found.objective == pytest.approx(0.5)
    np.testing.assert_allclose(found.rate, [0.0, 0.5], rtol=1e-9)


def test_floors_that_cannot_be_met_are_refused() -> None:
    rate, beside = np.ones((1, 1)), np.full((1, 1, 1), 0.6)
    given_ = (rate, beside, np.ones(1), np.array([2]), np.ones(1))
    assert best_shared_total(np.ones(1), *given_, floor=np.array([0.6])).objective == pytest.approx(1.2)
    with pytest.raises(Infeasible, match=r"each floor can be met to 0\.75 "):
        best_shared_total(np.ones(1), *given_, floor=np.array([0.8]))


def test_a_total_that_no_row_is_worth_its_fee_for_is_nothing() -> None:
    given_ = (np.ones((1, 1)), np.full((1, 1, 1), 0.6), np.ones(1), np.array([2]), np.ones(1))
    found = best_shared_total(np.ones(1), *given_, fee=np.array([1.3]))
    assert (found.objective, found.gap, len(found.time)) == (0.0, 0.0, 0)
    assert best_shared_total(np.ones(1), *given_, fee=np.array([1.1])).objective == pytest.approx(0.1)


def _pair_of_classes(first: int, second: int, time: float) -> tuple[Shared, Classes]:
    """Return an answer in which two classes share one column for some time, and its classes; rows stand mixed."""
    rng = np.random.default_rng(first + second)
    of = rng.permutation(np.repeat([0, 1], [first, second])) if second else np.zeros(first, dtype=np.int64)
    classes = group(of)
    places = of[classes.representative]  # class -> which of the two
    one, other = (int(np.flatnonzero(places == each)[0]) for each in (0, 1 if second else 0))
    thing = Activities(np.array([one]), np.array([other]), np.zeros(1, np.int64), np.ones(1), np.ones(1))
    none = np.zeros(len(classes))
    return Shared(0.0, 0.0, np.zeros(1), none, none, classes.count, thing, np.array([time])), classes


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 100_000), (2, 3), (3, 100_000), (999, 1000), (77_777, 3)])
def test_rows_of_two_classes_meet_in_fewer_entries_than_there_are_rows_and_each_for_its_part(
    first: int, second: int
) -> None:
    shared, classes = _pair_of_classes(first, second, 0.7 * min(first, second))
    entries = expand(shared, classes)
    assert len(entries) == first + second - np.gcd(first, second)
    time = np.bincount(entries.first, entries.share, first + second)
    time += np.bincount(entries.second, entries.share, first + second)
    np.testing.assert_allclose(time, (shared.time[0] / classes.count)[classes.of], rtol=1e-11)
    assert (classes.of[entries.first] != classes.of[entries.second]).all()


@pytest.mark.parametrize("rows", [2, 3, 4, 7, 100_000, 99_999])
def test_rows_of_one_class_meet_each_other_and_never_themselves(rows: int) -> None:
    shared, classes = _pair_of_classes(rows, 0, 0.4 * rows)
    entries = expand(shared, classes)
    assert len(entries) == (rows if rows % 2 else rows // 2)
    time = np.bincount(entries.first, entries.share, rows) + np.bincount(entries.second, entries.share, rows)
    np.testing.assert_allclose(time, 0.8, rtol=1e-12)
    assert (entries.first != entries.second).all()


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=100)
def test_rates_that_some_parting_reaches_are_reached(rows: int, kinds: int, seed: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    rate = rng.uniform(0.1, 10, kinds)
    some = rng.dirichlet(np.full(kinds + 1, rng.choice([0.1, 1.0])), rows)[:, :-1]  # each row idles too
    some = some / some.sum(axis=1, keepdims=True) if whole else some
    part = parted(some @ rate, rate, some.sum(axis=0))
    np.testing.assert_allclose(part.sum(axis=0), some.sum(axis=0), rtol=1e-9)
    assert (part >= 0).all() and part.sum(axis=1).max() <= 1 + 1e-9
    np.testing.assert_array_less(some @ rate, part @ rate * (1 + 1e-9))


@given(st.sampled_from([1, 2, 30, 5000]), st.integers(1, 3), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30)
def test_rows_are_of_one_class_exactly_where_all_columns_are_equal(
    rows: int, columns: int, seed: int, many: bool
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, columns)).round(0)  # has -0.0 and 0.0
    if many:
        table[:, 0] = rng.integers(-1000, 1000, rows) / 3
    classes = group(*table.T)
    alike = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    assert len(classes) == alike.max() + 1
    assert len(np.unique(np.stack((classes.of, alike)), axis=1).T) == len(classes)
    assert (table[classes.representative][classes.of] == table).all()
    assert (classes.of[classes.representative] == np.arange(len(classes))).all()
    assert (np.diff(classes.representative) > 0).all()
    members, start = classes.members()
    assert (classes.of[members] == np.repeat(np.arange(len(classes)), np.diff(start))).all()


def _many(rows: int) -> Instance:
    rng = np.random.default_rng(rows)
    rate = rng.uniform(0.5, 2, (26, 3)) * np.array([5.0, 2.0, 1.0])
    beside = rate[:, None, :] * rng.uniform(0.35, 0.95, (26, 26, 3))
    size = rng.choice([1.0, 2.0, 4.0], 26)
    of = rng.integers(0, 26, rows)
    return Instance(of, rate, beside, size, np.full(3, np.ceil(size[of].sum() / 24)), rng)


def test_a_hundred_thousand_rows_of_their_own_are_proven_optimal_and_the_same_twice() -> None:
    one = _many(100_000)
    steps = np.exp(one.rng.normal(0, 2, len(one.of)))
    age = one.rng.uniform(0, 3, len(one.of)) * steps
    own = (one.rate, one.beside, one.size, one.of, one.capacity, steps)
    found, again = (highest_shared_level_own(*own, base=steps + age / 2, age=age) for _ in range(2))
    assert found.shared.gap <= 1e-9
    level = found.shared.objective
    asked = steps * level / (steps + age / 2 - age * level)
    entries = found.entries()
    assert (received(one, entries) >= asked * (1 - 1e-8)).all()
    assert entries.share.tobytes() == again.entries().share.tobytes()
