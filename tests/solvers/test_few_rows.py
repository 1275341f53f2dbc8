"""Few rows are solved whole in one compiled call, as exactly as the general solver solves them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.solvers.linear import best_total
from eunomia.solvers.pricing.final_lp import vertex
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.small_programs.dispatch import few_level, few_total


@st.composite
def crowds(draw: st.DrawFn) -> tuple[NeedRows, Floats]:
    """Up to 40 rows on up to 5 columns, with ties and zeros, straight needs or curved ones."""
    n, K, seed = draw(st.integers(1, 40)), draw(st.integers(1, 5)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    T = rng.lognormal(size=(K, n))
    if draw(st.booleans()):
        T = np.round(T)
    T[0, T.max(axis=0) <= 0] = 1.0
    size, a = rng.choice([1.0, 2.0, 4.0, 8.0], n), rng.lognormal(sigma=draw(st.sampled_from([0.3, 4.0])), size=n)
    aged = draw(st.booleans())
    b, e = (rng.uniform(1, 5, n), rng.uniform(0, 2, n)) if aged else (None, None)
    return NeedRows(T, np.zeros(n), size, a, b, e, None), rng.integers(1, 30, K).astype(float)


def full_speed(rows: NeedRows) -> float:
    """Return the level at which the first row is at full speed."""
    best = rows.T.max(axis=0)
    base, age = (np.ones(rows.count), np.zeros(rows.count)) if rows.b is None or rows.e is None else (rows.b, rows.e)
    return float((best * base / (rows.a + best * age)).min())


@given(crowds())
def test_the_level_and_its_proof_are_those_of_the_general_solver(crowd: tuple[NeedRows, Floats]) -> None:
    rows, capacity = crowd
    top = full_speed(rows)
    found = few_level(rows, capacity, top)
    other = vertex(rows, capacity, np.zeros((3, len(capacity))), 0.0, top, top)
    assert found is not None
    assert abs(found.t - other.t) <= 1e-8 * other.t
    assert found.bound - found.t <= 1e-9 * found.bound
    assert (found.x @ rows.size <= capacity * (1 + 1e-9)).all()
    assert (found.x.sum(axis=0) <= 1 + 1e-9).all()
    assert ((rows.T * found.x).sum(axis=0) >= rows.need(found.t)[0] * (1 - 1e-9)).all()


@given(crowds(), st.integers(0, 2**32 - 1))
def test_what_is_left_over_is_spent_as_the_general_solver_spends_it(crowd: tuple[NeedRows, Floats], seed: int) -> None:
    rows, capacity = crowd
    found = few_level(rows, capacity, full_speed(rows))
    assert found is not None
    worth = np.random.default_rng(seed).normal(size=found.x.shape).T
    floor = (rows.T * found.x).sum(axis=0) * (1 - 1e-9)
    x = few_total(worth, rows.size, capacity, rows.T.T, floor, found.x.T)
    other = best_total(worth, rows.size, capacity, rate=rows.T.T, floor=floor)
    assert x is not None
    assert abs((worth * x).sum() - other.objective) <= 1e-8 * other.scale
    assert ((rows.T.T * x).sum(axis=1) >= floor * (1 - 1e-9)).all()
