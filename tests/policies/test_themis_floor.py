"""Themis where what a winner keeps is rounded down to whole gangs: nothing is drawn, narrow auctions give nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia.allocation import problem_of
from eunomia.allocation.view_from_problem import view_of
from eunomia.model.view import View
from eunomia.policies.grants.themis.agents import ended_leases, offers, read_state
from eunomia.policies.grants.themis.bidding import BidTables, WonGangs, bid_tables, hold_auction
from eunomia.policies.grants.themis.themis import Themis
from eunomia.testing.sample_views import a_view


def waiting(*elapsed_s: float, accelerators: int = 1) -> View:
    """Return apps of one job each that waited so long for one accelerator of those."""
    jobs = len(elapsed_s)
    problem = {
        "types": ["gpu"],
        "capacity": [accelerators],
        "throughput": [[1.0]] * jobs,
        "steps_remaining": [1000.0] * jobs,
        "elapsed_s": list(elapsed_s),
        "accelerators_per_node": [accelerators],
    }
    return view_of(problem_of(problem), Themis())


def auction(view: View, bidders: int | None = None) -> tuple[BidTables, WonGangs]:
    """Return what the first so many of the worst-off bid, all who want seats if left out, and what they win."""
    ended = ended_leases(view)
    seen = read_state(view, ended, offers(view, ended))
    free = seen.by_unit(seen.offered)
    tables = bid_tables(seen, seen.worst_first()[:bidders], free)
    return tables, hold_auction(tables, free, seen.gangs.sizes, "floor", 0.05, np.random.default_rng(0))


@pytest.mark.parametrize("apps", [2, 3, 5])
def test_an_auction_of_one_accelerator_gives_nothing_to_two_or_more(apps: int) -> None:
    """Each would have it all without the others, so each keeps less than all of one, rounded down: none. The seat is
    left over, everybody bid, and so it is drawn who has it."""
    view = waiting(*[100.0 * m for m in range(apps)])
    tables, won = auction(view)
    assert tables.count.max() == 1
    assert won.partial is not None
    assert won.partial.share.min() < 1
    assert len(won.gang) == 0
    policy = Themis(f=0.0, indivisible="floor")
    answers = [policy.decide(replace(view, seed=(0, ask))) for ask in range(60)]
    assert {answer.rows.job.tolist()[0] for answer in answers} == set(range(apps))
    assert all(np.isnan(answer.until).all() for answer in answers)  # for a whole lease


def test_a_lone_bidder_keeps_what_it_wins() -> None:
    tables, won = auction(waiting(0.0, 100.0, 200.0), bidders=1)
    assert tables.gangs.job[won.gang].tolist() == [2]
    answer = Themis(f=1.0, indivisible="floor").decide(waiting(0.0, 100.0, 200.0))
    assert answer.rows.job.tolist() == [2]


def test_what_bidders_forfeit_goes_to_apps_that_did_not_bid() -> None:
    """Two of six bid: both keep none of the seat, and it is drawn who of the other four has it."""
    view, policy = waiting(*[100.0 * m for m in range(6)]), Themis(f=0.7, indivisible="floor")
    drawn = {policy.decide(replace(view, seed=(0, ask))).rows.job.tolist()[0] for ask in range(60)}
    assert drawn == {0, 1, 2, 3}


def test_where_there_is_enough_for_all_no_job_forfeits_anything() -> None:
    view = waiting(0.0, 100.0, 200.0, accelerators=3)
    tables, won = auction(view)
    assert sorted(tables.gangs.job[won.gang].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_each_keeps_the_whole_gangs_in_its_part_of_what_it_won_and_the_first_of_them(seed: int) -> None:
    view = a_view(Themis(), seed)
    apps = np.random.default_rng(seed).integers(0, 3, view.jobs)  # searches of many gangs
    view = replace(view, columns={**view.columns, "app": np.unique(apps, return_inverse=True)[1].reshape(-1)})
    tables, won = auction(view)
    if won.partial is None:
        return
    found, kept = won.partial, set(won.gang.tolist())
    for bidder, row in enumerate(found.row.tolist()):
        n, first = int(tables.count[row]), int(tables.gang[row])
        keeps = int(np.floor(found.share[bidder] * n + 1e-9))
        assert {g for g in range(first, first + n) if g in kept} == set(range(first, first + keeps))
    assert (won.part == 1).all()


def test_what_two_searches_win_of_three_seats_is_rounded_down_to_none() -> None:
    """Two searches of three jobs each and three seats: one wins a seat and keeps 2/3 of it, the other wins two and
    keeps 1/3 of them, 2/3 of a seat too. Rounded down that is none."""
    view = waiting(*[0.0] * 6, accelerators=3)
    view = replace(view, columns={**view.columns, "app": np.array([0, 0, 0, 1, 1, 1])})
    tables, won = auction(view)
    assert won.partial is not None
    assert (won.partial.share * tables.count[won.partial.row]).tolist() == pytest.approx([2 / 3, 2 / 3])
    assert not len(won.gang)
