"""The published solver's way: what it returns is an optimum, or a point that gives what is asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.solvers.max_min import highest_level
from eunomia_reproduction.gavel.ecos_emulation import NotSolved, solve
from eunomia_reproduction.gavel.shared_time import SharedTime

CLOSE = 1e-6


def drawn(seed: int) -> tuple[Floats, Floats, Floats]:
    """Return throughput (job, type), size and capacity."""
    rng = np.random.default_rng(seed)
    jobs, types = int(rng.integers(1, 30)), int(rng.integers(1, 4))
    T = rng.lognormal(0, 1, (jobs, types))
    return T, rng.choice([1.0, 2.0, 4.0], jobs), rng.integers(2, 30, types).astype(float)


def check_fits(x: Floats, size: Floats, capacity: Floats) -> None:
    assert (x >= 0).all()
    assert (x.sum(axis=1) <= 1 + CLOSE).all()
    assert (size @ x <= capacity * (1 + CLOSE)).all()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_its_answer_has_the_highest_level(seed: int) -> None:
    T, size, capacity = drawn(seed)
    x = solve(SharedTime(T, size, capacity))
    check_fits(x, size, capacity)
    highest = highest_level(T, size, capacity, np.ones(len(size))).objective
    assert np.einsum("ik,ik->i", T, x).min() == pytest.approx(highest, rel=CLOSE)


@given(seed=st.integers(0, 10**6), part=st.floats(0.3, 0.99))
@settings(max_examples=30)
def test_it_finds_a_point_that_gives_what_is_asked_and_says_so_where_there_is_none(seed: int, part: float) -> None:
    T, size, capacity = drawn(seed)
    highest = highest_level(T, size, capacity, np.ones(len(size))).objective
    x = solve(SharedTime(T, size, capacity, np.full(len(size), part * highest)))
    check_fits(x, size, capacity)
    assert np.einsum("ik,ik->i", T, x).min() >= part * highest * (1 - CLOSE)
    with pytest.raises(NotSolved):
        solve(SharedTime(T, size, capacity, np.full(len(size), highest * (2 - part))))
