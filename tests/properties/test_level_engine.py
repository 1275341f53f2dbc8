"""The engine for many rows against the textbook program, on tables small enough for both."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.oracles import Instance, problems

from eunomia.solvers import level
from eunomia.solvers.level import Level, highest_level


def many(one: Instance, **more: object) -> Level:
    """Return the level by the road of many rows, however few there are."""
    with mock.patch.object(level, "_distinct", return_value=None):
        return highest_level(one.rate, one.size, one.capacity, one.need, **more)  # type: ignore[arg-type]


def assert_it_fits(found: Level, one: Instance, need: np.ndarray) -> None:
    x = found.x
    asked = (one.rate > 0).any(axis=1) & (found.objective > 0)
    assert (x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-9).all()
    assert (one.size @ x <= one.capacity + 1e-9 * np.maximum(one.capacity, 1)).all()
    assert ((one.rate * x).sum(axis=1)[asked] >= need[asked] * (1 - 1e-9)).all()


@settings(max_examples=300)
@given(problems())
def test_prices_lead_to_the_level_of_the_textbook_program(one: Instance) -> None:
    found = many(one)
    best = oracles.highest_level(one.rate, one.size, one.capacity, one.need)
    assert found.objective == pytest.approx(best, rel=1e-7, abs=1e-300)
    assert found.objective <= found.bound <= found.objective * (1 + 1e-9)
    assert_it_fits(found, one, one.need * found.objective)


@settings(max_examples=100)
@given(problems())
def test_few_rows_as_one_program_have_the_level_of_the_textbook_program(one: Instance) -> None:
    found = highest_level(one.rate, one.size, one.capacity, one.need, second=one.rate)
    best = oracles.highest_level(one.rate, one.size, one.capacity, one.need)
    assert found.objective == pytest.approx(best, rel=1e-7, abs=1e-300)
    assert_it_fits(found, one, one.need * found.objective)


@settings(max_examples=60)
@given(problems(most_rows=20, decades=2), st.integers(0, 2**32 - 1))
def test_rows_with_an_age_have_the_level_that_bisection_finds(one: Instance, seed: int) -> None:
    capacity = np.maximum(one.capacity, 1.0)
    rng = np.random.default_rng(seed)
    alone, age = rng.uniform(0.5, 2, len(one.need)), rng.uniform(0, 1, len(one.need))
    if not (one.rate > 0).any():
        return
    best = 1 / oracles.least_unfairness(one.rate, one.size, capacity, one.need, age, alone)
    for solve in (highest_level, None):
        one_more = Instance(one.rate, one.size, capacity, one.need, one.weight)
        found = (
            many(one_more, base=alone, age=age)
            if solve is None
            else solve(one.rate, one.size, capacity, one.need, base=alone, age=age)
        )
        assert found.objective == pytest.approx(best, rel=1e-8)
        assert_it_fits(found, one_more, one.need * found.objective / (alone - age * found.objective))
