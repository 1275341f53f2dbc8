"""ASTRAEA in small worlds: what it promises tenants, jobs and gangs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eunomia.model.decisions import Refuse, Renew, Start, Stop
from eunomia.model.events import JobFinished
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms
from eunomia.model.promises import Promises
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node
from eunomia.policies.grants.astraea.astraea import Astraea
from eunomia.policies.grants.astraea.selection import SELECTIONS
from eunomia.testing.small_worlds import SmallWorld, WorldRun, draw, line_up, one_type, play

L, HOUR = 900.0, 3600.0
Weights = Mapping[str, float]


def world(jobs: tuple[Job, ...], *nodes: int) -> SmallWorld:
    return SmallWorld(nodes=tuple(Node(type="gpu", accelerators=size) for size in nodes), jobs=jobs, speeds=one_type())


def many(count: int, seconds: float, owner: str, size: int = 1) -> tuple[Job, ...]:
    """Return jobs of one tenant that all come at the start."""
    return tuple(
        Job(job_id=f"{owner}-{n}", sequence=n, total_steps=seconds, scale_factor=size, tenant=owner)
        for n in range(count)
    )


def played(
    small: SmallWorld, weights: Weights | None = None, costs: Overheads | None = None, **parameters: Any
) -> WorldRun:
    tenants = {name: Tenant(weight=weight) for name, weight in (weights or {}).items()}
    return play(Astraea(**parameters), small, tenants=tenants, overheads=costs)


def starts_of(run: WorldRun, job: str) -> list[float]:
    return [at for at, order in run.starts if order.job_id == job]


def held(run: WorldRun, until: float) -> dict[str, float]:
    """Return accelerator-seconds by tenant until then."""
    job_of = {job.job_id: job for job in run.scheduler.state.submitted}
    sums: dict[str, float] = dict.fromkeys({job.tenant for job in job_of.values()}, 0.0)
    began: dict[str, float] = {}
    for moment, orders in run.story:
        left = [event.job_id for event in moment.events if isinstance(event, JobFinished)]
        left += [name for order in orders if isinstance(order, Stop) for name in order.job_ids]
        for name in left:
            seconds = max(min(moment.at, until) - began.pop(name), 0.0)
            sums[job_of[name].tenant] += seconds * job_of[name].scale_factor
        began |= {order.job_id: moment.at for order in orders if isinstance(order, Start)}
    return sums


def test_two_gangs_of_the_whole_cluster_take_turns_by_leases() -> None:
    run = played(world(line_up((0, 4 * L, 8), (0, 4 * L, 8)), 8), delay_s=0.0)
    assert starts_of(run, "a") == [0, 2 * L, 4 * L, 6 * L]
    assert starts_of(run, "b") == [L, 3 * L, 5 * L, 7 * L]


def test_a_lease_that_is_renewed_costs_nothing_and_moves_no_job() -> None:
    # b sits on the machine of two; from 100 s on the machine of one would be the better place for it.
    jobs = line_up((0, 100), (0, 5.5 * L))
    run = played(world(jobs, 1, 2), costs=Overheads(checkpoint_s=5, restore_s=20))
    assert starts_of(run, "b") == [0]
    assert run.finished == {"a": 100, "b": 5.5 * L}
    assert [at for at, order in run.decisions if isinstance(order, Renew)] == [0]


def asked_at_every_end(policy: Astraea) -> Astraea:
    """Return the policy without its promise, so that the core asks it about each lease that ends."""
    object.__setattr__(policy, "info", replace(policy.info, promises=Promises()))
    return policy


@pytest.mark.parametrize("delay_s", [0.0, 300.0])
@pytest.mark.parametrize("seed", range(5))
def test_leases_that_run_on_while_no_job_waits_end_where_they_would_have_ended(seed: int, delay_s: float) -> None:
    # Long jobs on few machines, with quiet hours between the crowds; whole seconds, so that no sum is rounded.
    rng = np.random.default_rng(seed)
    come = np.sort(rng.integers(0, 20, 30)) * 3600 + rng.integers(0, 700, 30)
    jobs = tuple(
        Job(
            job_id=f"job-{n}",
            sequence=n,
            submitted=float(at),
            total_steps=float(rng.integers(60, 22000)),
            scale_factor=int(rng.choice([1, 1, 2, 4])),
            tenant=str(rng.choice(["ann", "bo", "cy"])),
        )
        for n, at in enumerate(come.tolist())
    )
    small, costs = world(jobs, 4, 4), Overheads(checkpoint_s=5, restore_s=20)
    tenants = {"ann": Tenant(weight=2.0), "bo": Tenant(weight=1.0), "cy": Tenant(weight=1.0)}
    policy = Astraea(delay_s=delay_s, starvation_s=4000.0)
    seldom = play(policy, small, tenants=tenants, overheads=costs)
    often = play(asked_at_every_end(policy), small, tenants=tenants, overheads=costs)
    assert any(isinstance(order, Stop) for _, order in often.decisions), "no job was moved: the test shows nothing"
    assert seldom.finished == often.finished
    assert seldom.starts == often.starts
    assert len(seldom.story) < len(often.story)


def test_a_job_that_comes_back_pays_its_checkpoint_and_its_restore() -> None:
    # Each turn but the first loses 25 s: a does 900, then 875 each, so 3 leases leave it 3 × 900 - 2650 = 50 s to do.
    run = played(
        world(line_up((0, 3 * L, 8), (0, 3 * L, 8)), 8), costs=Overheads(checkpoint_s=5, restore_s=20), delay_s=0.0
    )
    assert run.finished == {"a": 6 * L + 25 + 50, "b": 6 * L + 75 + 25 + 50}


def test_saturated_tenants_converge_to_their_weights() -> None:
    run = played(world(many(12, 4 * HOUR, "big") + many(12, 2 * HOUR, "small"), 8), {"big": 3.0, "small": 1.0})
    used = held(run, 6 * HOUR)
    assert used["big"] / 3 == pytest.approx(used["small"], abs=L)


def test_wide_gangs_do_not_get_their_tenant_more_than_its_weight() -> None:
    jobs = many(3, 4 * HOUR, "wide", size=4) + many(12, 4 * HOUR, "narrow")
    used = held(played(world(jobs, 8), {"wide": 1.0, "narrow": 1.0}), 6 * HOUR)
    assert used["wide"] == pytest.approx(used["narrow"], abs=L * 4)


def test_what_a_tenant_does_not_ask_for_others_use() -> None:
    jobs = many(8, 2 * L, "busy") + tuple(replace(job, submitted=10 * HOUR) for job in many(1, L, "idle"))
    run = played(world(jobs, 8), {"busy": 1.0, "idle": 1.0})
    assert {run.finished[job.job_id] for job in jobs[:8]} == {2 * L}
    kept = played(world(jobs, 8), {"busy": 1.0, "idle": 1.0}, quota="static")
    assert sorted(kept.finished[job.job_id] for job in jobs[:8]) == [3 * L] * 4 + [4 * L] * 4


def test_a_job_that_over_claims_does_not_gain_by_it() -> None:
    # Wide deserves min(8, 8 / 2) = 4 a second, narrow min(1, 4) = 1: wide is ahead of what it deserves when it runs.
    run = played(world(line_up((0, 20 * L, 8), (0, 4 * L, 1)), 8), delay_s=0.0)
    assert run.finished["b"] <= 8 * L + L
    assert run.finished["a"] > 20 * L


@pytest.mark.parametrize("quota", ["fair", "dynamic"])
def test_a_gang_that_starved_has_seats_set_aside_for_it(quota: str) -> None:
    # Leases of the narrow jobs end 100 s apart, and each would be renewed at once: five seats are never free together.
    crowd = tuple(Job(job_id=f"n{n}", sequence=n, submitted=n * 100.0, total_steps=4 * HOUR) for n in range(12))
    crowd = tuple(replace(job, tenant="crowd") for job in crowd)
    gang = Job(job_id="gang", sequence=99, submitted=850.0, total_steps=L, scale_factor=5, tenant="lab")
    small = world(tuple(sorted((*crowd, gang), key=lambda job: job.submitted)), 10)
    run = played(small, {"lab": 1.0, "crowd": 1.0}, starvation_s=2 * HOUR, quota=quota, lend=2.0)
    assert starts_of(run, "gang")[0] <= 850 + 2 * HOUR + L


def test_a_gang_among_narrow_jobs_of_its_own_tenant_is_not_forgotten() -> None:
    narrow = tuple(Job(job_id=f"n{n}", sequence=n, submitted=n * 100.0, total_steps=4 * HOUR) for n in range(12))
    gang = Job(job_id="gang", sequence=99, submitted=1200.0, total_steps=L, scale_factor=10)
    run = played(world((*narrow, gang), 10), selection="smallestfirst", block=False, starvation_s=2 * HOUR)
    assert 1200 + 2 * HOUR <= starts_of(run, "gang")[0] <= 1200 + 2 * HOUR + L


def test_who_starves_behind_its_own_tenant_keeps_no_seats_from_others() -> None:
    # ann's quota is full until 10 h; bo comes after her second job began to starve, and her seats are not his.
    jobs = (*many(2, 10 * HOUR, "ann", size=4), Job(job_id="bo", submitted=5 * HOUR, total_steps=L, tenant="bo"))
    small = world(jobs, 8)
    tenants = {"ann": Tenant(), "bo": Tenant()}
    run = play(Astraea(quota="static", starvation_s=HOUR), small, tenants=tenants, terms=LeaseTerms())
    assert starts_of(run, "bo") == [5 * HOUR]


def test_who_is_wider_than_its_quota_is_refused_with_a_reason() -> None:
    jobs = many(1, L, "big", size=7) + many(1, L, "small", size=2)
    run = played(world(jobs, 8), {"big": 3.0, "small": 1.0})
    assert run.counts == {"finished": 1, "rejected": 1}
    (refused,) = [order for _, order in run.decisions if isinstance(order, Refuse)]
    assert refused.job_id == "big-0"
    assert "asks for 7 accelerators" in refused.why and "tenant 'big' is 6" in refused.why


def test_a_line_is_held_up_by_who_does_not_fit_unless_it_is_not_blocked() -> None:
    jobs = line_up((0, 5000, 5), (1, 100, 4), (2, 100, 1))
    assert played(world(jobs, 8), delay_s=0.0).finished["c"] == L + 100  # a's lease ends, and b and c come first
    assert played(world(jobs, 8), delay_s=0.0, block=False).finished["c"] == 102


@pytest.mark.parametrize(("delay_s", "begins"), [(0.0, L), (300.0, 120.0)])
def test_a_new_job_ends_a_fresh_lease_of_its_tenant(delay_s: float, begins: float) -> None:
    run = played(world(line_up((0, 5 * L, 8), (10, L, 8)), 8), delay_s=delay_s)
    assert starts_of(run, "b")[0] == begins


def test_a_quota_that_lends_takes_back_what_it_lent() -> None:
    late = tuple(replace(job, submitted=100.0) for job in many(4, L, "late"))
    run = played(world(many(8, 4 * L, "first") + late, 10), {"first": 1.0, "late": 1.0}, quota="dynamic", lend=1.4)
    assert len({order.job_id for at, order in run.starts if at == 0}) == 7  # ⌊1.4 × 5⌋
    assert {at for at, order in run.starts if order.job_id.startswith("late")} == {100.0}
    assert [
        name for at, order in run.decisions if isinstance(order, Stop) and at == 100 for name in order.job_ids
    ] != []


@pytest.mark.parametrize("quota", ["fair", "static", "dynamic"])
@pytest.mark.parametrize(("exempt_above", "begins"), [(7, 4 * L), (8, L)])
def test_a_gang_wider_than_said_keeps_its_lease(exempt_above: int, begins: float, quota: str) -> None:
    small = world(line_up((0, 4 * L, 8), (0, L, 8)), 8)
    run = played(small, quota=quota, exempt_above=exempt_above, delay_s=0.0)
    assert starts_of(run, "b") == [begins]
    assert len(starts_of(run, "a")) == (1 if begins > L else 2)


def test_another_seed_draws_another_order() -> None:
    small = world(many(6, L, "u"), 1)
    orders = set()
    for seed in range(4):
        run = play(Astraea(selection="random"), small, seed=seed)
        orders.add(tuple(order.job_id for _, order in run.starts))
    assert len(orders) > 1


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_selection_serves_everybody_in_a_crowd_of_tenants(selection: str) -> None:
    small = draw(11, jobs=16, types=2)
    small = replace(small, jobs=tuple(replace(job, tenant=f"t{job.sequence % 2}") for job in small.jobs))
    counts = played(small, selection=selection).counts
    assert counts["finished"] + counts["rejected"] == 16 and counts["finished"] >= 8
