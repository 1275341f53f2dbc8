"""Themis in small worlds: who bids, what leases do, no app starves, equals end equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia.allocation import problem_of
from eunomia.allocation.view_from_problem import view_of
from eunomia.model.answers import Grants
from eunomia.model.decisions import Stop
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.grants.themis.agents import RHO_MAX, AuctionState, ended_leases, no_contention, offers, read_state
from eunomia.policies.grants.themis.bidding import (
    BidTables,
    bid_tables,
    hold_auction,
    misjudged,
    misreported,
    no_gangs,
    with_gang,
)
from eunomia.policies.grants.themis.themis import Themis
from eunomia.testing.sample_views import a_view, with_running_jobs
from eunomia.testing.small_worlds import SmallWorld, WorldRun, line_up, one_type, play


def played(policy: Themis, jobs: tuple, *sizes: int) -> WorldRun:
    nodes = tuple(Node(type="gpu", accelerators=size) for size in sizes)
    return play(policy, SmallWorld(nodes=nodes, jobs=jobs, speeds=one_type()), checked=True)


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
    assert all(str(reason).startswith("1 app is worse off") for reason in answer.why.values())


def test_with_f_of_0_everybody_bids() -> None:
    assert all("among the 5 worst-off, bid" in str(reason) for reason in rivals(Themis(f=0.0)).why.values())


def test_the_worst_off_are_counted_up_to_a_whole_app() -> None:
    why = rivals(Themis(f=0.75)).why  # 1.25 of 5: the second and the last have waited longest
    reported = [str(reason) for m, reason in why.items() if m in (0, 2, 3)]
    assert reported
    assert all(text.startswith("2 apps are worse off") for text in reported)


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


@pytest.mark.slow
def test_a_wide_gang_does_not_starve_behind_narrow_ones() -> None:
    """Leases of narrow jobs end one by one; without seats kept for it, all eight are never free at once."""
    jobs = line_up(*[(i * 100.0, 30_000.0, 1) for i in range(40)], (50.0, 5000.0, 8))
    started = {patience: _first(played(Themis(patience_s=patience), jobs, 4, 4), jobs[-1].job_id)
               for patience in (3600.0, 1e9)}  # fmt: skip
    assert started[3600.0] <= 3600 + 2 * 1200
    assert started[1e9] > 20_000


def _first(ended: WorldRun, job: str) -> float:
    return min(at for at, start in ended.starts if start.job_id == job)


def seen_in(view: View) -> AuctionState:
    ended = ended_leases(view)
    return read_state(view, ended, offers(view, ended))


@pytest.mark.parametrize("apps", [3, 1000])
@pytest.mark.parametrize("seed", range(8))
def test_jobs_stand_app_by_app_by_weight_then_by_what_they_have_left(seed: int, apps: int) -> None:
    view, rng = a_view(Themis(), seed), np.random.default_rng(seed)
    app = np.sort(rng.choice(apps, view.jobs, replace=apps < view.jobs))
    weight = rng.choice([1.0, 2.0], view.jobs)
    view = replace(view, columns={**view.columns, "app": app, "weight": weight})
    job = np.flatnonzero(rng.random(view.jobs) < 0.8)
    left = {m: view.remaining[m] / view.total[m] for m in job.tolist()}
    expected = sorted(job.tolist(), key=lambda m: (app[m], -weight[m], -left[m], m))
    names = replace(view.apps, names=tuple(map(str, range(apps))))
    state = replace(seen_in(a_view(Themis(), seed)), view=replace(view, columns={**view.columns, "apps": names}))
    assert state.by_priority(job).tolist() == expected


def gangs(tables: BidTables, row: int) -> list[tuple[int, int, np.ndarray, np.ndarray]]:
    """Return job, type, units and accelerators on each of the gangs that a row seats."""
    book, begin = tables.gangs, tables.gang[row]
    found = []
    for g in range(begin, begin + tables.count[row]):
        part = slice(book.first[g], book.first[g + 1])
        found.append((int(book.job[g]), int(book.type[g]), book.unit[part], book.amount[part]))
    return found


@pytest.mark.parametrize("slot", [0, 2])
@pytest.mark.parametrize("seed", range(8))
def test_bid_tables_are_short_start_with_nothing_and_take_what_is_offered(seed: int, slot: int) -> None:
    view = a_view(Themis(), seed)
    topology = replace(view.topology, accelerators_per_slot=slot)
    view = replace(view, columns={**view.columns, "topology": topology})
    seen, apps = seen_in(view), np.arange(len(view.apps.names))
    free = seen.by_unit(seen.offered)
    tables = bid_tables(seen, apps, free, rows=6)
    for app in apps.tolist():
        rows = np.flatnonzero(tables.bidder == app).tolist()
        assert tables.count[rows[0]] == 0
        assert 1 <= len(rows) <= 6
        for row in rows:
            taken = np.zeros_like(free)
            for job, type, units, count in gangs(tables, row):
                taken[units] += count
                assert count.sum() == view.scale_factor[job]
                assert view.app[job] == app
                assert seen.wants[job]
                assert view.throughput[job, type] > 0
                assert (topology.node_type[seen.levels.node[units]] == type).all()
            assert (taken <= free).all()
            assert 0 < tables.rho[row] <= tables.rho[rows[0]]


def two(*rhos: float) -> BidTables:
    """Return two apps that want the same two seats of one machine, with those ρ."""
    book = no_gangs(2)
    for job in range(2):
        book = with_gang(book, job, 0, False, 10.0, np.array([0]), np.array([2]), 1)
    rho = np.array([4.0, rhos[0], 4.0, rhos[1]])
    return BidTables(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), rho, book)


def winners(tables: BidTables, treatment: str, least: float = 0.05) -> tuple[list[int], list[float]]:
    won = hold_auction(tables, np.array([2]), np.array([[2], [2]]), treatment, least, np.random.default_rng(0))  # type: ignore[arg-type]
    return tables.gangs.job[won.gang].tolist(), won.part.tolist()


def test_the_bidder_that_gains_more_wins_and_keeps_what_the_other_lost() -> None:
    who, part = winners(two(1.0, 2.0), "lease")
    assert who == [0]
    assert part == pytest.approx([0.5])  # the other has 1/4 instead of 1/2
    assert winners(two(1.0, 2.0), "lease", least=0.6) == ([], [])
    assert winners(two(1.0, 2.0), "floor") == ([], [])


def test_two_apps_that_hold_nothing_and_want_one_gang_keep_most_of_it_only_if_they_expect_to_start_later() -> None:
    """Each of two gangs of 2 has 1000 s to go on two accelerators, and half of them is its part: T_id 2000 s, ρ 0.5.

    The loser starts after a lease of 1200 s: ρ (1000 + 1200) / 2000 = 1.1, and the winner keeps 0.5 / 1.1 of it.
    """
    problem = {"types": ["gpu"], "capacity": [2], "throughput": [[1.0]] * 2, "steps_remaining": [1000.0] * 2,
               "scale_factor": [2, 2], "elapsed_s": [0.0] * 2, "accelerators_per_node": [2]}  # fmt: skip
    seen = seen_in(view_of(problem_of(problem), Themis()))
    assert seen.ideal.tolist() == [2000.0, 2000.0]
    free, both = seen.by_unit(seen.offered), np.arange(2)
    for starts_in_s, rho, keeps in ((1200.0, 1.1, 0.5 / 1.1), (np.inf, RHO_MAX, 0.5 / RHO_MAX)):
        tables = bid_tables(seen, both, free, starts_in_s=starts_in_s)
        assert tables.rho.tolist() == pytest.approx([rho, 0.5] * 2)
        won = hold_auction(tables, free, seen.gangs.sizes, "lease", 0.0, np.random.default_rng(0))
        assert won.part.tolist() == pytest.approx([keeps])
    assert Themis().empty == "finite"
    with pytest.raises(ValueError, match="empty is 'none'; it is one of finite, infinite"):
        Themis(empty="none")  # type: ignore[arg-type]


def test_a_liar_may_win_but_for_less_than_its_lie_costs() -> None:
    honest = two(2.0, 1.0)
    lie = misreported(honest, 0, 8.0)
    assert lie.rho.tolist() == [4.0, 0.25, 4.0, 1.0]
    assert winners(honest, "lease")[0] == [1]
    who, part = winners(lie, "lease", least=0.01)
    assert who == [0]
    # Truly it would have 1/2 for a quarter of the lease: less than the 1/4 that it has without winning.
    assert part[0] * 1 / honest.rho[1] < 1 / honest.rho[0]


def test_who_misjudges_bids_within_its_error_by_seed() -> None:
    tables = BidTables(np.zeros(501, int), np.zeros(501, int), np.ones(501, int), np.full(501, 2.0), no_gangs(1))
    off = misjudged(tables, 0.2, np.random.default_rng(1)).rho / 2.0
    assert 0.8 <= off.min() < 0.82
    assert 1.18 < off.max() <= 1.2


def as_one_app(view: View, **columns: np.ndarray) -> View:
    return replace(view, columns={**view.columns, "app": np.zeros(view.jobs, dtype=np.int64), **columns})


def test_an_app_of_many_jobs_bids_for_one_two_and_all_of_them() -> None:
    seen = seen_in(as_one_app(a_view(Themis(), 0)))
    tables = bid_tables(seen, np.array([0]), np.full(seen.view.topology.nodes, 99))
    assert set(tables.count.tolist()) == set(range(seen.wants.sum() + 1))


def test_an_app_seats_first_what_weighs_most_then_what_has_done_least() -> None:
    problem = {"types": ["gpu"], "capacity": [4], "throughput": [[1.0]] * 4, "steps_remaining": [100.0] * 4,
               "elapsed_s": [0.0] * 4, "accelerators_per_node": [4]}  # fmt: skip
    view = view_of(problem_of(problem), Themis())
    weight, total = np.array([1.0, 1.0, 1.0, 4.0]), np.array([1000.0, 200.0, 200.0, 200.0])
    seen = seen_in(as_one_app(view, weight=weight, total=total))
    tables = bid_tables(seen, np.array([0]), np.array([4]))
    order = [job for job, *_ in gangs(tables, int(np.argmax(tables.count)))]
    assert order == [3, 1, 2, 0]


def alone(size: int, sizes: tuple[int, ...], slot: int, taken: tuple[int, ...] = ()) -> tuple[list[int], float]:
    """Return where a lone gang with S = 1, 1.1, 1.29, 1.5 is seated, and the ρ that it bid for that."""
    problem = problem_of(
        {
            "types": ["gpu"],
            "capacity": [sum(sizes)],
            "throughput": [[1.0]],
            "scale_factor": [size],
            "steps_remaining": [1000.0],
            "elapsed_s": [0.0],
            "accelerators_per_node": [sizes[0]],
        }
    )
    view = view_of(problem, Themis())
    holder = view.holder.copy()
    holder[list(taken)] = -2  # lost
    topology = replace(view.topology, accelerators_per_slot=slot)
    slowdown = np.array([[1.0, 1.1, 1.29, 1.5]])
    view = replace(view, columns={**view.columns, "holder": holder, "topology": topology, "slowdown": slowdown})
    answer = Themis().decide(view)
    assert answer.certificate is not None
    return sorted(answer.device.tolist()), float(np.exp(-answer.certificate.objective))


def test_a_gang_prefers_one_slot_and_knows_what_two_cost() -> None:
    assert alone(2, (4,), 2) == ([0, 1], pytest.approx(1.0))
    assert alone(2, (4,), 2, taken=(0,)) == ([2, 3], pytest.approx(1.0))
    assert alone(2, (4,), 2, taken=(0, 2)) == ([1, 3], pytest.approx(1.1))  # one machine, two slots
    assert alone(2, (4,), 0, taken=(0, 2)) == ([1, 3], pytest.approx(1.0))  # a machine is one slot
    assert alone(4, (4, 4), 2, taken=(0, 4)) == ([1, 2, 3, 5], pytest.approx(1.29))  # two machines of a rack


def test_what_comes_free_within_a_second_is_offered_together() -> None:
    """Two gangs end half a second apart; the third, which waits, needs both their seats at once or one of them."""
    jobs = line_up((0, 100.0, 2), (0, 100.5, 2), (1, 50.0, 2), (1, 50.0, 2))
    starts = {one.job_id: at for at, one in played(Themis(), jobs, 4).starts}
    late = sorted(starts.values())[2:]
    assert late == pytest.approx([100.0, 101.0])  # not 100.5
    apart = {one.job_id: at for at, one in played(Themis(batch_s=0.0), jobs, 4).starts}
    assert sorted(apart.values())[2:] == pytest.approx([100.0, 100.5])


def test_leases_that_end_just_after_an_auction_go_on_until_the_next() -> None:
    """The second comes half a second later, so its lease ends just after the auction over the first one's seats."""
    ended = played(Themis(), line_up((0, 5000, 2), (0.5, 5000, 2)), 4)
    assert len(ended.starts) == 2
    assert not [order for _, order in ended.decisions if isinstance(order, Stop)]


def reported(answer: Grants) -> dict[int, tuple[int, list[int], str]]:
    """Return type, seats and the end of what each job is granted."""
    rows = enumerate(zip(answer.rows.job.tolist(), answer.rows.type.tolist(), strict=True))
    return {m: (j, sorted(answer.device[answer.row == row].tolist()), str(answer.until[row])) for row, (m, j) in rows}


@pytest.mark.parametrize(
    ("indivisible", "seeds"),
    [
        ("lease", range(80, 120)),
        pytest.param("lease", range(120), marks=pytest.mark.slow),
        pytest.param("randomized", range(120), marks=pytest.mark.slow),
        pytest.param("floor", range(120), marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
def test_where_no_job_waits_and_all_sit_best_an_auction_could_say_nothing_else(indivisible: str, seeds: range) -> None:
    """The answer is given without one; where a job waits, or could have a better placement, there has to be one."""
    quick = moved = 0
    for seed in seeds:
        policy = Themis(f=(0.0, 0.5, 0.8)[seed % 3], indivisible=indivisible)  # type: ignore[arg-type]
        view = with_running_jobs(a_view(policy, seed), seed)
        rng = np.random.default_rng(seed)
        apart = np.cumsum(np.concatenate((np.ones((view.jobs, 1)), rng.choice([0.0, 0.2], (view.jobs, 3))), 1), axis=1)
        speed = view.throughput * (1 if seed % 2 else rng.choice([1.0, 2.0], view.throughput.shape[1]))
        app = np.zeros(view.jobs, dtype=np.int64) if seed % 5 == 0 else view.app
        view = replace(view, columns={**view.columns, "slowdown": apart, "throughput": speed, "app": app})
        ended = ended_leases(view)
        offered = offers(view, ended)
        if not offered.any() or not ended.any():
            continue
        held = policy.hold_auction(view, ended, offered)
        kept = {
            m: (int(view.on_type[m]), np.flatnonzero(view.holder == m).tolist(), "nan") for m in np.flatnonzero(ended)
        }
        if no_contention(view, ended):
            answer, quick = policy.decide(view), quick + 1
            assert reported(answer) == reported(held) == kept
            assert dict(answer.why) == dict(held.why) == {}
            assert not len(answer.stop) + len(held.stop)
            assert all(np.array_equal(answer.memory[name], values) for name, values in held.memory.items())
        else:
            moved += reported(held) != kept
    assert quick > len(seeds) / 10
    assert moved > 0


def test_a_gang_that_could_sit_closer_is_moved_when_its_lease_ends() -> None:
    problem = {"types": ["gpu"], "capacity": [4], "throughput": [[1.0]], "scale_factor": [2],
               "steps_remaining": [1000.0], "elapsed_s": [0.0], "accelerators_per_node": [4]}  # fmt: skip
    view = view_of(problem_of(problem), Themis())
    sits = {
        "holder": np.array([0, -1, 0, -1]),  # one accelerator of each slot
        "on_type": np.array([0]),
        "lease_end": np.array([view.at]),
        "topology": replace(view.topology, accelerators_per_slot=2),
    }
    for across, seats in ((1.1, ([0, 1], [2, 3])), (1.0, ([0, 2],))):
        slowdown = np.array([[1.0, across, 1.3, 1.5]])
        answer = Themis().decide(replace(view, columns={**view.columns, **sits, "slowdown": slowdown}))
        assert sorted(answer.device.tolist()) in seats


def test_where_a_job_waits_or_bids_are_wrong_an_auction_is_held() -> None:
    waiting = 0
    for seed in range(12):
        view, policy = a_view(Themis(), seed), Themis(bid_error=0.2)
        waiting += bool((view.on_type < 0).any())
        assert not ((view.on_type < 0).any() and no_contention(view, ended_leases(view)))
        sitting = with_running_jobs(view, seed)
        if ended_leases(sitting).any():
            assert policy.decide(sitting).certificate is not None
    assert waiting > 0


@pytest.mark.parametrize("lease_s", [0.0, -1.0, 1e-9, 1e12, float("inf"), float("nan")])
def test_a_lease_outside_the_range_is_refused_by_name(lease_s: float) -> None:
    with pytest.raises(ValueError, match=r"lease_s is .* from 10 s to 31536000 s"):
        Themis(lease_s=lease_s)


def test_batches_are_shorter_than_leases() -> None:
    with pytest.raises(ValueError, match="batch_s is 20"):
        Themis(lease_s=20.0, batch_s=20.0)


def test_why_jobs_wait_is_reported_like_a_mapping() -> None:
    answer = rivals(Themis())
    reported = dict(answer.why)
    assert set(reported) == set(answer.why) == {0, 2, 3, 4}
    assert len(answer.why) == 4
    assert 1 not in answer.why  # it sits
    assert 9 not in answer.why


def test_who_is_never_granted_gets_worse_until_it_is_the_worst() -> None:
    """One seat and eleven jobs: while only the worst-off bids, each has had a lease before anybody has two."""
    jobs = line_up(*[(0.0, 6000.0, 1)] * 10, (0.0, 600.0, 1))
    ended = played(Themis(f=1.0), jobs, 1)
    first = {one.job_id: at for at, one in reversed(ended.starts)}
    assert len(first) == 11
    assert max(first.values()) <= 600 + 9 * 1200 + 1
    problem = {"types": ["gpu"], "capacity": [1], "throughput": [[1.0]] * 2, "steps_remaining": [1000.0] * 2,
               "accelerators_per_node": [1]}  # fmt: skip
    rho = []
    for waited in (0.0, 100.0, 200.0, 400.0):
        view = view_of(problem_of({**problem, "elapsed_s": [waited, 50.0]}), Themis())
        rho.append(float(seen_in(view).rho()[1][0]))
    assert (np.diff(rho) > 0).all()


def test_leases_last_as_long_as_the_policy_says() -> None:
    assert Themis(lease_s=300.0).info.mechanism.length_s == 300.0
    assert Themis().info.mechanism.length_s == 1200.0


def test_a_lie_that_no_app_tells_is_refused() -> None:
    with pytest.raises(ValueError, match="and no app tells it; name the app as liar"):
        Themis(lie=3.0)


@pytest.mark.parametrize("factor", [3.0, 30.0])
def test_who_says_that_seats_help_it_more_than_they_do_finishes_no_sooner(factor: float) -> None:
    """Four apps of unlike lengths with two gangs' worth of seats; everybody bids, so that a lie can win something.

    That is so where holding nothing is worth nothing. With empty=finite payments are small, and lies do pay.
    """
    jobs = line_up(*[(100.0 * i, (5 + 5 * i) * 1200.0, 2) for i in range(4)])
    ends = {}
    for reported in (1.0, factor):
        policy = Themis(f=0.0, indivisible="lease", empty="infinite")
        liars = {name: replace(policy, liar=name, lie=reported) for name in "abcd"}
        ends[reported] = [played(liar, jobs, 2, 2).finished[name] for name, liar in liars.items()]
    assert np.mean(ends[factor]) >= np.mean(ends[1.0])
