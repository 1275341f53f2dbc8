"""Auctions: the general solver finds no better rows, with or without a bidder, and no bidder gains by lying."""

from __future__ import annotations

import highspy
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.branch_and_bound import settled
from eunomia.solvers.auction.dynamic_program import sweep
from eunomia.solvers.auction.optimum import EXACT, best_rows
from eunomia.solvers.auction.packed_states import frames, packed, unfolded
from eunomia.solvers.auction.partial import partial_allocation
from eunomia.solvers.auction.prices import Relaxation, lowered, surplus

CLOSE = 1e-7


def by_highs(bids: Bids, away: int = -1) -> float:
    """Return the best sum of worths by HiGHS, without one bidder."""
    kept = np.flatnonzero(bids.bidder != away)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.addVars(len(kept), np.zeros(len(kept)), np.ones(len(kept)))
    for v, row in enumerate(kept.tolist()):
        highs.changeColCost(v, float(bids.worth[row]))
        highs.changeColIntegrality(v, highspy.HighsVarType.kInteger)
    for i in np.unique(bids.bidder[kept]):
        mine = np.flatnonzero(bids.bidder[kept] == i).astype(np.int32)
        highs.addRow(1.0, 1.0, len(mine), mine, np.ones(len(mine)))
    for k, most in enumerate(bids.capacity.tolist()):
        some = np.flatnonzero(bids.take[kept, k] > 0).astype(np.int32)
        highs.addRow(-highspy.kHighsInf, float(most), len(some), some, bids.take[kept[some], k].astype(float))
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


@st.composite
def tables(draw: st.DrawFn) -> Bids:
    """A few bidders on a few classes; often alike, so that there are many optima and interchangeable classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bidders, classes, rows = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 9))
    capacity = np.full(classes, draw(st.integers(1, 6)))
    if draw(st.booleans()):  # gangs on any one of the machines, all the same
        size = rng.integers(1, capacity[0] + 1, (bidders, 2))
        capacity = capacity * rng.choice([1, 2, 5], classes)  # alike to the bidders, and yet of other sizes
        take = np.concatenate(
            [
                np.concatenate((np.zeros((1, classes), int), *(z * np.eye(classes, dtype=int) for z in row)))
                for row in size
            ]
        )
        value = np.repeat(rng.uniform(0, 2, (bidders, 3)), [1, classes, classes], axis=1).ravel()
        return Bids(np.repeat(np.arange(bidders), 1 + 2 * classes), take, value, capacity)
    take = rng.integers(0, draw(st.integers(1, 8)) + 1, (bidders, rows + 1, classes))
    take[:, 0] = 0
    worth = rng.normal(size=(bidders, rows + 1)) if draw(st.booleans()) else rng.integers(0, 4, (bidders, rows + 1))
    return Bids(np.repeat(np.arange(bidders), rows + 1), take.reshape(-1, classes), worth.ravel() * 1.0, capacity)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_the_rows_and_every_share_are_what_the_general_solver_finds(bids: Bids) -> None:
    found = partial_allocation(bids)
    assert found.proven
    assert np.array_equal(found.take, bids.take[found.row])
    assert np.array_equal(bids.bidder[found.row], np.arange(bids.bidders))
    assert (found.take.sum(axis=0) <= bids.capacity).all()
    assert np.isclose(bids.worth[found.row].sum(), found.objective)
    assert abs(found.objective - by_highs(bids)) < CLOSE
    for i in range(bids.bidders if bids.bidders > 1 else 0):
        others = np.delete(bids.worth[found.row], i).sum()
        assert abs(found.share[i] - np.exp(others - by_highs(bids, i))) < CLOSE
    assert ((found.share > 0) & (found.share <= 1)).all()
    assert ((found.share[:, None] * found.take).sum(axis=0) <= bids.capacity + CLOSE).all()


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([1, 2, 5, 1000]))
def test_a_layer_of_any_width_tells_truly_what_it_found_and_what_it_lost(bids: Bids, width: int) -> None:
    kept = bids.useful()
    bids = Bids(bids.bidder[kept], bids.take[kept], bids.worth[kept], bids.capacity)
    rows, who, loss = packed(bids), np.arange(bids.bidders), np.empty(len(kept))
    price = Relaxation(rows, bids.worth).prices(who)
    gain, _ = surplus(rows, bids.worth, price, who, loss)
    line = np.lexsort((loss, bids.bidder))
    seen = frames(rows, who)
    value, chosen, lost = sweep(rows, bids.worth, price, who, gain, loss, line, *seen, -np.inf, width)
    best = by_highs(bids)
    if np.isfinite(value):
        real = unfolded(rows, bids.worth, who, seen, chosen)
        assert (bids.take[real].sum(axis=0) <= bids.capacity).all()
        assert np.isclose(bids.worth[real].sum(), value)
    assert value <= best + CLOSE
    assert max(value, lost) >= best - CLOSE
    if width == 1000:
        assert np.isclose(value, best)


@given(tables())
@settings(max_examples=30, deadline=None)
def test_other_prices_prove_less_but_nothing_false(bids: Bids) -> None:
    kept = bids.useful()
    bids = Bids(bids.bidder[kept], bids.take[kept], bids.worth[kept], bids.capacity)
    rows, who, empty = packed(bids), np.arange(bids.bidders), packed(bids).begin[:-1]
    empty = np.array(
        [b + np.argmin(bids.take[b:e].sum(axis=1)) for b, e in zip(rows.begin, rows.begin[1:], strict=False)]
    )
    for price in (np.zeros(len(bids.capacity)), np.full(len(bids.capacity), 3.0)):
        better = lowered(rows, bids.worth, price, who, float(bids.worth[empty].sum()), 50)
        for tried in (price, better):
            found = best_rows(rows, bids.worth, who, tried, empty, EXACT.widest)
            if not found.proven:
                found, _ = settled(rows, bids.worth, who, tried, found, 10, EXACT.work)
            assert found.proven
            assert abs(found.objective - by_highs(bids)) < CLOSE


def _utility(true: Bids, reported: Floats) -> float:
    """Return what the first bidder truly gets: the value of what it wins, for the part of the time it keeps."""
    found = partial_allocation(Bids(true.bidder, true.take, reported, true.capacity))
    return float(found.share[0] * np.exp(true.worth[found.row[0]]))


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 2**32 - 1))
def test_lying_gains_nothing_where_grants_are_divided_by_time(bids: Bids, seed: int) -> None:
    """What it gets is the product of all values over one that it has no part in; truth makes the product largest."""
    rng = np.random.default_rng(seed)
    honest, mine = _utility(bids, bids.worth), bids.bidder == 0
    for reported in (
        rng.normal(size=len(bids.worth)),
        bids.worth * 3,
        bids.worth[::-1],
        bids.worth + rng.normal(size=len(mine)),
    ):
        lie = np.where(mine, reported, bids.worth)
        assert _utility(bids, lie) <= honest * (1 + 1e-7)
