"""Max-min fairness: worked by hand, and against the textbook program with a variable for every job and type."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.model.view import View
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.solvers.max_min import highest_level


def view(throughput: Any, capacity: Any, scale_factor: Any = None, weight: Any = None) -> View:
    T = np.array(throughput, dtype=float)
    ones = np.ones(len(T))
    columns = {
        "throughput": T,
        "capacity": np.array(capacity, dtype=float),
        "scale_factor": np.array(ones if scale_factor is None else scale_factor, dtype=np.int64),
        "weight": np.array(ones if weight is None else weight, dtype=float),
    }
    return View(at=0, types=tuple("vpkt"[: T.shape[1]]), jobs=len(T), columns=columns)


def textbook(gain: Floats, size: Floats, capacity: Floats) -> float:
    """Return max t with one variable per row and column, as the paper writes it; rows that can do nothing left out."""
    able = (gain > 0).any(axis=1)
    gain, size = gain[able], size[able]
    rows, columns = gain.shape
    if rows == 0:
        return 0.0
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        highs.setOptionValue(option, 1e-10)
    unit = float(gain.max(axis=1).min())
    for i in range(rows):
        for j in range(columns):
            highs.addVar(0.0, 1.0 if gain[i, j] > 0 else 0.0)
    highs.addVar(0.0, highspy.kHighsInf)
    t, inf = rows * columns, highspy.kHighsInf
    for i in range(rows):
        place = np.arange(i * columns, (i + 1) * columns, dtype=np.int32)
        highs.addRow(0.0, inf, columns + 1, np.append(place, t).astype(np.int32), np.append(gain[i] / unit, -1.0))
        highs.addRow(-inf, 1.0, columns, place, np.ones(columns))
    for j in range(columns):
        highs.addRow(-inf, capacity[j], rows, np.arange(j, t, columns, dtype=np.int32), size)
    highs.changeColCost(t, 1.0)
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value) * unit


def test_two_jobs_of_opposite_tastes_both_get_their_fastest_type() -> None:
    """Each has all of the type on which it is 3 times as fast: 3 / ((3 + 1) / 2) = 1.5, and nothing is better."""
    both = view([[3, 1], [1, 3]], [1, 1])
    np.testing.assert_allclose(MaxMinFairness().decide(both).x, np.eye(2), atol=1e-7)


def test_two_jobs_that_like_the_same_type_share_both_by_halves() -> None:
    """Σ T E is 2 and 1.5, so gains are (1.5, 0.5) and (4/3, 2/3). With x of the v100 the first has 0.5 + x, the second
    4/3 − 2x/3: alike at x = ½, where both have 1.
    """
    shared = view([[3, 1], [2, 1]], [1, 1])
    np.testing.assert_allclose(MaxMinFairness().decide(shared).x, np.full((2, 2), 0.5), atol=1e-7)
    gain = np.array([[1.5, 0.5], [4 / 3, 2 / 3]])
    assert highest_level(gain, np.ones(2), np.ones(2), np.ones(2), second=np.copy).objective == pytest.approx(
        1.0, rel=1e-9
    )


def test_weights_and_gangs_divide_one_type() -> None:
    """4 accelerators; a is a gang of 4, b of 2, weights 1 and 2: z x / w alike, 4 xa = 2 xb / 2, and 4 xa + 2 xb = 4:
    xa = 1/3 and 2 xb = 8/3 > 2, so b has all its time, xb = 1, and a what is left: xa = ½.
    """
    x = MaxMinFairness().decide(view([[1], [1]], [4], [4, 2], [1, 2])).x
    np.testing.assert_allclose(x, [[0.5], [1.0]], atol=1e-7)


def test_the_agnostic_twin_looks_at_time_alone() -> None:
    """All its optima give both jobs all their time."""
    x = MaxMinFairness(types="agnostic").decide(view([[3, 1], [1, 3]], [1, 1])).x
    np.testing.assert_allclose(x.sum(axis=1), [1, 1], atol=1e-7)


def test_one_job_alone_has_its_fastest_type_whole() -> None:
    np.testing.assert_allclose(MaxMinFairness().decide(view([[1, 5, 2]], [1, 1, 1])).x, [[0, 1, 0]], atol=1e-7)


def test_a_gang_wider_than_a_type_gets_none_of_it_and_lowers_no_other() -> None:
    x = MaxMinFairness().decide(view([[9, 1], [1, 1]], [2, 8], [4, 1])).x
    assert x[0, 0] == 0
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-7)


def test_a_job_that_can_run_nowhere_gets_nothing_and_lowers_no_other() -> None:
    np.testing.assert_allclose(MaxMinFairness().decide(view([[0], [2]], [1])).x, [[0], [1]], atol=1e-7)


@st.composite
def programs(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Gains, sizes, capacities: with ties, zero rows, zero entries, more columns than rows, weights over 6 decades."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    gain = rng.uniform(0.1, 10, (rows, columns))
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows)
    if draw(st.booleans()):
        gain[rng.random(gain.shape) < 0.3] = 0.0
    if draw(st.booleans()):
        twins = rng.integers(0, rows, rows)
        gain, size = gain[twins], size[twins]
    if draw(st.booleans()):
        gain /= 10.0 ** rng.uniform(-3, 3, rows)[:, None]
    return gain, size, rng.integers(1, 16, columns).astype(float)


@settings(max_examples=200)
@given(programs())
def test_the_level_is_that_of_the_textbook_program_and_its_bound_proves_it(
    program: tuple[Floats, Floats, Floats],
) -> None:
    gain, size, capacity = program
    level = highest_level(gain, size, capacity, np.ones(len(gain)), second=lambda rate: (rate > 0).astype(float))
    assert level.objective == pytest.approx(textbook(gain, size, capacity), rel=1e-7, abs=1e-12)
    assert level.bound >= level.objective * (1 - 1e-12)
    assert level.bound - level.objective <= 1e-9 * max(level.objective, 1e-12)


@settings(max_examples=200)
@given(programs())
def test_the_shares_reach_the_level_and_fit(program: tuple[Floats, Floats, Floats]) -> None:
    gain, size, capacity = program
    level = highest_level(gain, size, capacity, np.ones(len(gain)), second=lambda rate: (rate > 0).astype(float))
    able = (gain > 0).any(axis=1)
    assert ((gain * level.x).sum(axis=1)[able] >= level.objective * (1 - 1e-7)).all()
    assert (level.x.sum(axis=1) <= 1 + 1e-7).all()
    assert (size @ level.x <= capacity * (1 + 1e-7)).all()
    assert (level.x[gain == 0] == 0).all()
    assert (level.x >= 0).all()


@settings(max_examples=50)
@given(programs())
def test_alike_rows_get_alike_shares(program: tuple[Floats, Floats, Floats]) -> None:
    gain, size, capacity = program
    twice = highest_level(np.tile(gain, (2, 1)), np.tile(size, 2), capacity, np.ones(2 * len(gain)), second=np.copy).x
    np.testing.assert_array_equal(twice[: len(gain)], twice[len(gain) :])
