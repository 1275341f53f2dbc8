"""What the partial-allocation mechanism promises, where its theorems hold, and what is left of that for whole things.

R. Cole, V. Gkatzelis and G. Goel, "Mechanism Design for Fair Division", EC 2013: for valuations that are homogeneous of
degree 1 over things that can be divided every bidder keeps at least ((n - 1) / n)^(n - 1) >= 1/e of its proportionally
fair value, and truth is dominant. Truth needs neither; the part of 1/e needs both.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import EXACT
from eunomia.solvers.auction.partial import Partial, contenders, nothing, partial_allocation, searched

EMPTY = 1e-9  # what nothing is worth where the theorem says 0: logarithms have to be finite


def of_tables(values: Floats, takes: Ints, capacity: Ints) -> Bids:
    """Return bids of which all tables have the same rows. values (bidder, row), takes (row, class)."""
    bidders, rows = values.shape
    return Bids(np.repeat(np.arange(bidders), rows), np.tile(takes, (bidders, 1)), np.log(values).ravel(), capacity)


def market(seed: int) -> tuple[Bids, Floats, int]:
    """Return bidders with additive values whose fair answer among divisible things is known and consists of whole ones.

    All things cost 1 and all bidders have the same to spend. What a bidder has is worth its price to it, everything
    else at most that, so that no bidder can do better with its money (a Fisher market in equilibrium).
    """
    rng = np.random.default_rng(seed)
    bidders, classes = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    each = int(rng.integers(1, 5 if bidders < 4 else 3))
    has = rng.multinomial(each, np.ones(classes) / classes, bidders)
    capacity = has.sum(axis=0)
    worth = np.where(has > 0, 1.0, rng.uniform(0, 1, has.shape)) * rng.uniform(0.1, 10, (bidders, 1))
    takes = np.array(list(itertools.product(*(range(n + 1) for n in capacity))))
    values = np.maximum(worth @ takes.T, EMPTY * worth.max(axis=1, keepdims=True))
    return of_tables(values, takes, capacity), worth, each


@functools.cache
def allocated(seed: int) -> Partial:
    """Return the answer to a market, which several tests look at."""
    return partial_allocation(market(seed)[0])


@pytest.mark.parametrize("seed", range(60))
def test_where_the_fair_answer_is_that_of_divisible_things_everybody_keeps_the_part_of_the_theorem(seed: int) -> None:
    bids, worth, each = market(seed)
    found, n = allocated(seed), bids.bidders
    assert found.proven
    np.testing.assert_allclose((worth * found.take).sum(axis=1), each * worth.max(axis=1))  # the equilibrium's values
    assert (found.share >= ((n - 1) / n) ** (n - 1) - 1e-7).all()
    assert (found.share >= 1 / math.e).all()


@pytest.mark.parametrize("seed", range(60))
def test_with_equal_budgets_no_bidder_envies_another_before_payments(seed: int) -> None:
    _, worth, _ = market(seed)
    take = allocated(seed).take
    of_others = worth @ take.T  # (bidder, bidder) what each would have of the take of each
    assert (np.diag(of_others)[:, None] >= of_others - 1e-9 * worth.max()).all()


def test_of_whole_things_less_than_1_in_e_may_be_kept() -> None:
    """Three accelerators and two bidders that value each alike: without the first the second has all three."""
    found = partial_allocation(of_tables(np.array([[EMPTY, 1.0, 2.0, 3.0]] * 2), np.arange(4)[:, None], np.array([3])))
    assert sorted(found.take[:, 0].tolist()) == [1, 2]
    assert sorted(found.share) == pytest.approx([1 / 3, 2 / 3])


def small(seed: int) -> Bids:
    """Return tables of two to four bidders, three rows each, on one or two classes; values are not homogeneous."""
    rng = np.random.default_rng(seed)
    bidders, classes = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    take = rng.integers(0, 3, (bidders, 3, classes))
    take[:, 0] = 0
    value = np.cumsum(
        rng.choice([0.0, 1.0, 1.5], (bidders, 3)) + rng.uniform(0, 1, (bidders, 3)) * rng.integers(0, 2), axis=1
    )
    capacity = rng.integers(1, 3, classes)
    return Bids(np.repeat(np.arange(bidders), 3), take.reshape(-1, classes), value.ravel(), capacity)


def utility(true: Bids, reported: Floats, bidder: int) -> float:
    """Return ln of what a bidder truly has: the value of the row it wins, for the part of the time that it keeps."""
    found = partial_allocation(Bids(true.bidder, true.take, reported, true.capacity))
    assert found.proven
    return float(np.log(found.share[bidder]) + true.worth[found.row[bidder]])


@pytest.mark.parametrize("seed", range(150))
def test_no_table_that_a_bidder_could_tell_is_better_than_its_own(seed: int) -> None:
    """All tables of four values for each of its three rows; truth, with ties broken anyhow, is as good as the best."""
    true = small(seed)
    liar = seed % true.bidders
    mine, honest = true.bidder == liar, utility(true, true.worth, liar)
    for lie in itertools.product([0.0, 1.0, 2.0, 3.5], repeat=3):
        reported = true.worth.copy()
        reported[mine] = lie
        assert utility(true, reported, liar) <= honest + 1e-7


@pytest.mark.parametrize("seed", range(100))
def test_no_bidder_has_less_than_with_nothing_and_no_other_answer_is_better_for_all(seed: int) -> None:
    """Whole things too: c V(pf) is the best product over the best without the bidder, which may leave it nothing."""
    bids = small(seed)
    found = partial_allocation(bids)
    value = np.log(found.share) + bids.worth[found.row]
    assert (value >= bids.worth[::3] - 1e-9).all()
    had = bids.worth[found.row]
    for rows in itertools.product(range(3), repeat=bids.bidders):
        row = 3 * np.arange(bids.bidders) + rows
        if (bids.take[row].sum(axis=0) <= bids.capacity).all():
            better = bids.worth[row] - had
            assert not ((better >= -1e-12).all() and (better > 1e-9).any())


@st.composite
def crowds(draw: st.DrawFn) -> Bids:
    """Many bidders of few kinds, each for a gang on any machine, some for two; seats for few, often equal gains."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bidders, classes, wider = draw(st.integers(1, 14)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    capacity = rng.integers(1, draw(st.integers(2, 9)), classes)
    size = rng.choice([1, 2, 4], bidders)
    ways = np.concatenate([np.zeros((1, classes), int), *(n * np.eye(classes, dtype=int) for n in range(1, wider + 1))])
    gain = rng.integers(1, 4, (bidders, wider)) * 1.0 if draw(st.booleans()) else rng.uniform(0, 3, (bidders, wider))
    gain = np.repeat(np.cumsum(gain, axis=1), classes, axis=1)
    slower = rng.choice([0.0, 0.5], gain.shape) if draw(st.booleans()) else np.zeros(gain.shape)
    least = rng.normal(size=(bidders, 1))
    worth = np.concatenate((least, least + gain - slower), axis=1).ravel()
    take = (size[:, None, None] * ways).reshape(-1, classes)
    return Bids(np.repeat(np.arange(bidders), len(ways)), take, worth, capacity)


def useful(bids: Bids) -> Bids:
    kept = bids.useful()
    return Bids(bids.bidder[kept], bids.take[kept], bids.worth[kept], bids.capacity)


@settings(max_examples=150, deadline=None)
@given(crowds())
def test_bidders_that_cannot_win_are_left_out_and_change_nothing(bids: Bids) -> None:
    found, whole = partial_allocation(bids), searched(useful(bids), EXACT)
    assert found.proven
    assert whole.proven
    assert found.objective == pytest.approx(whole.objective, abs=1e-9)
    assert np.isclose(bids.worth[found.row].sum(), found.objective)
    assert (found.take.sum(axis=0) <= bids.capacity).all()
    same = (found.take == whole.take).all(axis=1)  # where optima tie another bidder may win
    assert found.share[same] == pytest.approx(whole.share[same], abs=1e-7) or not same.all()


def test_of_many_alike_only_as_many_stay_as_may_win_and_one_more() -> None:
    gain = np.array([3.0, 9.0, 1.0, 7.0, 5.0, 9.0])
    values = np.stack((np.ones(6), np.exp(gain)), axis=1)
    for seats, stay in ((1, [1, 5]), (2, [1, 3, 5]), (4, [0, 1, 3, 4, 5])):
        bids = of_tables(values, np.array([[0], [1]]), np.array([seats]))
        assert contenders(bids, nothing(bids.begin(), bids.take)).tolist() == stay


@settings(max_examples=60, deadline=None)
@given(crowds(), st.integers(0, 3))
def test_where_all_have_their_best_at_once_each_keeps_it_whole(bids: Bids, more: int) -> None:
    """One bidder, or seats for all: what the search finds is what is said without one."""
    room = bids.take.sum(axis=0) + more
    ample = Bids(bids.bidder, bids.take, bids.worth, room)
    found, there = partial_allocation(ample), searched(useful(ample), EXACT)
    best = np.maximum.reduceat(bids.worth, bids.begin()[:-1])
    assert np.array_equal(bids.worth[found.row], best)
    assert found.share.tolist() == [1.0] * bids.bidders
    assert np.array_equal(found.take, there.take)
    assert there.share == pytest.approx(found.share)
    assert found.bound == found.objective == pytest.approx(there.objective)
