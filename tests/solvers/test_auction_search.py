"""The search row by row: on machines that all differ it finds what trying everything finds, and its limits are true."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.branch_and_bound import settled
from eunomia.solvers.auction.optimum import Best, Effort
from eunomia.solvers.auction.packed_states import packed
from eunomia.solvers.auction.partial import partial_allocation, searched
from eunomia.solvers.auction.prices import Relaxation, surplus
from eunomia.solvers.auction.search import search

CLOSE = 1e-8


@st.composite
def machines(draw: st.DrawFn) -> Bids:
    """Return gangs on one to three of a few machines; the first row of each bidder takes nothing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return drawn(rng, draw(st.integers(4, 6)), draw(st.integers(3, 5)), draw(st.integers(2, 5)))


def drawn(rng: np.random.Generator, bidders: int, count: int, rows: int) -> Bids:
    """Return bidders with `rows` rows each and one of nothing; more accelerators are worth more."""
    take = rng.choice([1, 2, 4], (bidders, rows + 1, count))
    order = rng.random(take.shape).argsort(axis=2)
    take = np.where(order < rng.integers(1, 4, (bidders, rows + 1, 1)), take, 0)
    take[:, 0] = 0
    power, scale = rng.uniform(0.3, 1, (bidders, 1)), rng.uniform(0.5, 2, (bidders, 1))
    worth = np.log(scale * np.maximum(take.sum(axis=2), 0.01) ** power)
    return Bids(np.repeat(np.arange(bidders), rows + 1), take.reshape(-1, count), worth.ravel(), np.full(count, 4))


def by_hand(bids: Bids, away: int = -1) -> float:
    """Return the best sum of worths of all choices that fit, without one bidder."""
    tables = [np.flatnonzero(bids.bidder == i) for i in range(bids.bidders) if i != away]
    every = np.array(list(itertools.product(*tables)))
    fits = (bids.take[every].sum(axis=1) <= bids.capacity).all(axis=1)
    return float(bids.worth[every[fits]].sum(axis=1).max())


@settings(max_examples=40, deadline=None)
@given(machines())
def test_all_rows_and_shares_are_those_of_trying_everything(bids: Bids) -> None:
    found = partial_allocation(bids)
    assert found.proven
    assert abs(found.objective - by_hand(bids)) < CLOSE
    for i in range(bids.bidders):
        others = np.delete(bids.worth[found.row], i).sum()
        assert abs(found.share[i] - np.exp(others - by_hand(bids, i))) < CLOSE


@settings(max_examples=40, deadline=None)
@given(machines(), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_search_finds_the_least_loss_below_any_limit_at_any_prices(bids: Bids, part: float, seed: int) -> None:
    rows, who, loss = packed(bids), np.arange(bids.bidders), np.empty(len(bids.worth))
    rng = np.random.default_rng(seed)
    price, line = rng.uniform(0, 1, len(bids.capacity)), np.lexsort((rng.random(len(loss)), bids.bidder))
    gain, _ = surplus(rows, bids.worth, price, who, loss)
    most = gain.sum() + price @ bids.capacity
    least = most - by_hand(bids)
    found, row, work = search(rows, loss, price, bids.capacity, who, line, least + part + CLOSE, 10**9)
    assert work > 0
    assert abs(found - least) < CLOSE
    assert (bids.take[row].sum(axis=0) <= bids.capacity).all()
    assert abs(bids.worth[row].sum() - (most - found)) < CLOSE
    assert np.isinf(search(rows, loss, price, bids.capacity, who, line, least - CLOSE, 10**9)[0])


@settings(max_examples=40, deadline=None)
@given(machines(), st.integers(0, 400))
def test_wherever_the_work_ends_the_bound_is_true_and_the_rows_fit(bids: Bids, work: int) -> None:
    rows, who = packed(bids), np.arange(bids.bidders)
    nothing = rows.begin[:-1]
    known = Best(nothing, float(bids.worth[nothing].sum()), np.inf)
    found, left = settled(rows, bids.worth, who, Relaxation(rows, bids.worth).prices(who), known, work % 3, work)
    best = by_hand(bids)
    assert found.objective <= best + CLOSE
    assert found.bound >= best - CLOSE
    assert (bids.take[found.row].sum(axis=0) <= bids.capacity).all()
    assert abs(bids.worth[found.row].sum() - found.objective) < CLOSE
    assert 0 <= left <= work
    assert found.proven or left == 0


HARD = drawn(np.random.default_rng(4), 14, 12, 30)


@pytest.mark.slow
def test_more_work_proves_more_and_none_says_what_is_open() -> None:
    known, tried = HARD.useful(), []
    bids = Bids(HARD.bidder[known], HARD.take[known], HARD.worth[known], HARD.capacity)
    for effort in (Effort(widest=1, work=0), Effort(widest=1, work=20_000), Effort(widest=1)):
        tried.append(searched(bids, effort))
    gaps = [found.bound - found.objective for found in tried]
    assert gaps[0] > gaps[1] > 0.01 > gaps[2]
    assert [found.proven for found in tried] == [False, False, True]
    for found in tried:
        assert (found.least <= found.share).all()
        assert found.objective <= tried[-1].objective + CLOSE <= found.bound + 2 * CLOSE


def test_who_waits_for_a_search_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    searched(Bids(HARD.bidder, HARD.take, HARD.worth, HARD.capacity), Effort(widest=1, work=20_000))
    assert "searched row by row" in caplog.text
