"""The point of the central path, and the middle: inside of everything that is asked, and near the optimum."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.solvers.analytic_center import inside, middle
from eunomia.solvers.max_min import highest_level

NEAR = 3e-6  # of the level: the path is left before its end


def drawn(seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return rate (row, column), size, capacity and need; some rates are 0, no row is lost."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 60)), int(rng.integers(1, 5))
    rate = rng.lognormal(0, 1.2, (rows, columns)) * (rng.random((rows, columns)) > 0.15)
    rate[rate.max(axis=1) == 0] = 1.0
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows)
    return rate, size, rng.integers(1, 40, columns).astype(float), rng.lognormal(0, 1, rows)


def fits(x: Floats, size: Floats, capacity: Floats) -> bool:
    return bool((x >= 0).all() and (x.sum(axis=1) <= 1 + 1e-12).all() and (size @ x <= capacity * (1 + 1e-12)).all())


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_the_point_inside_fits_and_reaches_the_highest_level_but_for_a_millionth_or_so(seed: int) -> None:
    rate, size, capacity, need = drawn(seed)
    level = highest_level(rate, size, capacity, need).objective
    x = inside(rate, size, capacity, need, np.zeros(len(need)), level)
    reached = (np.einsum("ik,ik->i", rate, x) / need).min()
    assert fits(x, size, capacity)
    assert level * (1 - NEAR) <= reached <= level * (1 + 1e-9)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_rows_that_are_alike_get_the_same_and_their_order_does_not_matter(seed: int) -> None:
    """The path to the middle is left with t within about 1e-6 of the highest, a little earlier or later by rounding;
    x moves by up to 4e-5 meanwhile (1,500 seeds).
    """
    rate, size, capacity, need = drawn(seed)
    twice = np.concatenate((np.arange(len(need)), np.arange(len(need))))
    level = highest_level(rate[twice], size[twice], capacity, need[twice]).objective
    x = inside(rate[twice], size[twice], capacity, need[twice], np.zeros(len(twice)), level)
    assert np.allclose(x[: len(need)], x[len(need) :], atol=1e-4)
    turned = inside(rate[twice][::-1], size[twice][::-1], capacity, need[twice][::-1], np.zeros(len(twice)), level)
    assert np.allclose(turned[::-1], x, atol=1e-4)


@given(seed=st.integers(0, 10**6), below=st.floats(0.5, 0.97))
@settings(max_examples=30)
def test_no_other_point_that_gives_as_much_has_a_larger_product_of_slacks_than_the_middle(
    seed: int, below: float
) -> None:
    rate, size, capacity, need = drawn(seed)
    highest = highest_level(rate, size, capacity, need).objective
    level = highest * below
    x = middle(rate, size, capacity, need, highest, level)

    def slacks(x: Floats) -> Floats:
        got = np.einsum("ik,ik->i", rate, x) / need / level - 1
        return np.concatenate((x.ravel(), 1 - x.sum(axis=1), got, 1 - size @ x / capacity))

    assert (slacks(x) > 0).all()
    best = np.log(slacks(x)).sum()
    rng = np.random.default_rng(seed)
    for other in (
        inside(rate, size, capacity, need, np.zeros(len(need)), highest),
        x * (1 + 1e-3 * rng.standard_normal(x.shape)),
    ):
        if (slacks(other) > 0).all():
            assert np.log(slacks(other)).sum() <= best + 1e-6
