"""Philly's scheduler: who borrows, who holds, who waits for what. Seconds are steps; times are worked out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from eunomia import simulate
from eunomia.backends.simulated import FaultModel
from eunomia.metrics.waits import WaitCauses
from eunomia.model.answers import Grants
from eunomia.model.decisions import Refuse, Renew, Stop
from eunomia.model.job import Job
from eunomia.model.policy import LeaseTerms, PolicyInfo
from eunomia.model.promises import Promises
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.grants.philly import Philly
from eunomia.policies.grants.philly.free_devices import ANYWHERE, TOGETHER, FreeDevices
from eunomia.policies.grants.philly.philly import FAIR_SHARE, FRAGMENTATION, SCATTERED
from eunomia.policies.grants.philly.queue_pass import QueuePass, VirtualClusters
from eunomia.records.replay import first_difference
from eunomia.testing.small_worlds import SmallWorld, WorldRun, draw, line_up, one_type, play

SEEDS = range(6)


def world(nodes: list[tuple[int, str]], jobs: tuple[Job, ...]) -> SmallWorld:
    return SmallWorld(
        nodes=tuple(Node(type="gpu", accelerators=size, rack=rack) for size, rack in nodes),
        jobs=jobs,
        speeds=one_type(),
    )


def owned(*jobs: tuple[float, float, int, str]) -> tuple[Job, ...]:
    """Jobs a, b, c … from (submitted, seconds, accelerators, virtual cluster)."""
    return tuple(
        Job(job_id=chr(97 + i), sequence=i, submitted=at, total_steps=steps, scale_factor=size, tenant=tenant)
        for i, (at, steps, size, tenant) in enumerate(jobs)
    )


def starts(played: WorldRun) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for at, order in played.starts:
        found.setdefault(order.job_id, []).append(at)
    return found


def nodes_of(played: WorldRun, job: str, topology: Any) -> list[int]:
    seats = [order.seats for _, order in played.starts if order.job_id == job]
    return sorted(set(topology.node[list(seats[-1])].tolist()))


class _Reasons:
    """Philly, and each reason that it gave for the wait of job c."""

    info: ClassVar[PolicyInfo] = Philly.info

    def __init__(self) -> None:
        self.inner, self.given = Philly(), set[str]()

    def decide(self, view: View) -> Grants:
        answer = self.inner.decide(view)
        self.given |= {reason for job, reason in answer.why.items() if job == view.jobs - 1}
        return answer


@pytest.mark.parametrize(
    ("wanted", "borrows", "reason"), [(4, True, SCATTERED), (4, False, FAIR_SHARE), (5, True, FAIR_SHARE)]
)
def test_a_wait_over_the_quota_says_whether_enough_accelerators_are_idle(
    wanted: int, borrows: bool, reason: str
) -> None:
    # x owns 8 of 12 and holds 8; 2 are idle on each machine, where c wants as many together
    jobs = owned((0, 100, 4, "x"), (0, 100, 4, "x"), (1, 10, wanted, "x"))
    there, policy = world([(6, "r0"), (6, "r0")], jobs), _Reasons()
    play(policy, there, tenants={"x": Tenant(quota=8, borrows=borrows), "y": Tenant(quota=4)})
    assert policy.given == {reason}


def test_a_gang_within_its_quota_starts_at_once_on_one_machine_of_an_idle_cluster() -> None:
    there = world([(8, "r0"), (8, "r0"), (8, "r1")], line_up((5, 10, 8)))
    played = play(Philly(), there)
    assert starts(played) == {"a": [5.0]}
    assert len(nodes_of(played, "a", there.topology)) == 1


@pytest.mark.parametrize(("size", "node"), [(2, 3), (4, 3), (8, 3), (1, 1)])
def test_a_gang_lands_in_the_rack_of_which_less_is_allocated(size: int, node: int) -> None:
    # of 20 accelerators each, 12 are taken in r0 and 4 in r1; a single one takes the smallest hole of all
    there = ((12, "r0"), (8, "r0"), (4, "r1"), (16, "r1"))
    topology = Topology.of([Node(type="gpu", accelerators=each, rack=rack) for each, rack in there])
    free = np.isin(topology.node, [1, 3])
    found = FreeDevices(topology, free, np.ones(40, dtype=bool)).find(0, size, TOGETHER)
    assert found is not None
    assert set(topology.node[found].tolist()) == {node}


@pytest.mark.parametrize(("level", "nodes"), [(0, None), (1, {2, 3}), (2, {2, 3})])
def test_a_level_allows_more_machines_and_then_more_racks(level: int, nodes: set[int] | None) -> None:
    topology = Topology.of([Node(type="gpu", accelerators=8, rack=rack) for rack in ("r0", "r0", "r1", "r1")])
    free = np.zeros(32, dtype=bool)
    free[[0, 8, 9, 16, 17, 18, 24, 25, 26]] = True  # 1, 2, 3 and 3
    room = FreeDevices(topology, free, np.ones(32, dtype=bool))
    found = room.find(0, 6, level)
    assert (found if found is None else set(topology.node[found].tolist())) == nodes
    wider = room.find(0, 8, level)
    assert (wider is None) == (level < ANYWHERE)


def test_a_gang_holds_seats_then_lets_go_of_them_and_pauses() -> None:
    # 3 of 4 are taken on each machine. c holds the last seat beside a until tick(10 + 150) = 180, so e, which comes
    # when d has the other, waits till then. c pauses until tick(180 + 120) = 300, though a leaves at 250.
    jobs = owned((0, 250, 3, "x"), (0, 5000, 3, "x"), (10, 50, 2, "x"), (20, 5000, 1, "x"), (30, 5000, 1, "x"))
    played = play(Philly(), world([(4, "r0"), (4, "r0")], jobs), tenants={"x": Tenant(quota=99)})
    assert starts(played) == {"a": [0.0], "b": [0.0], "d": [20.0], "e": [180.0], "c": [300.0]}


def test_without_room_at_its_level_a_gang_waits_and_after_three_tries_takes_two_machines_of_its_rack() -> None:
    # 3 and 1 of 6 are free. Tries end at 180, 450, 720; after the third pause, at 840, c is one level further.
    there = world([(6, "r0"), (6, "r0")], line_up((0, 5000, 3), (0, 2000, 5), (1, 10, 4)))
    played = play(Philly(), there)
    assert starts(played)["c"] == [840.0]
    assert len(nodes_of(played, "c", there.topology)) == 2
    assert starts(play(Philly(relax_after=0), there))["c"][0] >= 2000.0


def test_a_gang_that_no_rack_could_hold_starts_across_racks_even_where_locality_is_never_given_up() -> None:
    there = world([(4, "r0"), (4, "r1")], line_up((0, 100, 8)))
    for relax_after in (0, 3):
        assert starts(play(Philly(relax_after=relax_after), there)) == {"a": [0.0]}


def test_a_virtual_cluster_borrows_what_is_idle_and_gives_it_back_when_the_cluster_is_full() -> None:
    quotas = {"x": Tenant(quota=4), "y": Tenant(quota=4)}
    there = world([(4, "r0"), (4, "r0")], owned((0, 900, 4, "x"), (10, 900, 4, "x"), (20, 100, 4, "y")))
    played = play(Philly(), there, tenants=quotas)
    assert starts(played) == {"a": [0.0], "b": [10.0, 120.0], "c": [20.0]}  # b, the younger, stops for c
    assert starts(play(Philly(preempt_above=2.0), there, tenants=quotas))["c"] == [900.0]


def test_a_virtual_cluster_is_not_stopped_below_its_quota() -> None:
    # x uses 6 of its 4. c needs 6 of 8: b would go, but that is not enough, and a is within the quota of x
    quotas = {"x": Tenant(quota=4), "y": Tenant(quota=6)}
    jobs = owned((0, 900, 4, "x"), (10, 2000, 2, "x"), (20, 100, 6, "y"))
    played = play(Philly(preempt_above=0.5), world([(8, "r0")], jobs), tenants=quotas)
    assert starts(played)["a"] == [0.0]
    assert starts(played)["c"][0] >= 900.0


def test_who_may_not_borrow_waits_beside_idle_accelerators_and_is_refused_what_it_could_never_have() -> None:
    quotas = {"x": Tenant(quota=4, borrows=False), "y": Tenant(quota=4)}
    there = world([(8, "r0")], owned((0, 100, 4, "x"), (0, 100, 1, "x"), (0, 100, 5, "x")))
    played = play(Philly(), there, tenants=quotas)
    assert starts(played) == {"a": [0.0], "b": [100.0]}
    assert [order.job_id for _, order in played.decisions if isinstance(order, Refuse)] == ["c"]


def test_a_small_gang_moves_where_that_makes_a_whole_machine() -> None:
    # a and b share a machine, c sits on the other; b leaves, so 2 of 4 are free on each, and d wants 4
    there = world([(4, "r0"), (4, "r0")], line_up((0, 2000, 2), (0, 100, 2), (0, 2000, 2), (200, 10, 4)))
    assert starts(play(Philly(relax_after=0), there))["d"][0] >= 2000.0
    played = play(Philly(relax_after=0, defragment=1), there)
    assert starts(played)["d"] == [200.0]
    assert sum(len(at) - 1 for at in starts(played).values()) == 1


@pytest.mark.parametrize("seed", range(12))
def test_asked_only_while_a_job_waits_it_seats_the_same_gangs_at_the_same_times(seed: int) -> None:
    there, terms = draw(seed, jobs=25), {"defragment": 1, "isolate": bool(seed % 2)}
    often = Philly(**terms)
    object.__setattr__(often, "info", replace(often.info, promises=Promises()))
    asked = [play(policy, there, faults=FaultModel(job_failures_per_hour=2.0)) for policy in (Philly(**terms), often)]
    assert asked[0].finished == asked[1].finished
    assert asked[0].starts == asked[1].starts
    assert asked[0].asks <= asked[1].asks


def test_no_job_asks_when_a_gang_leaves_and_no_job_waits() -> None:
    """Two gangs come, one after the other, and sit at once; of their ends nothing follows."""
    assert play(Philly(), world([(8, "r0")], line_up((0, 10, 4), (5, 10, 4)))).asks == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_leases_that_end_are_renewed_so_that_nothing_changes(seed: int) -> None:
    there = draw(seed, jobs=25)
    endless, ending = (play(Philly(), there, terms=LeaseTerms(length_s=long)) for long in (math.inf, 90.0))
    assert any(isinstance(order, Renew) for _, order in ending.decisions)
    assert starts(ending) == starts(endless)
    assert ending.finished == pytest.approx(endless.finished)


@dataclass
class _Watched:
    """Philly, with an eye on every answer."""

    inner: Philly
    stops: int = 0
    marked: int = 0
    info: ClassVar[PolicyInfo] = Philly.info

    def decide(self, view: View) -> Grants:
        answer = self.inner.decide(view)
        marks, tickets = answer.memory["marks"], answer.memory["ticket"]
        left = np.isin(view.holder, answer.stop) | (view.holder == -1)
        left[answer.device] = False
        assert left[marks >= 0].all()  # what is held is free, and held and used together fit
        waits = np.setdiff1d(np.union1d(np.flatnonzero(view.on_type < 0), answer.stop), answer.rows.job)
        for ticket in np.unique(marks[marks >= 0]):
            (job,) = np.flatnonzero(tickets == ticket)
            assert job in waits
            assert (marks == ticket).sum() < view.scale_factor[job]
        assert set(answer.why) | set(answer.refuse) == set(waits.tolist())
        assert set(answer.why.values()) <= {FAIR_SHARE, FRAGMENTATION, SCATTERED}
        self._look_at_stops(view, answer)
        self.marked += int((marks >= 0).sum())
        return answer

    def _look_at_stops(self, view: View, answer: Grants) -> None:
        busy, up = (view.holder >= 0).sum() + len(answer.device), (view.holder != -2).sum()
        quota = view.tenants.quota(float(view.capacity.sum()))
        top = [view.tenants.names.index(view.tenants.names[t].split("/")[0]) for t in view.tenant.tolist()]
        used = np.bincount(np.array(top)[view.holder[view.holder >= 0]], minlength=len(quota))
        self.stops += len(answer.stop)
        assert not len(answer.stop) or busy >= 0.9 * up
        for m in answer.stop.tolist():
            assert (
                used[top[m]] + sum(view.scale_factor[n] for n in answer.rows.job.tolist() if top[n] == top[m])
                > quota[top[m]]
            )


def _watched(seed: int, **parameters: Any) -> tuple[_Watched, WorldRun, WaitCauses]:
    policy, waits = _Watched(Philly(**parameters)), WaitCauses()
    small = draw(seed, jobs=25, types=1)
    played = play(policy, small, seed=seed, tenants={"lab": Tenant(quota=2), "shop": Tenant(quota=2)})
    for moment, decisions in played.story:
        waits.observe(moment, decisions)
    return policy, played, waits


@pytest.mark.parametrize("seed", SEEDS)
def test_only_free_seats_are_held_and_only_virtual_clusters_over_their_quota_lose_jobs(seed: int) -> None:
    _watched(seed)


def test_the_worlds_of_these_tests_have_seats_held_and_jobs_stopped() -> None:
    found = [_watched(seed)[0] for seed in SEEDS]
    assert sum(one.marked for one in found) > 0
    assert sum(one.stops for one in found) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_every_second_of_waiting_is_one_of_fair_share_or_fragmentation(seed: int) -> None:
    _, played, waits = _watched(seed)
    jobs = played.figures.jobs
    held = sum(jobs[name] for name in jobs if name.startswith("received_"))
    waited = jobs["finished_s"] - jobs["submitted_s"] - held
    split = waits.seconds(float(np.max(jobs["finished_s"])))
    assert (jobs["status"] == "finished").all()
    np.testing.assert_allclose(split.sum(axis=1), waited, atol=1e-6)
    assert (split[:, 2] == 0).all()


def test_who_waits_over_its_quota_waits_for_fair_share_and_others_for_fragmentation() -> None:
    quotas = {"x": Tenant(quota=4), "y": Tenant(quota=4)}
    jobs = owned((0, 900, 4, "x"), (0, 300, 3, "y"), (10, 10, 2, "x"), (10, 10, 2, "y"), (10, 5, 1, "y"))
    played = play(Philly(hold_s=30, backoff_s=30), world([(4, "r0"), (4, "r0")], jobs), tenants=quotas)
    waits = WaitCauses()
    for moment, decisions in played.story:
        waits.observe(moment, decisions)
    fair_share, fragmentation, other = waits.seconds(900.0).T
    assert fair_share[2] > 0 == fragmentation[2]
    assert fair_share[3] > 0
    assert (other == 0).all()
    assert not [order for _, order in played.decisions if isinstance(order, Stop)]


def test_a_run_is_recorded_and_its_waits_are_columns_of_jobs_csv(tmp_path: Path) -> None:
    said = {
        "cluster": {"accelerators": {"gpu": 8}, "accelerators_per_node": 4},
        "workload": {"generator": "poisson", "jobs": 12, "rate_per_hour": 20, "scale_factor": 3},
        "throughputs": {"source": "uniform"},
        "policy": {"name": "philly"},
    }
    result = simulate(said, record_to=tmp_path / "record.jsonl.gz")
    assert result.record is not None
    assert first_difference(result.record) is None
    jobs = result.jobs
    waited = jobs["finished_s"] - jobs["submitted_s"] - jobs["received_gpu_s"]
    split = sum(jobs[f"wait_{cause}_s"] for cause in ("fair_share", "fragmentation", "other"))
    assert waited.max() > 0
    np.testing.assert_allclose(split, waited, atol=1e-6)
    assert result.summary["wait_fragmentation_s"] == pytest.approx(jobs["wait_fragmentation_s"].sum())


def _crowd(rng: np.random.Generator) -> View:
    """Sixty jobs that wait for what is left of ten machines of 8 in three racks."""
    topology = Topology.of([Node(type="gpu", accelerators=8, rack=f"r{m % 3}") for m in range(10)])
    size = rng.choice([1, 2, 4, 6, 8, 12], 60)
    columns = {
        "topology": topology,
        "holder": np.where(rng.random(80) < 0.4, -1, -2),
        "scale_factor": size,
        "throughput": np.where(rng.random((60, 1)) < 0.1, 0.0, 1.0),
        "capacity": np.array([80.0]),
        "tenant": np.zeros(60, dtype=np.int64),
        "tenants": Tenants.of([""]),
    }
    return View(at=0.0, types=("gpu",), jobs=60, columns=columns)


@pytest.mark.parametrize("seed", range(40))
def test_passing_by_who_is_like_one_without_a_place_seats_the_same_gangs_as_asking_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    view, jobs, levels = _crowd(rng), np.arange(60), rng.integers(0, 3, 60)
    tickets, marks = np.full(60, -1.0), np.full(80, -1.0)
    for job in rng.permutation(60)[:4].tolist():
        tickets[job] = job
        free = np.flatnonzero((view.holder == -1) & (marks < 0))
        marks[rng.permutation(free)[: view.scale_factor[job] - 1]] = job
    one, other = (
        QueuePass(
            view,
            VirtualClusters.seen(view),
            FreeDevices(view.topology, (view.holder == -1) & (marks < 0), np.ones(80, dtype=bool)),
            marks.copy(),
            moves=0,
        )
        for _ in range(2)
    )
    one.place_all(jobs, levels, tickets)
    for job, level, ticket in zip(jobs.tolist(), levels.tolist(), tickets.tolist(), strict=True):
        other.place(job, level, ticket)
    assert {m: (type, seats.tolist()) for m, (type, seats) in one.placed.items()} == {
        m: (type, seats.tolist()) for m, (type, seats) in other.placed.items()
    }
