"""What no rounds of whole gangs can give: the floor that enforcement is measured against."""

from __future__ import annotations

from itertools import product

import highspy
import numpy as np
import pytest
from benchmarks.enforcement_floor import fullest, least_missing

from eunomia.model.arrays import Bools, Floats, Ints


def packings(size: Ints, room: int) -> Bools:
    """Return all sets of gangs that fit together, (packing, gang)."""
    every = np.array(list(product((False, True), repeat=len(size))))
    return every[every @ size <= room]


def by_all_packings(x: Floats, size: Ints, room: int, rounds: int) -> float:
    """Return what `least_missing` does, from a program with a column for every packing."""
    columns = packings(size, room)
    program = highspy.Highs()  # type: ignore[no-untyped-call]
    program.setOptionValue("output_flag", False)
    n, y = len(size), len(columns)
    for cost in (*[1.0] * n, *[0.0] * y):
        program.addCol(cost, 0.0, highspy.kHighsInf, 0, [], [])
    for m in range(n):
        mine = [m, *(n + np.flatnonzero(columns[:, m])).tolist()]
        program.addRow(max(rounds * float(x[m]) - 1.0, 0.0), highspy.kHighsInf, len(mine), mine, [1.0] * len(mine))
    program.addRow(-highspy.kHighsInf, float(rounds), y, list(range(n, n + y)), [1.0] * y)
    program.run()
    return float(program.getObjectiveValue())


def test_a_wide_gang_beside_three_that_never_rest_costs_each_of_them_rounds() -> None:
    # In each of its 20 · 0.3 rounds one of the three waits. Each of the four may lack a round: 5 are owed, 3 are free.
    x, size = np.array([1.0, 1.0, 1.0, 0.3]), np.array([3, 3, 3, 8])
    assert least_missing(x, size, room=16, rounds=20) == pytest.approx(2.0)
    assert least_missing(x, size, room=17, rounds=20) == pytest.approx(0.0)


@pytest.mark.parametrize("seed", range(12))
def test_the_fullest_packing_is_worth_as_much_as_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, worth = rng.integers(1, 9, 8), rng.uniform(0, 1, 8) * rng.integers(0, 2, 8)
    room = int(rng.integers(0, 25))
    found = fullest(worth, size, room)
    assert size[found].sum() <= room
    assert worth[found].sum() == pytest.approx((packings(size, room) @ worth).max())


@pytest.mark.parametrize("seed", range(12))
def test_pricing_packings_finds_what_all_of_them_allow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 2 ** rng.integers(0, 4, 7)
    room, rounds = int(rng.integers(8, 17)), int(rng.integers(3, 20))
    x = rng.uniform(0, 1, 7)
    x *= min(1.0, rng.uniform(0.8, 1.2) * room / float(x @ size))
    assert least_missing(x, size, room, rounds) == pytest.approx(by_all_packings(x, size, room, rounds), abs=1e-6)
