"""What jobs, tenants and apps could lay claim to, by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.watched import HALF_LIFE_S, Watched

from eunomia.core.belief import Belief
from eunomia.core.entitlements import HOURS
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Order, Rows
from eunomia.model.decisions import Ask
from eunomia.model.events import Answered, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node, Topology
from eunomia.policies.order.slurm_fair_share import SlurmFairShare
from eunomia.records.packed_objects import capture, restore
from eunomia.records.scheduler_digest import digest
from eunomia.testing.small_worlds import one_type


def eight(tenants: Mapping[str, Tenant] | None = None) -> Watched:
    """Return a core on eight accelerators."""
    return Watched([Node(type="v100", accelerators=8)], one_type(), tenants)


def come(name: str, at: float, **said: Any) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, total_steps=1e9, submitted=at, **said))


def test_a_job_deserves_its_part_of_its_tenants_quota_but_never_more_than_it_asks_for() -> None:
    world = eight({"a": Tenant(weight=3.0), "b": Tenant(weight=1.0)})
    world.tell(0, come("one", 0, tenant="a", scale_factor=8), come("two", 0, tenant="b", scale_factor=1))
    view = world.tell(100, come("three", 100, tenant="a", scale_factor=2))
    assert view.fair_share_service.tolist() == [600.0, 100.0, 0.0]  # 6 of 8 are a's; two asks for 1 of b's 2
    view = world.tell(200, come("four", 200, tenant="b"))
    assert view.fair_share_service.tolist() == [
        900.0,
        200.0,
        200.0,
        0.0,
    ]  # a's 6 by equal parts of 3, and three asks for 2


def test_the_hours_of_a_tenant_say_what_it_used_deserved_and_was_entitled_to() -> None:
    world = eight({"a": Tenant(quota=2.0), "b": Tenant()})
    world.tell(0, come("one", 0, tenant="a", scale_factor=4))
    view = world.tell(5400, come("two", 5400, tenant="b"))
    assert view.tenants.names == ("a", "b")
    assert view.tenant_hourly_usage.tolist() == [
        [[14400.0, 7200.0, 7200.0], [0.0, 0.0, 21600.0]],
        [[7200.0, 3600.0, 3600.0], [0.0, 0.0, 10800.0]],
    ]


def test_hours_long_past_are_forgotten() -> None:
    world = eight()
    world.tell(0, come("one", 0))
    view = world.tell(3600.0 * 1000, come("two", 3.6e6))
    assert len(view.tenant_hourly_usage) == HOURS
    assert view.tenant_hourly_usage[-2, 0].tolist() == [3600.0, 3600.0, 8 * 3600.0]


def test_usage_halves_in_every_half_life_however_often_it_is_looked_at() -> None:
    """a holds 2 for an hour: of what it used ∫ 2 · 2^-x dx = 2 · (1 - ½) / ln 2 hours are left. Twenty hours later
    2^-20 of that. b holds 1 from 3600 on: after twenty hours nearly 1 / ln 2 hours.
    """
    hour, few, many = HALF_LIFE_S, eight(), eight()
    for world in (few, many):
        world.tell(0, come("one", 0, tenant="a", scale_factor=2))
        view = world.tell(hour, JobFinished("one", 1), come("two", hour, tenant="b"))
        assert view.tenant_usage == pytest.approx([hour / math.log(2), 0])
    for number in range(1, 2000):
        many.tell(hour + 36 * number, come(f"wide{number}", hour + 36 * number, tenant="a", scale_factor=8))
    found = [world.tell(21 * hour, come("end", 21 * hour)).tenant_usage[:2] for world in (few, many)]
    assert found[0] == pytest.approx([hour / math.log(2) * 2**-20, hour / math.log(2) * (1 - 2**-20)])
    assert found[1] == pytest.approx(found[0], rel=1e-11)


def test_usage_is_all_kept_with_an_infinite_half_life_and_by_a_snapshot() -> None:
    topology = Topology.of([Node(type="v100", accelerators=8)])

    def fresh(half_life_s: float) -> Scheduler:
        leases, policy = Leases(length=math.inf, aligned=False, recall=True), SlurmFairShare(half_life_s=half_life_s)
        return Scheduler(topology, policy.info, leases, Belief(one_type()))

    for half_life_s, left in ((math.inf, 3600.0), (1800.0, 1800.0 / math.log(2) * (1 - 2**-2.0) * 2**-2.0)):
        core = fresh(half_life_s)
        asks = [one.asked for one in core.handle(Moment.of(0, (come("one", 0),))) if isinstance(one, Ask)]
        answer = Order(Rows(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)))
        core.handle(Moment.of(0, (Answered(asks[0], answer),)))
        core.handle(Moment.of(3600, (JobFinished("one", 1),)))
        again = fresh(half_life_s)
        restore(again, capture(core).content())
        assert digest(again) == digest(core) != digest(fresh(half_life_s))
        for one in (core, again):
            one.handle(Moment.of(7200, (come("two", 7200),)))
            assert one.state.entitlements is not None
            assert one.state.entitlements.decayed_usage(1) == pytest.approx([left])


def test_an_apps_rivals_are_the_apps_alive_on_average_over_its_own_life() -> None:
    world = eight()
    world.tell(0, come("a1", 0, app="a"), come("a2", 0, app="a"))
    world.tell(100, come("b", 100))
    view = world.tell(200, come("c", 200))
    assert view.apps.names == ("a", "b", "c")
    assert view.app.tolist() == [0, 0, 1, 2]
    assert view.apps.submitted.tolist() == [0.0, 100.0, 200.0]
    assert view.apps.mean_rivals.tolist() == [1.5, 2.0, 3.0]  # c has no past: as many as there are now


def test_what_ended_counts_for_its_app_and_as_a_sample_of_service() -> None:
    world = eight()
    world.tell(0, come("a1", 0, app="a", scale_factor=2), come("a2", 0, app="a"))
    view = world.tell(50, JobFinished("a1", 1), come("b", 50))
    assert view.apps.service.tolist() == [100.0, 0.0]
    assert view.past_service.tolist() == [100.0]


def test_waits_and_starts_are_of_now_and_the_first_start_stays() -> None:
    world = eight()
    world.tell(0, come("one", 0, scale_factor=8))
    view = world.tell(30, come("two", 30))
    assert (view.waiting_time.tolist(), view.started.tolist()) == ([0.0, 0.0], [0.0, math.inf])
    view = world.tell(40, come("three", 40))
    assert view.waiting_time.tolist() == [0.0, 10.0, 0.0]
    view = world.tell(50, JobFinished("one", 1), come("four", 50))
    assert view.waiting_time.tolist() == [20.0, 10.0, 0.0]
    view = world.tell(60, come("five", 60))
    assert view.first_started.tolist() == view.started.tolist() == [50.0, 50.0, 50.0, math.inf]
    assert view.run_time.tolist() == [10.0, 10.0, 10.0, 0.0]


@pytest.mark.parametrize(
    ("said", "capacity", "quota"),
    [
        ({"a": Tenant(2.0), "b": Tenant(1.0)}, 8.0, [5.0, 2.0]),
        ({"a": Tenant(quota=6.0), "b": Tenant(3.0), "c": Tenant(1.0)}, 10.0, [6.0, 3.0, 1.0]),
        ({"a": Tenant(1.0), "a/x": Tenant(quota=1.0), "a/y": Tenant(), "b": Tenant(1.0)}, 8.0, [4.0, 1.0, 3.0, 4.0]),
        ({"a": Tenant(quota=8.0), "b": Tenant()}, 8.0, [8.0, 0.0]),
    ],
)
def test_quotas_are_what_was_said_and_else_parts_of_what_is_left_by_weight(
    said: Mapping[str, Tenant], capacity: float, quota: list[float]
) -> None:
    assert Tenants.of((), said).quota(capacity).tolist() == quota
