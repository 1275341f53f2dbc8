"""Themis in small worlds: who bids, what leases do, nobody starves, equals end equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia.contract.views import a_view
from eunomia.contract.worlds import Played, Small, line_up, one_type, play
from eunomia.model.answers import Grants
from eunomia.model.decisions import Stop
from eunomia.model.topology import Node
from eunomia.policies.grants.themis.auctioning import auctioned
from eunomia.policies.grants.themis.bidding import Bid, Gang, bid_table, misjudged, misreported
from eunomia.policies.grants.themis.policy import Themis
from eunomia.policies.grants.themis.rho import RHO_MAX
from eunomia.policies.grants.themis.seen import look
from eunomia.solution import problem_of
from eunomia.solution.seen import view_of


def played(policy: Themis, jobs: tuple, *sizes: int) -> Played:
    nodes = tuple(Node(type="gpu", accelerators=size) for size in sizes)
    return play(policy, Small(nodes=nodes, jobs=jobs, speeds=one_type()), checked=True)


def rivals(policy: Themis) -> Grants:
    """Return what five jobs that waited for different times get of one accelerator."""
    problem = problem_of(
        {
            "types": ["gpu"],
            "capacity": [1],
            "throughput": [[1.0]] * 5,
            "steps_remaining": [1000.0] * 5,
            "elapsed_s": [100.0, 500.0, 300.0, 200.0, 400.0],
            "accelerators_per_node": [1],
        }
    )
    return policy.decide(view_of(problem, policy))


def test_with_f_of_1_only_the_worst_off_app_is_offered_anything() -> None:
    answer = rivals(Themis(f=1.0))
    assert answer.rows.job.tolist() == [1]  # waited longest
    assert all(text.startswith("1 app is worse off") for text in answer.why.values())


def test_with_f_of_0_everybody_bids() -> None:
    assert all("among the 5 worst-off, bid" in text for text in rivals(Themis(f=0.0)).why.values())


def test_the_worst_off_are_counted_up_to_a_whole_app() -> None:
    why = rivals(Themis(f=0.75)).why  # 1.25 of 5: the second and the last have waited longest
    told = [text for m, text in why.items() if m in (0, 2, 3)]
    assert told
    assert all(text.startswith("2 apps are worse off") for text in told)


def test_who_wins_its_own_seats_again_goes_on_without_a_restart() -> None:
    ended = played(Themis(), line_up((0, 5000, 2), (10, 5000, 2)), 4)
    assert len(ended.starts) == 2
    assert not [order for _, order in ended.decisions if isinstance(order, Stop)]


def test_two_gangs_that_need_a_machine_each_sit_on_one_each() -> None:
    starts = played(Themis(), line_up((0, 100, 4), (0, 100, 4)), 4, 4).starts
    assert sorted(tuple(sorted(start.seats)) for _, start in starts) == [(0, 1, 2, 3), (4, 5, 6, 7)]


@pytest.mark.parametrize("indivisible", ["randomized", "lease", "floor"])
def test_equal_apps_that_come_together_end_nearly_as_if_each_had_its_own_part(indivisible: str) -> None:
    jobs = line_up(*[(0, 40 * 1200, 2)] * 4)
    ended = played(Themis(indivisible=indivisible), jobs, 2, 2)  # type: ignore[arg-type]
    rho = ended.figures.jobs["rho_themis"]
    assert rho.max() < 1.1
    assert np.ptp(list(ended.finished.values())) <= 8 * 1200


def test_a_wide_gang_does_not_starve_behind_narrow_ones() -> None:
    """Leases of narrow jobs end one by one; without seats kept for it, all eight are never free at once."""
    jobs = line_up(*[(i * 100.0, 30_000.0, 1) for i in range(40)], (50.0, 5000.0, 8))
    started = {patience: _first(played(Themis(patience_s=patience), jobs, 4, 4), jobs[-1].job_id)
               for patience in (3600.0, 1e9)}  # fmt: skip
    assert started[3600.0] <= 3600 + 2 * 1200
    assert started[1e9] > 20_000


def _first(ended: Played, job: str) -> float:
    return min(at for at, start in ended.starts if start.job_id == job)


@pytest.mark.parametrize("seed", range(8))
def test_bid_tables_are_short_start_with_nothing_and_take_what_is_offered(seed: int) -> None:
    view = a_view(Themis(), seed)
    seen = look(view)
    free = np.bincount(view.topology.node[seen.offered], minlength=view.topology.nodes)
    for app in range(len(view.apps.names)):
        table = bid_table(seen, app, free, turn=app, rows=6)
        assert table[0].gangs == ()
        assert 1 <= len(table) <= 6
        for bid in table:
            taken = np.zeros_like(free)
            for gang in bid.gangs:
                taken[gang.nodes] += gang.count
                assert gang.count.sum() == view.scale_factor[gang.job]
                assert view.app[gang.job] == app
                assert view.throughput[gang.job, gang.type] > 0
            assert (taken <= free).all()
            assert 0 < bid.rho <= table[0].rho


def tables(*rhos: float) -> list[list[Bid]]:
    """Return two apps that want the same two seats of one machine, with those ρ."""
    gangs = [(Gang(job, 0, np.array([0]), np.array([2]), 10.0),) for job in range(2)]
    return [[Bid((), 4.0), Bid(gang, rho)] for gang, rho in zip(gangs, rhos, strict=True)]


def test_the_one_whom_it_helps_more_wins_and_keeps_what_the_other_lost() -> None:
    won = auctioned(tables(1.0, 2.0), np.array([2]), "lease", 0.05, np.random.default_rng(0))
    assert [gang.job for gang in won.gangs] == [0]
    assert won.part == pytest.approx([0.5])  # the other has 1/4 instead of 1/2
    shorter = auctioned(tables(1.0, 2.0), np.array([2]), "lease", 0.6, np.random.default_rng(0))
    assert shorter.gangs == []
    assert auctioned(tables(1.0, 2.0), np.array([2]), "floor", 0.05, np.random.default_rng(0)).gangs == []


def test_a_liar_may_win_but_for_less_than_its_lie_costs() -> None:
    honest, other = tables(2.0, 1.0)
    lie = misreported(honest, 8.0)
    assert [bid.rho for bid in lie] == [4.0, 0.25]
    won = auctioned([lie, other], np.array([2]), "lease", 0.01, np.random.default_rng(0))
    assert [gang.job for gang in won.gangs] == [0]
    # Truly it would have 1/2 for a quarter of the lease: less than the 1/4 that it has without winning.
    assert won.part[0] * 1 / honest[1].rho < 1 / honest[0].rho


def test_who_misjudges_bids_within_its_error_by_seed() -> None:
    table = [Bid((), RHO_MAX), *[Bid((), 2.0)] * 500]
    off = np.array([bid.rho for bid in misjudged(table, 0.2, np.random.default_rng(1))[1:]]) / 2.0
    assert 0.8 <= off.min() < 0.82
    assert 1.18 < off.max() <= 1.2


def test_an_app_of_many_jobs_bids_for_one_two_and_all_of_them() -> None:
    view = a_view(Themis(), 0)
    one = {**view.columns, "app": np.zeros(view.jobs, dtype=np.int64)}
    seen = look(replace(view, columns=one))
    table = bid_table(seen, 0, np.full(view.topology.nodes, 99), turn=0)
    assert {len(bid.gangs) for bid in table} == set(range(seen.wants.sum() + 1))


def test_leases_last_as_long_as_the_policy_says() -> None:
    assert Themis(lease_s=300.0).info.mechanism.length_s == 300.0
    assert Themis().info.mechanism.length_s == 1200.0
