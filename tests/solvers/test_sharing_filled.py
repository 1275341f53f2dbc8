"""Water filling and the fairest product with sharing, against programs over all pairs of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.solvers.test_sharing import Instance, problems, received
from tests.solvers.test_waterfill_property import LevelBook, by_sequence, trees

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.packing.min_late_jobs import late_shared_rows
from eunomia.solvers.packing.nash_welfare import largest_shared_product
from eunomia.solvers.packing.per_job_needs import best_shared_total_own, highest_shared_level_own
from eunomia.solvers.packing.row_times import expand
from eunomia.solvers.packing.water_filling import SharedFilling, fill_shared
from eunomia.solvers.proportional import fairest_product
from eunomia.solvers.water_filling.tree import Tree, flat


class PairBook(LevelBook):
    """The program with a variable for every row and every pair of rows that fit, on every column, and t."""

    def __init__(self, one: Instance):
        beside, size = one.by_row(), one.size[one.of]
        rows, columns = len(size), len(one.capacity)
        able = [(i, j) for i in range(rows) for j in range(i, rows) if size[i] == size[j] and beside[i, j].any()]
        places = [(i, j, k) for i, j in able for k in range(columns)]
        self.rows, self.t = rows, len(places)
        self.left = np.zeros((rows, self.t))
        time, taken = np.zeros((rows, self.t)), np.zeros((columns, self.t))
        for place, (i, j, k) in enumerate(places):
            self.left[i, place], self.left[j, place] = beside[i, j, k], beside[j, i, k]
            time[i, place] = time[j, place] = 1.0
            taken[k, place] = size[i]
        self._open(self.left, [(row, 1.0) for row in time] + list(zip(taken, one.capacity, strict=True)))


def classes_of(one: Instance, need: Floats, tree: Tree) -> Classes:
    """Return the rows that a tree and their needs do not tell apart."""
    first = np.array([False, *(inner == "first" for inner in tree.inner)])
    alone = np.where(first[tree.group_of + 1], np.arange(len(need)), -1)
    return group(one.of, need, tree.row_weight, tree.group_of, alone)


def filled(one: Instance, need: Floats, tree: Tree) -> tuple[SharedFilling, Classes]:
    classes = classes_of(one, need, tree)
    some = classes.representative
    kind: Ints = one.of[some]
    fewer = replace(tree, group_of=tree.group_of[some], row_weight=tree.row_weight[some] * classes.count)
    tables = one.rate[kind], one.beside[np.ix_(kind, kind)], one.size[kind], classes.count, one.capacity
    return fill_shared(*tables, need[some], fewer), classes


@given(problems(most_rows=9), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=120)
def test_every_level_is_what_a_sequence_of_programs_over_pairs_finds(one: Instance, nested: bool, own: bool) -> None:
    rows = len(one.of)
    need = one.rng.lognormal(0, 1, rows) if own else one.rng.choice([0.5, 1.0], len(one.size))[one.of]
    tree = trees(one.rng, rows) if nested else flat(rows)
    found, classes = filled(one, need, tree)
    rates = received(one, expand(found.shared, classes))
    level = found.level[classes.of]
    np.testing.assert_allclose(rates, level * need, rtol=1e-9, atol=1e-12)
    assert found.gap <= 1e-9
    slow = by_sequence(PairBook(one), need, tree if nested else None)
    np.testing.assert_allclose(level * need, slow * need, rtol=1e-7, atol=3e-7)


@given(problems(most_rows=8), st.sampled_from([0.0, 1.0, 4.0]))
@settings(deadline=None, max_examples=40)
def test_the_fairest_product_over_classes_is_that_of_the_program_over_pairs_of_rows(
    one: Instance, decades: float
) -> None:
    weight = 10 ** one.rng.uniform(-decades / 2, decades / 2, len(one.size))
    classes, kind, given_ = one.by_class()
    found = largest_shared_product(*given_, weight[kind])
    whole = float(weight[one.of][one.able()].sum())
    rates = received(one, expand(found, classes))
    some = one.able()
    assert weight[one.of][some] @ np.log(rates[some]) == pytest.approx(found.objective, abs=1e-9 * max(whole, 1e-300))
    assert found.bound - found.objective <= 1e-6 * whole
    bound = oracles.shared_product_bound(one.by_row(), one.size[one.of], one.capacity, weight[one.of], rates)
    assert found.objective >= bound - 1e-7 * whole


@given(problems())
@settings(deadline=None, max_examples=20)
def test_without_a_pair_that_fits_the_fairest_product_is_the_plain_one(one: Instance) -> None:
    _, kind, (rate, beside, *given_) = one.by_class()
    found = largest_shared_product(rate, np.zeros_like(beside), *given_, np.ones(len(kind)))
    plain = fairest_product(one.rate[one.of], one.size[one.of], one.capacity, np.ones(len(one.of)))
    assert found.objective == pytest.approx(plain.objective, abs=2e-6 * len(one.of))


@given(problems(most_rows=6), st.floats(1.02, 4))
@settings(deadline=None, max_examples=60)
def test_the_late_rows_are_the_lightest_set_that_sharing_leaves_late(one: Instance, over: float) -> None:
    steps = np.exp(one.rng.normal(0, one.rng.choice([0.1, 1.0]), len(one.of))) * one.able()
    weight = one.rng.choice([1.0, 1.5, 4.0], len(one.of))
    own = (one.rate, one.beside, one.size, one.of, one.capacity)
    floor = over * steps * highest_shared_level_own(*own, steps).shared.objective
    found = late_shared_rows(*own, floor, weight)
    kept = floor.copy()
    kept[found.rows] = 0.0
    reached = best_shared_total_own(np.ones(len(one.size)), *own, floor=kept)
    assert (received(one, reached.entries()) >= kept * (1 - 1e-9)).all()
    least = oracles.least_late_shared(one.by_row(), one.size[one.of], one.capacity, floor, weight)
    assert found.bound <= least * (1 + 1e-9)
    assert found.weight == pytest.approx(least) or not found.least


def test_a_row_that_needs_all_its_speed_cannot_share_and_that_is_proven() -> None:
    """Together both could have 1.2 of the 1.6 that a pair does; but the first would have to go alone all the time."""
    one = np.ones(1)
    beside, floor, weight = np.full((1, 1, 1), 0.8), np.array([1.0, 0.2]), np.array([1.0, 3.0])
    found = late_shared_rows(np.ones((1, 1)), beside, one, np.zeros(2, dtype=np.int64), one, floor, weight)
    assert found.rows.tolist() == [0]
    assert found.least
