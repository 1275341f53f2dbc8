"""What one optimum tells the next: windows, prices kept warm and the general solver change how soon, not what is found.

Tables of one type a row, the natural ones for "this type, so many", are checked against a table over what is left of
each type, which knows nothing of prices or bounds.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction import branch_and_bound, partial
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.branch_and_bound import by_program
from eunomia.solvers.auction.optimum import EXACT, Best, Effort, LeaveOneOut, best_rows
from eunomia.solvers.auction.packed_states import packed
from eunomia.solvers.auction.partial import partial_allocation, searched
from eunomia.solvers.auction.prices import Relaxation, ceiling, surplus

CLOSE = 1e-8


def one_type_a_row(rng: np.random.Generator, bidders: int, capacity: Ints, most: int) -> Bids:
    """Return so many of one type in each row, in steps of a gang; types differ in speed, and a demand ends the gain."""
    bidder, take, worth = [], [], []
    for i in range(bidders):
        gang, demand, done, left = rng.choice([1, 2]), rng.choice([2, 4, 8]), rng.uniform(0, 2), rng.lognormal(0, 1)
        bidder.append(i)
        take.append(np.zeros(len(capacity), dtype=np.int64))
        worth.append(-np.log(1e6))
        for k, n in itertools.product(range(len(capacity)), range(1, most + 1)):
            if n * gang <= capacity[k]:
                bidder.append(i)
                take.append(n * gang * np.eye(len(capacity), dtype=np.int64)[k])
                worth.append(-np.log(done + left / (min(n * gang, demand) * (1.0, 0.6, 0.3, 0.2)[k])))
    return Bids(np.array(bidder), np.array(take), np.array(worth), capacity)


def by_table(bids: Bids, away: int = -1) -> float:
    """Return the best sum of worths, without one bidder, from the best for every amount of each class."""
    best: Floats = np.zeros(tuple(bids.capacity + 1))
    for i in range(bids.bidders):
        if i == away:
            continue
        more = np.full_like(best, -np.inf)
        for row in np.flatnonzero(bids.bidder == i):
            to = tuple(slice(int(n), None) for n in bids.take[row])
            of = tuple(slice(0, int(c - n + 1)) for n, c in zip(bids.take[row], bids.capacity, strict=True))
            more[to] = np.maximum(more[to], best[of] + bids.worth[row])
        best = more
    return float(best.max())


@st.composite
def natural(draw: st.DrawFn) -> Bids:
    """Return small tables of one type a row; all rows may be needed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    capacity = rng.integers(2, 9, draw(st.integers(1, 4)))
    bids = one_type_a_row(rng, draw(st.integers(2, 7)), capacity, draw(st.integers(1, 6)))
    kept = bids.useful()
    return Bids(bids.bidder[kept], bids.take[kept], bids.worth[kept], bids.capacity)


def empty_rows(bids: Bids) -> Ints:
    return np.flatnonzero(~bids.take.any(axis=1))


@settings(max_examples=60, deadline=None)
@given(natural(), st.sampled_from([0.0, 1e-6, 0.01, 0.3, 100.0]), st.sampled_from([64, 1024, 65536]))
def test_whatever_window_is_searched_first_the_best_is_found(bids: Bids, window: float, widest: int) -> None:
    rows, who, known = packed(bids), np.arange(bids.bidders), empty_rows(bids)
    for price in (np.zeros(len(bids.capacity)), Relaxation(rows, bids.worth).prices(who)):
        found, best = best_rows(rows, bids.worth, who, price, known, widest, window), by_table(bids)
        assert found.objective <= best + CLOSE
        assert found.bound >= best - CLOSE
        assert found.proven or widest < EXACT.widest
        assert abs(bids.worth[found.row].sum() - found.objective) < CLOSE
        assert (bids.take[found.row].sum(axis=0) <= bids.capacity).all()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(natural(), st.sampled_from([1, 64, EXACT.widest]))
def test_without_one_bidder_after_the_other_every_best_and_bound_is_true(bids: Bids, widest: int) -> None:
    rows, known, everybody = packed(bids), empty_rows(bids), np.arange(bids.bidders)
    rest = LeaveOneOut(rows, bids.worth, Effort(widest=widest, work=0))
    for away in (-1, *range(bids.bidders)):
        who = everybody[everybody != away]
        found, best = rest.best(who, known[who]), by_table(bids, away)
        assert found.objective <= best + CLOSE <= found.bound + 2 * CLOSE
        assert found.proven or widest < EXACT.widest


@settings(max_examples=40, deadline=None)
@given(natural(), st.randoms())
def test_prices_kept_warm_bound_as_well_as_those_found_anew(bids: Bids, random: st.random.Random) -> None:
    rows, everybody = packed(bids), np.arange(bids.bidders)
    relaxation, turns = Relaxation(rows, bids.worth), [-1, *range(bids.bidders)]
    random.shuffle(turns)
    for away in turns:
        who = everybody[everybody != away]
        warm, anew = relaxation.prices(who), Relaxation(rows, bids.worth).prices(who)
        assert abs(ceiling(rows, bids.worth, warm, who) - ceiling(rows, bids.worth, anew, who)) < CLOSE
        assert ceiling(rows, bids.worth, warm, who) >= by_table(bids, away) - CLOSE


@settings(max_examples=40, deadline=None)
@given(natural(), st.integers(0, 6), st.booleans())
def test_the_general_solver_among_the_rows_that_may_be_better_finds_the_best(
    bids: Bids, away: int, start: bool
) -> None:
    rows, who = packed(bids), np.delete(np.arange(bids.bidders), min(away, bids.bidders - 1))
    price, loss = Relaxation(rows, bids.worth).prices(who), np.full(len(bids.worth), np.inf)
    gain, _ = surplus(rows, bids.worth, price, who, loss)
    most, row = float(gain.sum() + price @ bids.capacity), empty_rows(bids)[who]
    known = best_rows(rows, bids.worth, who, price, row, 1).row if start else row
    found = by_program(rows, bids.worth, who, loss, most, Best(known, float(bids.worth[known].sum()), most))
    assert found.objective == pytest.approx(by_table(bids, min(away, bids.bidders - 1)), abs=CLOSE)
    assert found.bound >= found.objective
    assert found.bound - found.objective < CLOSE
    assert np.array_equal(bids.bidder[found.row], who)
    assert (bids.take[found.row].sum(axis=0) <= bids.capacity).all()


@pytest.mark.parametrize("seed", [*range(5), pytest.param(5, marks=pytest.mark.slow)])
def test_one_type_a_row_the_fair_rows_and_all_shares_are_those_of_a_table_over_what_is_left(seed: int) -> None:
    bids = one_type_a_row(np.random.default_rng(seed), 16, np.array([32, 26, 26]), 8)
    found = partial_allocation(bids)
    assert found.proven
    assert found.objective == pytest.approx(by_table(bids), abs=CLOSE)
    for i in range(bids.bidders):
        others = np.delete(bids.worth[found.row], i).sum()
        assert found.share[i] == pytest.approx(np.exp(others - by_table(bids, i)), abs=CLOSE)


def test_where_layers_fail_and_rows_name_one_class_no_search_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of one state at most: what is not proven by them is left to the general solver, whatever it costs."""
    monkeypatch.setattr(branch_and_bound, "search", None)
    monkeypatch.setattr(partial, "AGAIN", (0, 0))
    for seed in range(4):
        bids = one_type_a_row(np.random.default_rng(seed), 8, np.array([12, 9, 9]), 4)
        kept = bids.useful()
        bids = Bids(bids.bidder[kept], bids.take[kept], bids.worth[kept], bids.capacity)
        found = searched(bids, Effort(widest=1))
        assert found.proven
        assert found.objective == pytest.approx(by_table(bids), abs=CLOSE)
