"""The engine for many rows against the textbook program, on tables small enough for both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.oracles import Instance, problems

from eunomia.solvers import max_min
from eunomia.solvers.max_min import MaxMinResult, highest_level, topped_up
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.pricing.symmetry import sorts


def many(one: Instance, **more: object) -> MaxMinResult:
    """Return the level by the road of many rows, however few there are."""
    with mock.patch.object(max_min, "_distinct", return_value=None):
        return highest_level(one.rate, one.size, one.capacity, one.need, **more)  # type: ignore[arg-type]


@st.composite
def kinds(draw: st.DrawFn) -> Instance:
    """Draw hundreds of rows of few sorts of speeds that each need another level, as jobs of few models do."""
    rows, columns = draw(st.integers(130, 260)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    speed = np.round(rng.uniform(0.5, 5, (draw(st.integers(1, 4)), columns)), draw(st.integers(0, 3)))
    rate, size = speed[rng.integers(len(speed), size=rows)], rng.choice([1.0, 2.0, 4.0], rows)
    capacity = rng.dirichlet(np.ones(columns)) * size.sum() / draw(st.sampled_from([0.8, 1.2, 1.5, 8.0]))
    need = rng.lognormal(0, draw(st.sampled_from([0.1, 0.5, 2.0])), rows)
    return Instance(rate, size, capacity, need, np.ones(rows))


def assert_it_fits(found: MaxMinResult, one: Instance, need: np.ndarray) -> None:
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
    found = highest_level(one.rate, one.size, one.capacity, one.need, second=np.copy)
    best = oracles.highest_level(one.rate, one.size, one.capacity, one.need)
    assert found.objective == pytest.approx(best, rel=1e-7, abs=1e-300)
    assert_it_fits(found, one, one.need * found.objective)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([0.0, 1.0, 1e3]), st.booleans(), st.booleans())
def test_rows_with_nothing_left_to_do_ask_for_nothing_however_old_they_are(
    one: Instance, oldness: float, others: bool, few: bool
) -> None:
    """As under pairs: a job that has ended, but whose end is not reported."""
    rng = np.random.default_rng(len(one.need))
    idle = rng.random(len(one.need)) < 0.5 if others else np.ones(len(one.need), dtype=bool)
    need = np.where(idle, 0.0, one.need)
    base = np.where(idle, rng.choice([0.0, 1.0], len(need)), need * rng.uniform(0.5, 2, len(need)))
    age = np.where(idle, rng.choice([0.0, 1.0, 1e6], len(need)), oldness * base)
    asking = replace(one, need=need)

    def level_of(**more: Any) -> MaxMinResult:
        more["second"] = np.copy
        return highest_level(one.rate, one.size, one.capacity, need, **more) if few else many(asking, **more)

    found = level_of(base=base, age=age)
    young = level_of(base=np.where(idle, 1.0, base), age=np.where(idle, 0.0, age))
    assert found.objective == pytest.approx(young.objective, rel=1e-9)
    left = base - age * found.objective
    asked = np.divide(need * found.objective, left, out=np.zeros(len(need)), where=~idle)
    assert np.isfinite(found.x).all()
    assert_it_fits(found, one, asked)


@given(kinds(), st.integers(0, 2**32 - 1))
def test_what_rows_of_one_sort_get_together_is_dealt_out_so_that_each_has_its_need(one: Instance, seed: int) -> None:
    rows = NeedRows(one.rate.T, np.zeros(len(one.need)), one.size, one.need, None, None, None)
    t = 0.7 * float((one.rate.max(axis=1) / one.need).min())
    alike = sorts(rows, t, t)
    speed, need = alike.merged(t).T, alike.need(t)[0]
    x = np.random.default_rng(seed).dirichlet(np.ones(len(speed) + 1), speed.shape[1]).T[:-1]
    reached, best = (speed * x).sum(axis=0), speed.max(axis=0)
    part = np.clip((best - need) / np.maximum(best - reached, 1e-12), 0, 1)  # some have more than their sort needs
    x = part * x + (1 - part) * (np.arange(len(speed))[:, None] == speed.argmax(axis=0))
    dealt, _ = alike.dealt(x, np.zeros(speed.shape[1]), t)
    assert (dealt >= 0).all() and (dealt.sum(axis=0) <= 1 + 1e-12).all()
    assert ((rows.T * dealt).sum(axis=0) >= one.need * t * (1 - 1e-9)).all()
    for k in range(len(speed)):
        together = np.bincount(alike.classes.of, one.size * dealt[k])
        np.testing.assert_allclose(together, alike.size * x[k], rtol=1e-9, atol=1e-9)


@settings(max_examples=100)
@given(kinds())
def test_rows_of_few_sorts_of_speeds_have_the_level_of_the_textbook_program(one: Instance) -> None:
    found = many(one)
    assert found.objective == pytest.approx(oracles.highest_level(one.rate, one.size, one.capacity, one.need), rel=1e-7)
    assert found.objective <= found.bound <= found.objective * (1 + 1e-9)
    assert_it_fits(found, one, one.need * found.objective)


@settings(max_examples=40)
@given(kinds(), st.integers(0, 2**32 - 1))
def test_rows_of_few_sorts_of_speeds_reach_the_level_that_their_ages_allow(one: Instance, seed: int) -> None:
    """A bisection of textbook programs would take minutes: at the level found, straight needs reach 1 and no more."""
    rng = np.random.default_rng(seed)
    alone, age = rng.uniform(0.5, 2, len(one.need)), rng.uniform(0, 1, len(one.need))
    found = many(one, base=alone, age=age)
    need = one.need * found.objective / (alone - age * found.objective)
    assert_it_fits(found, one, need)
    assert many(Instance(one.rate, one.size, one.capacity, need, one.weight)).objective == pytest.approx(1, rel=1e-8)


@settings(max_examples=60, deadline=None)
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


@given(problems(most_rows=15), st.floats(0, 1))
def test_spare_time_that_no_program_gives_out_is_given_out_until_no_place_can_take_more(
    one: Instance, part: float
) -> None:
    x = part * many(one).x
    more = topped_up(x, one.rate, one.size, one.capacity)
    used = one.size @ more
    assert (more >= x).all()
    assert (more.sum(axis=1) <= 1 + 1e-9).all() and (used <= one.capacity + 1e-9 * np.maximum(one.capacity, 1)).all()
    idle, spare = 1 - more.sum(axis=1), (one.capacity - used)[None, :] / one.size[:, None]
    assert (np.minimum(idle[:, None], spare)[one.rate > 0] <= 1e-9).all()
