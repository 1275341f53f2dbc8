"""Themis' patience: an app that has held nothing for too long is seated before the auction, and no other is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from eunomia.allocation import problem_of
from eunomia.allocation.view_from_problem import view_of
from eunomia.model.job import Job
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.grants.themis.agents import AuctionState, ended_leases, offers, read_state
from eunomia.policies.grants.themis.assignment import Assignment
from eunomia.policies.grants.themis.themis import Themis
from eunomia.testing.sample_views import a_view
from eunomia.testing.small_worlds import SmallWorld, one_type, play

KEPT = "seats are kept for it until they are enough"
HOUR = 3600.0


def world(jobs: Sequence[tuple[str, int, float]], sits: Mapping[int, Sequence[int]], accelerators: int = 8) -> View:
    """Return a machine on which jobs (app, gang, seconds waited) wait, but those that sit on these seats."""
    n = len(jobs)
    problem = {
        "types": ["gpu"],
        "capacity": [accelerators],
        "throughput": [[1.0]] * n,
        "scale_factor": [size for _, size, _ in jobs],
        "steps_remaining": [1000.0] * n,
        "elapsed_s": [waited for *_, waited in jobs],
        "accelerators_per_node": [accelerators],
    }
    view = view_of(problem_of(problem), Themis())
    holder, on_type, names = view.holder.copy(), view.on_type.copy(), [app for app, *_ in jobs]
    for job, seats in sits.items():
        holder[list(seats)], on_type[job] = job, 0
    apps = sorted(set(names))
    first = [names.index(app) for app in apps]
    by_app = {name: getattr(view.apps, name)[first] for name in ("submitted", "mean_rivals", "service")}
    columns = {
        **view.columns,
        "holder": holder,
        "on_type": on_type,
        "waiting_time": np.where(on_type >= 0, 0.0, view.waiting_time),
        "app": np.array([apps.index(app) for app in names]),
        "apps": replace(view.apps, names=tuple(apps), **by_app),
    }
    return replace(view, columns=columns)


def seen_in(view: View) -> AuctionState:
    ended = ended_leases(view)
    return read_state(view, ended, offers(view, ended))


def test_seats_are_kept_for_an_app_that_holds_nothing_and_not_for_the_other_gangs_of_one_that_does() -> None:
    """Four of eight seats are free. a, with a gang of 4 on the others, has waited two hours for 8 more; b an hour and a
    half for 8. The four are b's; c, which could use two, has to wait."""
    jobs = [("a", 4, 0.0), ("a", 8, 2 * HOUR), ("b", 8, 1.5 * HOUR), ("c", 2, 10.0)]
    answer = Themis().decide(world(jobs, {0: range(4)}))
    assert len(answer.rows.job) == 0
    assert [m for m, reason in answer.why.items() if str(reason) == KEPT] == [2]
    assert Themis(patience_s=2 * HOUR).decide(world(jobs, {0: range(4)})).rows.job.tolist() == [3]


def test_an_app_has_held_nothing_since_it_came_unless_one_of_its_jobs_sat() -> None:
    """c holds nothing for an hour and a half, b sits, a for two hours though its newest gang came later; d's gang left
    its seats half an hour ago, so that its old ones are not overdue."""
    jobs = [("a", 8, 2 * HOUR), ("a", 8, 0.5 * HOUR), ("b", 2, 0.0), ("c", 8, 1.5 * HOUR), ("c", 8, 1.2 * HOUR)]
    jobs += [("b", 2, 3 * HOUR), ("d", 2, 4 * HOUR)]
    view = world(jobs, {2: range(2)})
    kept = view.memory["held_until"].copy()
    kept[6] = view.at - 0.5 * HOUR
    seen = seen_in(replace(view, memory={**view.memory, "held_until": kept}))
    assert seen.overdue(HOUR).tolist() == [0, 3]  # one of each: the first, of two that have done nothing
    assert seen.overdue(0.5 * HOUR).tolist() == [0, 3, 6]
    assert seen.overdue(0.0).tolist() == [0, 3, 6]  # b sits


def ran(jobs: Sequence[Job], **said: float) -> dict[str, float]:
    """Return when jobs on one accelerator first start under Themis."""
    small = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=tuple(jobs), speeds=one_type())
    return {one.job_id: at for at, one in reversed(play(Themis(**said), small, checked=True).starts)}


def test_who_has_just_lost_a_trial_is_not_seated_before_the_auction_for_what_its_others_waited() -> None:
    """Two trials of a take a lease each. When the first ends the second has waited two hours, as long as b, whose app
    never held anything."""
    trials = [Job(job_id=f"a{m}", sequence=m, total_steps=7200.0, app="a") for m in range(2)]
    other = Job(job_id="b", sequence=2, submitted=100.0, total_steps=600.0)
    at = ran([*trials, other], lease_s=7200.0)
    assert at["b"] < at["a1"]


def test_an_app_that_submits_again_and_again_is_not_made_to_wait_for_that() -> None:
    long = [Job(job_id=f"l{m}", sequence=m, total_steps=40_000.0) for m in range(3)]
    trials = [
        Job(job_id=f"a{m}", sequence=9 + m, submitted=10.0 + 3000 * m, total_steps=600.0, app="a") for m in range(9)
    ]
    at = ran([*long, *trials])
    assert min(at[f"a{m}"] for m in range(9)) <= 10.0 + 3600 + 3 * 1200


def test_a_gang_that_is_seated_before_the_auction_counts_as_held_in_it() -> None:
    """a has one of two seats before the auction; then only b's app holds nothing."""
    view = world([("a", 1, 2 * HOUR), ("a", 1, 2 * HOUR), ("b", 1, 10.0)], {}, accelerators=2)
    seen = seen_in(view)
    Assignment(seen, seen.offered.copy()).place_overdue(HOUR)
    assert seen.worst_first().tolist() == [1, 0]


def test_where_no_auction_was_held_no_bid_is_reported() -> None:
    answer = Themis().decide(world([("a", 1, 2 * HOUR), ("b", 1, 10.0)], {}, accelerators=1))
    assert answer.rows.job.tolist() == [0]
    assert {m: str(reason) for m, reason in answer.why.items()} == {
        1: "apps that had held nothing for longer were served first; nothing that it could use was left"
    }


def test_each_app_in_its_turn_has_one_gang_seated_while_seats_suffice() -> None:
    """Nine seats for gangs of 4, 2, 8 and 1 that have waited for so many hours, longest first: 5, 4, 3 and 2. The first
    two sit, three seats are kept for the third, and nothing is left for the last. Second gangs have to bid."""
    jobs = [("a", 4, 5 * HOUR), ("a", 4, 5 * HOUR), ("b", 2, 4 * HOUR), ("c", 8, 3 * HOUR), ("d", 1, 2 * HOUR)]
    view = world(jobs, {}, accelerators=9)
    seen = seen_in(view)
    seats = Assignment(seen, seen.offered.copy())
    kept_for = seats.place_overdue(HOUR)
    assert seats.given.jobs == [0, 2]
    assert np.flatnonzero(kept_for).tolist() == [3]
    assert not seats.free.any()


def test_who_is_overdue_does_not_have_to_win() -> None:
    """Everybody bids for one seat, so each forfeits nearly all that it could win."""
    jobs = [(name, 1, waited) for name, waited in zip("abcde", (10.0, 3700.0, 20.0, 3800.0, 30.0), strict=True)]
    view = world(jobs, {}, accelerators=1)
    for ask in range(10):
        assert Themis(f=0.0).decide(replace(view, seed=(0, ask))).rows.job.tolist() == [3]


@pytest.mark.parametrize("seed", range(16))
def test_no_more_is_kept_than_who_it_is_kept_for_needs(seed: int) -> None:
    view, rng = a_view(Themis(), seed), np.random.default_rng(seed)
    app = np.unique(rng.integers(0, 4, view.jobs), return_inverse=True)[1].reshape(-1)
    view = replace(view, columns={**view.columns, "app": app, "waiting_time": view.waiting_time * 1e6})
    seen = seen_in(view)
    seats = Assignment(seen, seen.offered.copy())
    kept_for = np.flatnonzero(seats.place_overdue(1.0))
    given = {seat for one in seats.given.devices for seat in one.tolist()}
    kept = seen.offered & ~seats.free
    kept[sorted(given)] = False
    assert kept.sum() < view.scale_factor[kept_for].sum() + (len(kept_for) == 0)
    holds = np.bincount(view.app, view.on_type >= 0, len(view.apps.names))
    for job in [*kept_for.tolist(), *seats.given.jobs]:
        assert holds[view.app[job]] == 0
    served = view.app[[*kept_for.tolist(), *seats.given.jobs]]
    assert len(set(served.tolist())) == len(served)


def test_a_small_search_of_wide_gangs_does_not_wait_for_a_large_one_that_came_before() -> None:
    """A search of twelve gangs of 8 came first, and one gang of 8 comes an hour later; forty narrow jobs fill the
    cluster. A narrow app that has held nothing for an hour is served in its turn, and so is the late one."""
    narrow = [Job(job_id=f"n{m:02d}", sequence=m, submitted=100.0 * m, total_steps=30_000.0) for m in range(40)]
    wide = {"scale_factor": 8, "total_steps": 6000.0}
    large = [Job(job_id=f"w{m:02d}", sequence=50 + m, submitted=50.0, app="large", **wide) for m in range(12)]
    late = Job(job_id="z", sequence=99, submitted=3600.0, app="late", **wide)
    nodes = (Node(type="gpu", accelerators=16), Node(type="gpu", accelerators=16))
    small = SmallWorld(nodes=nodes, jobs=(*narrow, *large, late), speeds=one_type())
    started = {one.job_id: at for at, one in reversed(play(Themis(), small, checked=True).starts)}
    assert started["z"] <= 3600 + 3600 + 2 * 1200
    assert sum(at < started["z"] for name, at in started.items() if name.startswith("w")) < 12
