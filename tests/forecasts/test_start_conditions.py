"""What would let a waiting job start: what is named is done in a copy, and the job starts; without it, it does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from eunomia import policies
from eunomia.backends.simulated import Simulation
from eunomia.backends.simulated.continued_simulation import ContinuedSimulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.futures import PresentState
from eunomia.forecasts.start_conditions import StartCondition, start_conditions
from eunomia.mechanisms import from_dict
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Answer, Order
from eunomia.model.arrays import Ints
from eunomia.model.decisions import Ask, Decision, SetTimer
from eunomia.model.events import (
    Answered,
    Event,
    JobCancelled,
    JobSubmitted,
    Moment,
    NodeJoined,
    NodeLost,
    TenantChanged,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node
from eunomia.records.scheduler_digest import digest
from eunomia.testing.small_worlds import SmallWorld, draw, line_up, one_type

NEEDED: dict[str, dict[str, Any]] = {"las": {"quantum": 50.0}, "pop": {"parts": 2}}  # parameters without a default
FOREVER = 1e12  # steps


class Noting:
    """A policy that keeps its last view and answer."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.info = policy, policy.info
        self.last: tuple[Any, Answer] | None = None

    def decide(self, view: Any) -> Answer:
        answer: Answer = self.policy.decide(view)
        self.last = view, answer
        return answer


def scheduler_of(policy: Any, world: SmallWorld, mechanism: Any = None, **tenants: Tenant) -> Scheduler:
    terms = policy.info.mechanism
    leases = mechanism or Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
    price = np.ones(len(world.topology.types))
    return Scheduler(
        world.topology, policy.info, leases, Belief(world.speeds), seed=1, checked=True, price=price, tenants=tenants
    )


def handle(scheduler: Scheduler, policy: Any, at: float, *events: Event) -> Iterator[Decision]:
    """Handle a moment and the answers to what is asked."""
    following: Moment | None = Moment.of(at, events)
    while following is not None:
        decisions, following = scheduler.handle(following), None
        for decision in decisions:
            if isinstance(decision, Ask):
                following = Moment(at, (Answered(decision.asked, policy.decide(decision.view)),))
            else:
                yield decision


def after(policy: Any, world: SmallWorld, moments: int, scheduler: Scheduler | None = None) -> PresentState | None:
    """Simulate a world for so many moments, and on until two jobs wait; None if that never happens."""
    scheduler = scheduler or scheduler_of(policy, world)
    simulation, wake = Simulation(world.jobs, world.topology, world.speeds), math.inf
    for number, moment in enumerate(simulation.moments()):
        wake = math.inf if any(isinstance(event, TimerFired) for event in moment.events) else wake
        for decision in handle(scheduler, policy, moment.at, *moment.events):
            wake = decision.at if isinstance(decision, SetTimer) else wake
            simulation.carry_out(decision)
        if number >= moments and scheduler.state.waiting >= 2 and not simulation._reports:
            return PresentState(scheduler=scheduler, policy=policy, speeds=world.speeds, at=moment.at, wake=wake)
    return None


def waiting(present: PresentState) -> list[str]:
    state = present.scheduler.state
    return [state.ids[row] for row in state.active.tolist() if state.jobs.stage[row] == Stage.WAITING]


def starts_after(present: PresentState, job: str, ends: tuple[str, ...], until: float) -> bool:
    """Let the simulation go on, in which only these jobs end; say whether the job runs by `until`."""
    scheduler, belief, at = present.scheduler.copy(), present.scheduler.belief, present.at
    state = scheduler.state
    total = np.full(len(state.ids), FOREVER)
    for number, name in enumerate(ends):  # one after the other
        row = state.row_of[name]
        total[row] = belief.done[row] + max(at - belief.since[row] + 1e-5 * (1 + number), 0.0) * belief.rate[row]
    simulation = ContinuedSimulation(scheduler, present.speeds, at, present.wake).fork(total, {}, {})
    for moment in simulation.moments():
        if moment.at > until + 1e-3:
            break
        for decision in handle(scheduler, present.policy, moment.at, *moment.events):
            simulation.carry_out(decision)
        if state.jobs.stage[state.row_of[job]] == Stage.RUNNING:
            return True
    return False


def starts_with(present: PresentState, job: str, until: float, *moments: tuple[Event, ...]) -> bool:
    """Hand these moments to a copy, and then its timers; say whether the job runs by `until`."""
    scheduler, at, wake = present.scheduler.copy(), present.at, present.wake
    if scheduler.state.lease < math.inf:  # a little later than the last moment, when leases may have ended
        at += 0.3 * (min(wake, at + 1.0) - at)
        until = max(until, at) + (at - present.at)
    for events in (*moments, *((TimerFired(),),) * 50):
        if events == (TimerFired(),):
            at, wake = wake, math.inf
            if at > until:
                return False
        for decision in handle(scheduler, present.policy, at, *events):
            wake = decision.at if isinstance(decision, SetTimer) else wake
        row = scheduler.state.row_of.get(job)
        if row is not None and scheduler.state.jobs.stage[row] == Stage.RUNNING:
            return True
    return False


def again(present: PresentState, job: str, size: int) -> Job:
    """Return the job as it is submitted again with another size."""
    before = present.scheduler.state.submitted[present.scheduler.state.row_of[job]]
    last = max(one.sequence for one in present.scheduler.state.submitted)
    return replace(
        before,
        job_id=f"{job}-{size}",
        submitted=present.at,
        sequence=last + 1 + size,
        scale_factor=size,
        other_shapes=(),
    )


def comes_true(present: PresentState, job: str, one: StartCondition) -> bool:
    """Say whether the job starts when it was said to, once what was named has happened."""
    match one.kind:
        case "ended" | "all_ended":
            return all(starts_after(present, job, order, one.starts) for order in permutations(one.jobs))
        case "cancelled":
            return starts_with(present, job, one.starts, (JobCancelled(one.jobs[0]),))
        case "fewer":
            smaller = again(present, job, int(one.accelerators))
            moments = ((JobCancelled(job),), (JobSubmitted(smaller),))
            return starts_with(present, smaller.job_id, one.starts, *moments)
        case "node":
            return starts_with(present, job, one.starts, (NodeJoined(one.node),))
    raise AssertionError(one.kind)


@cache
def policy_of(name: str) -> Any:
    return policies.load(name)(**NEEDED.get(name, {}))


def look(name: str, seed: int, moments: int) -> set[str]:
    """Check what is said of every waiting job of one queue; return the kinds of what was said."""
    policy = Noting(policy_of(name))
    present = after(policy, draw(seed, jobs=12), moments)
    said = set[str]()
    if present is None:
        return said
    scheduler = present.scheduler
    node = seed % scheduler.state.topology.nodes
    if seed % 2 and (scheduler.state.holder[scheduler.state.topology.node == node] < 0).all():
        list(handle(scheduler, policy, present.at, NodeLost(node)))
    before, lease_s = digest(scheduler), scheduler.state.lease
    for job in waiting(present):
        size = scheduler.state.submitted[scheduler.state.row_of[job]].scale_factor
        smaller = [(again(present, job, fewer), None) for fewer in {size // 2, 1} - {0, size}]
        found = start_conditions(present, job, smaller=smaller)
        until = present.at + (lease_s if lease_s < math.inf else 0.0)
        if found.unchanged < math.inf:
            said.add("unchanged")
            assert not found.conditions
            assert starts_with(present, job, found.unchanged, ())
        elif found.conditions:
            assert not starts_with(present, job, until, ()), f"{job} starts without a change"
        for one in found.conditions:
            said.add(one.kind)
            assert comes_true(present, job, one), f"{name}, seed {seed}: {job} does not start: {one}"
        if found.ahead is not None and scheduler.info.answer_type == "order":
            check_order(present, policy, job, found.ahead)
    assert digest(scheduler) == before, "nothing of the present state changes"
    return said


def check_order(present: PresentState, policy: Noting, job: str, ahead: Ints) -> None:
    """The jobs ahead are those before it in what the policy answers when it is asked now."""
    scheduler = present.scheduler.copy()
    scheduler._sched.advance_to(present.at)
    rows = scheduler.state.active.copy()
    ask = scheduler.asks.ask(present.at, rows, scheduler.mechanism.columns(present.at, rows))
    answer = policy.decide(ask.view)
    assert isinstance(answer, Order)
    order = list(dict.fromkeys(rows[answer.rows.job].tolist()))
    row = scheduler.state.row_of[job]
    if row not in order:
        return  # no type in service is large enough
    before = order[: order.index(row)]
    assert ahead.tolist() == [one for one in before if scheduler.state.jobs.stage[one] == Stage.WAITING]


@pytest.mark.parametrize("name", policies.POLICIES)
def test_what_would_let_a_job_start_lets_it_start_under_every_policy(name: str) -> None:
    said = set[str]()
    for seed in range(2):
        said |= look(name, seed, moments=6)
    assert said, "something is said of some job"


@pytest.mark.slow
@pytest.mark.parametrize("name", policies.POLICIES)
def test_what_would_let_a_job_start_lets_it_start_in_many_queues(name: str) -> None:
    said = set[str]()
    for seed in range(2, 25):
        for moments in (5, 9, 14):
            said |= look(name, seed, moments)
    assert said & {"ended", "all_ended", "cancelled", "fewer"}


@pytest.mark.parametrize("name", ["max_min_fairness", "fifo"])
def test_gavels_rounds_start_a_job_at_the_next_round_if_at_all(name: str) -> None:
    policy = policy_of(name)
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=2),),
        speeds=one_type(),
        jobs=line_up((0, 5000, 2), (0, 5000, 2), (0, 5000, 2)),
    )
    mechanism = from_dict({"name": "gavel", "round_s": 360.0})
    present = after(policy, world, 0, scheduler_of(policy, world, mechanism))
    assert present is not None
    for job in waiting(present):
        found = start_conditions(present, job)
        assert found.unchanged == math.inf or found.unchanged > present.at
        assert all(one.starts > present.at for one in found.conditions)


# ---- by hand -----------------------------------------------------------------------------------------------------


def fifo_queue(
    *jobs: tuple[float, float, int], nodes: int = 1, tenants: Mapping[int, str] | None = None
) -> PresentState:
    """A queue before nodes of four accelerators, after all jobs were submitted at 0."""
    policy, owner = policies.load("fifo")(), tenants or {}
    line = tuple(replace(job, tenant=owner.get(k, "")) for k, job in enumerate(line_up(*jobs)))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=4),) * nodes, speeds=one_type(), jobs=line)
    scheduler = scheduler_of(policy, world)
    list(handle(scheduler, policy, 0.0, *(JobSubmitted(job) for job in world.jobs)))
    return PresentState(scheduler=scheduler, policy=policy, speeds=world.speeds, at=0.0)


def kinds(present: PresentState, job: str, **given: Any) -> dict[str, list[tuple[str, ...]]]:
    found = start_conditions(present, job, **given)
    return {
        kind: [one.jobs for one in found.conditions if one.kind == kind] for kind in {c.kind for c in found.conditions}
    }


def test_no_single_end_helps_a_wide_job_and_the_fewest_that_do_together_are_named() -> None:
    present = fifo_queue((0, 9, 2), (0, 9, 1), (0, 9, 1), (0, 9, 3))  # d needs 3; a holds 2, b and c 1 each
    assert kinds(present, "d") == {"all_ended": [("a", "b")]}


def test_a_job_behind_a_wide_one_starts_if_that_is_cancelled_not_if_a_running_one_ends() -> None:
    present = fifo_queue(
        (0, 9, 3), (0, 9, 4), (0, 9, 1)
    )  # a holds 3; b needs 4 and stands before c, for which 1 is free
    assert kinds(present, "c") == {"cancelled": [("b",)]}
    assert kinds(present, "b") == {"ended": [("a",)]}


def test_a_smaller_gang_is_named_if_it_starts_and_not_if_it_only_fits() -> None:
    def smaller(*jobs: tuple[float, float, int]) -> list[float]:
        present = fifo_queue(*jobs)  # 1 is free
        found = start_conditions(present, "b", smaller=[(again(present, "b", 1), None)])
        return [one.accelerators for one in found.conditions if one.kind == "fewer"]

    assert smaller((0, 9, 3), (0, 9, 2)) == [1]
    assert smaller((0, 9, 3), (0, 9, 2), (0, 9, 2)) == [], "submitted again it stands behind c, which does not fit"


def test_a_node_that_is_back_and_a_larger_quota_are_played_too() -> None:
    present = fifo_queue((0, 9, 4), (0, 9, 4), (0, 9, 4), nodes=2)
    assert "node" not in kinds(present, "c")
    list(handle(present.scheduler, present.policy, 0.0, NodeLost(1)))
    found = start_conditions(present, "b")
    assert [one.node for one in found.conditions if one.kind == "node"] == [1]

    policy = policies.build("quotas?inner=fifo")
    jobs = tuple(replace(job, tenant="lab") for job in line_up((0, 9, 2), (0, 9, 1)))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=4),), speeds=one_type(), jobs=jobs)
    scheduler = scheduler_of(policy, world, lab=Tenant(quota=2.0, borrows=False))
    list(handle(scheduler, policy, 0.0, *map(JobSubmitted, jobs)))
    state = PresentState(scheduler=scheduler, policy=policy, speeds=world.speeds, at=0.0)
    quota = [one for one in start_conditions(state, "b").conditions if one.kind == "quota"]
    assert [(one.tenant, one.accelerators) for one in quota] == [("lab", 3.0)]
    assert starts_with(state, "b", 0.0, (TenantChanged("lab", Tenant(quota=3.0, borrows=False)),))


def test_a_job_that_follows_the_ended_one_competes_for_its_accelerators() -> None:
    present = fifo_queue((0, 9, 4), (0, 9, 4), (0, 9, 4))
    assert "ended" in kinds(present, "b")
    scheduler = present.scheduler
    scheduler._sched.pause(scheduler.state.row_of["b"], 0.0)
    assert "ended" in kinds(present, "c")
    following = replace(present, follows={scheduler.state.row_of["b"]: frozenset({scheduler.state.row_of["a"]})})
    assert "ended" not in kinds(following, "c"), "b is released by the end of a, and stands before c"


def test_jobs_of_the_asker_are_tried_first_and_plays_are_bounded() -> None:
    present = fifo_queue(*[(0.0, 9.0, 1)] * 17, nodes=4, tenants={15: "mine"})
    *_, mine, last = present.scheduler.state.ids
    found = start_conditions(present, last, first=lambda tenant: tenant == "mine")
    assert found.conditions[0].jobs == (mine,) and found.plays <= 25
    assert start_conditions(present, last, first=lambda tenant: False).conditions[0].jobs != (mine,)
    assert start_conditions(present, last, budget_s=0.0).conditions == ()


def test_an_unknown_job_and_one_that_runs_have_no_conditions() -> None:
    present = fifo_queue((0, 9, 4), (0, 9, 4))
    for job in ("a", "nothing"):
        assert start_conditions(present, job).plays == 0
