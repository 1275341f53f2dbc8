"""The point inside the optima of a level program with pairs: by hand, and with classes against single rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.packing.activities import ALONE, Activities, activities
from eunomia.solvers.packing.analytic_center import inside_shared
from eunomia.solvers.packing.pair_programs import highest_shared_level


def solved(
    rate: Floats, beside: Floats, count: Ints, capacity: Floats, need: Floats
) -> tuple[Activities, Floats, float, float]:
    """Return all activities of rows of size 1, their times, the level reached and the highest one."""
    size = np.ones(len(rate))
    highest = highest_shared_level(rate, beside, size, count, capacity, need).objective
    things = activities(rate, beside, size, count, capacity, worthwhile=False)
    time, level = inside_shared(things, size, count, capacity, need, highest)
    return things, time, level, highest


@pytest.mark.parametrize(("capacity", "together"), [(2.0, 0.5), (3.0, (17**0.5 - 1) / 8)])
def test_two_rows_that_do_not_slow_each_other_share_for_a_part_of_their_time(capacity: float, together: float) -> None:
    # The largest product of what each does and of the free capacity: y (1 - y)² (capacity - 2 + y).
    one = np.ones((1, 1))
    things, time, _, _ = solved(one, np.ones((1, 1, 1)), np.array([2]), np.array([capacity]), np.ones(1))
    assert time[things.second != ALONE] == pytest.approx(together, abs=1e-5)
    assert time[things.second == ALONE] == pytest.approx(2 * (1 - together), abs=1e-5)  # of both rows


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_rows_of_a_class_get_what_they_would_get_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds, columns = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    count, capacity = rng.integers(1, 4, kinds), rng.integers(1, 8, columns).astype(float)
    rate, need = rng.uniform(0.2, 3, (kinds, columns)), rng.uniform(0.5, 2, kinds)
    beside = rng.uniform(0.2, 0.9, (kinds, kinds, columns)) * rate[:, None, :]
    things, time, level, highest = solved(rate, beside, count, capacity, need)
    assert level == pytest.approx(highest, rel=1e-5)
    assert level <= highest * (1 + 1e-9)
    used = np.bincount(things.column, time, columns)
    assert (used <= capacity * (1 + 1e-9)).all()
    of = np.repeat(np.arange(kinds), count)
    rows, single, _, _ = solved(rate[of], beside[np.ix_(of, of)], np.ones(len(of), dtype=np.int64), capacity, need[of])
    partner = np.where(rows.second == ALONE, ALONE, of[rows.second])
    for a in range(len(things)):
        alike = (of[rows.first] == things.first[a]) & (partner == things.second[a]) & (rows.column == things.column[a])
        assert single[alike].sum() == pytest.approx(time[a], abs=2e-3 * count.sum())
