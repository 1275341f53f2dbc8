"""Auctions worked by hand: Themis' examples (its section 5 and Cole, Gkatzelis and Goel's mechanism)."""

from __future__ import annotations

import numpy as np
import pytest

from eunomia.model.arrays import Floats, Ints
from eunomia.model.finish_time import IdealTime, ideal_time
from eunomia.policies.grants.themis.agents import RHO_MAX, app_totals, finish_time_fairness
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.partial import cut, partial_allocation, whole


def of_values(values: list[list[float]], capacity: int) -> Bids:
    """Return tables that say what 0, 1, 2, … are worth."""
    bidder = np.repeat(np.arange(len(values)), [len(row) for row in values])
    take = np.concatenate([np.arange(len(row)) for row in values])[:, None]
    return Bids(bidder, take, np.log(np.concatenate(values)), np.array([capacity]))


@pytest.mark.parametrize(("bidders", "kept"), [(2, 1 / 2), (3, 4 / 9), (4, 27 / 64)])
def test_equal_linear_bidders_keep_what_the_formula_says(bidders: int, kept: float) -> None:
    offered = bidders * (bidders - 1) * 4  # divides by the number of all, and of all but one
    values = [[1e-6, *map(float, range(1, offered + 1))]] * bidders
    found = partial_allocation(of_values(values, offered))
    assert found.proven
    assert found.take[:, 0].tolist() == [offered // bidders] * bidders
    np.testing.assert_allclose(found.share, kept)  # ((n − 1) / n)^(n − 1)


def test_the_table_of_four_accelerators() -> None:
    found = partial_allocation(of_values([[0.1, 0.5, 1, 1.2, 1.3], [0.2, 0.4, 0.6, 0.8, 1]], 4))
    assert found.take[:, 0].tolist() == [2, 2]
    assert np.exp(found.objective) == pytest.approx(0.6)
    # Without the first the second has 1 instead of 0.6; without the second the first 1.3 instead of 1.
    np.testing.assert_allclose(found.share, [0.6, 1 / 1.3])
    np.testing.assert_allclose(found.share * found.take[:, 0], [1.2, 1.538], atol=5e-4)
    assert 4 - (found.share * found.take[:, 0]).sum() == pytest.approx(1.262, abs=5e-4)


def machines(*rows: tuple[int, list[int], float], capacity: list[int]) -> Bids:
    """Return rows (bidder, take, ρ)."""
    bidder, take, rho = zip(*rows, strict=True)
    return Bids(np.array(bidder), np.array(take), -np.log(rho), np.array(capacity))


def test_two_gangs_that_prefer_locality_get_a_machine_each_and_not_half_of_both() -> None:
    table = [([0, 0], RHO_MAX), ([2, 2], 1.29), ([4, 0], 1.0), ([0, 4], 1.0)]
    rows = [(i, take, rho) for i in range(2) for take, rho in table]
    found = partial_allocation(machines(*rows, capacity=[4, 4]))
    assert sorted(found.take.tolist()) == [[0, 4], [4, 0]]
    np.testing.assert_allclose(found.share, 1.0)  # no bidder competes with another


def test_who_suffers_from_being_apart_gets_the_wide_machine() -> None:
    empty, wide, split = [0, 0, 0], [4, 0, 0], [0, 2, 2]
    rows = [(0, empty, RHO_MAX), (0, wide, 1.0), (0, split, 1.5), (1, empty, RHO_MAX), (1, wide, 1.0), (1, split, 1.0)]
    found = partial_allocation(machines(*rows, capacity=[4, 2, 2]))
    assert found.take.tolist() == [wide, split]


def test_a_lone_bidder_pays_nothing() -> None:
    found = partial_allocation(of_values([[1e-6, 1.0, 2.0]], 2))
    assert (found.take.tolist(), found.share.tolist()) == ([[2]], [1.0])


def test_the_three_treatments_of_what_cannot_be_divided() -> None:
    won, share = np.array([2, 2, 1]), np.array([0.6, 1 / 1.3, 1.0])
    rng = np.random.default_rng(0)
    assert whole(won, share, "floor", rng).tolist() == [1, 1, 1]
    assert whole(won, share, "lease", rng).tolist() == [2, 2, 1]
    drawn = np.array([whole(won, share, "randomized", rng) for _ in range(4000)])
    assert set(np.unique(drawn)) == {1, 2}
    np.testing.assert_allclose(drawn.mean(axis=0), share * won, atol=0.03)  # 4 sd of the mean
    take: Ints = np.array([[1, 4, 3]])
    assert cut(take, np.array([6])).tolist() == [[0, 4, 2]]  # as few classes as it can


def single(elapsed: float, left: float, serial: float, gang: int, slowdown: float, ideal: float) -> float:
    """Return ρ of an app of one job with `left` iterations."""
    one: Floats = np.ones(1)
    time = left * serial * slowdown / gang * one
    app, size, nothing = np.zeros(1, int), gang * np.ones(1, int), np.zeros(1)
    rho = finish_time_fairness(app, elapsed * one, ideal * one, time, nothing, one > 0, time, time * gang, size)
    return float(rho[0])


@pytest.mark.parametrize(
    ("ideal", "seconds", "rhos"),
    [("work", 5000.0, (0.6, 0.716, 1.0)), ("longest", 5000.0, (0.6, 0.716, 1.0)), ("share", 2500.0, (1.2, 1.432, 2.0))],
)
def test_rho_of_one_job(ideal: IdealTime, seconds: float, rhos: tuple[float, ...]) -> None:
    """A gang of 4 with 1000 iterations of 10 s on one accelerator, among two apps on 8: half the cluster holds it."""
    totals = app_totals(np.zeros(1, int), 1, np.array([1000 * 10 / 4]), np.array([4]), np.zeros(1))
    (found,) = ideal_time(*totals, np.array([2.0]), 8.0, ideal).tolist()
    assert found == seconds
    assert single(1000, 800, 10, 4, 1.0, found) == pytest.approx(rhos[0])
    assert single(1000, 800, 10, 4, 1.29, found) == pytest.approx(rhos[1])
    assert single(1000, 800, 10, 2, 1.0, found) == pytest.approx(rhos[2])


def test_rho_of_many_jobs_is_of_the_longest_or_of_all_the_work() -> None:
    # Two jobs of 100 s on 2 accelerators each: one seated does the work of both in 200 s; both in 100 s.
    app, size, time = np.zeros(2, int), np.array([2, 2]), np.array([100.0, 100.0])
    work, known = time * size, (np.zeros(1), np.array([50.0]), np.array([100.0]))
    for seated, finish in (([True, False], 200.0), ([True, True], 100.0)):
        rho = finish_time_fairness(app, *known, np.zeros(1), np.array(seated), time, work, size)
        assert rho[0] == pytest.approx(finish / 50.0)
    nothing = finish_time_fairness(app, *known, np.zeros(1), np.zeros(2, bool), time, work, size)
    assert nothing[0] == RHO_MAX
    # A paused third of 60 accelerator-seconds has to be done on the same seats: 15 s more on four.
    rho = finish_time_fairness(app, *known, np.array([60.0]), np.ones(2, bool), time, work, size)
    assert rho[0] == pytest.approx(115.0 / 50.0)
    assert [total.tolist() for total in app_totals(app, 1, time, size, np.array([60.0]))] == [[100.0], [460.0], [4.0]]
