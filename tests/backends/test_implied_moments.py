"""Moments whose decisions need no ask are played many at once, with the same moments, decisions and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from eunomia.backends.simulated import FaultModel, Simulation
from eunomia.core import job_line
from eunomia.core.belief import Belief
from eunomia.core.rank_line import looked_at
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision, Start, Stop, one_by_one
from eunomia.model.events import Answered, JobFinished, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.order.by_weight import ByWeight
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.policies.order.smallest_first import SmallestFirst
from eunomia.policies.order.srtf import Srtf
from eunomia.policies.order.tiresias import Tiresias
from eunomia.records.record import step_lines, to_json
from eunomia.records.run import InlinePolicyRunner, Observer, run
from eunomia.throughputs import load

RANKED = (
    Fifo(), Fifo(backfill="skip"), SmallestFirst(), ByWeight(), Las(), Las(quantum=600.0), Srtf(),
    Srtf(measure="service"),
)  # fmt: skip
EASY = Fifo(backfill="easy")
POLICIES = (Fifo(), Fifo(backfill="skip"), Las(), Srtf())
JOBS = 200


class TwoSpeeds:
    """Speeds of the two types: jobs of the type "other" are faster on the second."""

    types = ("v100", "k80")

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        return np.array([0.7, 1.0] if job_type == "other" else [1.0, 0.4])

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        return np.zeros(2)


class Lines:
    """An observer that writes down what it receives, and takes moments one by one."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.lines += step_lines(moment, decisions)


class Actions:
    """An observer that takes batches, and writes down what happens to jobs: neither asks nor timers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.answers = 0
        self.by_rank = 0  # moments with a stop, or more than one start, in a batch

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.answers += any(isinstance(event, Answered) for event in moment.events)
        events = [event for event in moment.events if isinstance(event, JobSubmitted | JobFinished)]
        moves = [one for one in one_by_one(decisions) if isinstance(one, Start | Stop)]
        self.lines += [f"{moment.at} {to_json(one)}" for one in (*events, *moves)]

    def observe_batch(self, batch: MomentBatch) -> None:
        for moment, decisions in batch:
            self.by_rank += len(list(one_by_one(decisions))) > 1 or any(isinstance(one, Stop) for one in decisions)
            self.observe(moment, decisions)


class Batches:
    """An observer that counts the events that come in batches."""

    events = 0

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        pass

    def observe_batch(self, batch: MomentBatch) -> None:
        self.events += int((batch.epoch >= 0).sum())


class OneByOne:
    """A backend that plays no moments by itself."""

    def __init__(self, world: Simulation):
        self.moments, self.carry_out = world.moments, world.carry_out


def jobs(seed: int, step_s: float, gap_s: float = 300.0) -> list[Job]:
    """Jobs of two types and several tenants, at multiples of `step_s`: with a wide one many things happen at once."""
    rng = np.random.default_rng(seed)
    at = np.sort(np.ceil(rng.exponential(gap_s, JOBS).cumsum() / step_s) * step_s)
    lasts = np.ceil(rng.exponential(2500.0, JOBS) / step_s) * step_s
    return [
        Job(
            job_id=f"j{m}",
            total_steps=float(lasts[m]),
            submitted=float(at[m]),
            sequence=m,
            scale_factor=int(rng.choice([1, 1, 2, 4])),
            weight=float(1 + m % 3),
            job_type=str(rng.choice(["any", "other"])),
            tenant=str(rng.choice(["a", "b", "c"])),
            status=str(rng.choice(["finished", "failed", "cancelled", ""])),
        )
        for m in range(JOBS)
    ]


def play(
    policy: Policy, devices: int, step_s: float, *, by_itself: bool, replay: bool = False
) -> tuple[list[str], dict[str, object], int]:
    """Lines of the record, figures, and the events that came in batches."""
    topology = Topology.of([Node(type="v100", accelerators=4)] * (devices // 4))
    speeds, terms = load("uniform", topology.types), policy.info.mechanism
    leases = Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
    metrics, lines, batches = Metrics(topology, speeds, {}), Lines(), Batches()
    world = Simulation(jobs(1, step_s), topology, speeds, replay_status=replay, overheads=Overheads(start_s=7.0))
    scheduler = Scheduler(topology, policy.info, leases, Belief(speeds))
    observers: list[Observer] = [metrics, lines, batches]
    run(scheduler, world if by_itself else OneByOne(world), InlinePolicyRunner(policy), observers)
    figures = metrics.figures()
    shown = {name: column.tolist() for name, column in figures.jobs.items()}
    return (
        lines.lines,
        {**figures.summary, "jobs": repr(shown), "busy": repr(figures.utilization.tolist())},
        batches.events,
    )


def play_ranked(
    policy: Policy,
    topology: Topology,
    step_s: float,
    *,
    by_itself: bool,
    replay: bool,
    gap_s: float = 300.0,
    other: str = "other",
    leases: Leases | None = None,
) -> tuple[Actions, dict[str, object]]:
    """What happens to jobs, and the figures; observers take batches. `other` is the job type of some."""
    speeds, terms = load("uniform", topology.types), policy.info.mechanism
    if len(topology.types) > 1:
        speeds = TwoSpeeds()
    leases = leases or Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
    metrics, actions = Metrics(topology, speeds, {}), Actions()
    overheads = Overheads(start_s=7.0, restore_s=30.0)
    work = jobs(1, step_s, gap_s)
    work = [replace(job, job_type=other if job.job_type == "other" else job.job_type) for job in work]
    world = Simulation(work, topology, speeds, replay_status=replay, overheads=overheads)
    scheduler = Scheduler(topology, policy.info, leases, Belief(speeds, overheads))
    run(scheduler, world if by_itself else OneByOne(world), InlinePolicyRunner(policy), [metrics, actions])
    figures = metrics.figures()
    shown = {name: column.tolist() for name, column in figures.jobs.items()}
    curves = (figures.utilization.tolist(), figures.waiting_jobs.tolist(), world.losses(metrics.end_s).__repr__())
    return actions, {**figures.summary, "jobs": repr(shown), "curves": repr(curves)}


WITH_TYPES = [(policy, types) for policy in RANKED for types in (("v100",), ("v100", "k80"))] + [(EASY, ("v100",))]


@pytest.mark.parametrize(("policy", "types"), WITH_TYPES, ids=str)
@pytest.mark.parametrize("step_s", [1e-3, 1000.0])
@pytest.mark.parametrize("replay", [False, True], ids=["", "replay"])
def test_answers_by_rank_are_those_of_the_policy(
    policy: Policy, types: tuple[str, ...], step_s: float, replay: bool
) -> None:
    topology = Topology.of([Node(type=types[m % len(types)], accelerators=4) for m in range(4)])
    actions, figures = play_ranked(policy, topology, step_s, by_itself=True, replay=replay)
    alone = play_ranked(policy, topology, step_s, by_itself=False, replay=replay)
    assert actions.lines == alone[0].lines
    assert figures == alone[1]
    assert actions.by_rank > 0 and actions.answers < alone[0].answers / 2  # else nothing was compared


@pytest.mark.parametrize(("policy", "types"), WITH_TYPES, ids=str)
def test_answers_by_rank_are_those_of_the_policy_where_many_jobs_wait(
    policy: Policy, types: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_line, "BLOCK", 8)
    topology = Topology.of([Node(type=types[m % len(types)], accelerators=4) for m in range(4)])
    each = [play_ranked(policy, topology, 10.0, by_itself=one, replay=False, gap_s=30.0) for one in (True, False)]
    assert each[0][0].lines == each[1][0].lines
    assert each[0][1] == each[1][1]


def test_reservations_of_gangs_of_many_sizes_are_those_of_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them gangs as wide as the cluster, and wider ones, which no reservation waits for."""
    sizes, plain = (1, 1, 2, 3, 4, 8, 11, 16, 20), jobs
    monkeypatch.setattr(job_line, "BLOCK", 8)
    monkeypatch.setitem(
        globals(), "jobs",
        lambda *given: [replace(job, scale_factor=sizes[7 * m % 9]) for m, job in enumerate(plain(*given))],
    )  # fmt: skip
    topology = Topology.of([Node(type="v100", accelerators=4)] * 4)
    each = [play_ranked(EASY, topology, 10.0, by_itself=one, replay=False, gap_s=300.0) for one in (True, False)]
    assert each[0][0].lines == each[1][0].lines and each[0][1] == each[1][1]
    assert each[0][0].by_rank > 0


@pytest.mark.parametrize(
    "policy",
    [Tiresias(limits="500,3000"), Tiresias(placement="consolidate"), Tiresias(index="gittins", history="600,600,7200")],
    ids=str,
)
@pytest.mark.parametrize(("step_s", "nodes", "spared"), [(1e-3, 4, 40), (1.0, 6, 40), (100.0, 6, 5)])
def test_starts_where_nothing_else_waits_are_those_of_the_policy(
    policy: Policy, step_s: float, nodes: int, spared: int
) -> None:
    """Other jobs queue now and then: what a policy remembers of a start that was not asked for counts there."""
    topology = Topology.of([Node(type="v100", accelerators=4)] * nodes)
    actions, figures = play_ranked(policy, topology, step_s, by_itself=True, replay=False, other="VGG16")
    alone = play_ranked(policy, topology, step_s, by_itself=False, replay=False, other="VGG16")
    assert actions.lines == alone[0].lines
    assert figures == alone[1]
    assert any("Stop" in line for line in actions.lines)
    assert 0 < actions.answers < alone[0].answers - spared


@pytest.mark.parametrize("by_itself", [False, True])
def test_a_start_that_needs_no_ask_counts_as_one(by_itself: bool) -> None:
    """Four seats. b, one wide, runs from 30 and is in the second queue at 130; a, two wide, from 50, there at 100.
    c starts at 120, where no ask is needed: in the second queue a was there before, b was not. d comes at 160:
    first are c and d, then a, and b stops.
    """
    topology, speeds = Topology.of([Node(type="v100", accelerators=4)]), load("uniform", ("v100",))
    work = [
        Job(job_id=name, total_steps=1000.0, submitted=at, sequence=m, scale_factor=size)
        for m, (name, at, size) in enumerate([("b", 30.0, 1), ("a", 50.0, 2), ("c", 120.0, 1), ("d", 160.0, 1)])
    ]
    policy, actions = Tiresias(limits=100.0), Actions()
    world, scheduler = (
        Simulation(work, topology, speeds),
        Scheduler(topology, policy.info, Leases(recall=True), Belief(speeds)),
    )
    run(scheduler, world if by_itself else OneByOne(world), InlinePolicyRunner(policy), [actions])
    first = next(line for line in actions.lines if "Stop" in line)
    assert first.startswith("160.0 ")
    assert "'b'" in first


@pytest.mark.parametrize(
    "policy", POLICIES, ids=lambda policy: f"{policy.info.name}-{policy.info.promises.jobs_independent}"
)
@pytest.mark.parametrize(("devices", "step_s"), [(16, 1e-3), (20, 1000.0), (64, 60.0)])
@pytest.mark.parametrize("replay", [False, True], ids=["", "replay"])
def test_moments_played_together_are_those_played_one_by_one(
    policy: Policy, devices: int, step_s: float, replay: bool
) -> None:
    lines, figures, together = play(policy, devices, step_s, by_itself=True, replay=replay)
    alone = play(policy, devices, step_s, by_itself=False, replay=replay)
    assert (lines, figures) == alone[:2]
    assert together > (JOBS if devices == 64 and not replay else 0)  # else nothing was compared
    assert alone[2] == 0


def test_with_chance_failures_no_moments_are_played_together() -> None:
    """The draws of failures have an order, that of the starts."""
    topology = Topology.of([Node(type="v100", accelerators=4)] * 16)
    speeds, batches = load("uniform", topology.types), Batches()
    for faults, expected in ((FaultModel(job_failures_per_hour=0.01), 0), (FaultModel(), 1)):
        world = Simulation(jobs(1, 1.0), topology, speeds, faults=faults)
        scheduler = Scheduler(topology, Fifo().info, Leases(), Belief(speeds))
        run(scheduler, world, InlinePolicyRunner(Fifo()), [batches])
        assert (batches.events > 0) == expected


class Reversed(Fifo):
    """A subclass that decides in another way than its class."""

    def decide(self, view: View) -> Order:
        answer = super().decide(view)
        return replace(answer, rows=Rows(answer.rows.job[::-1], answer.rows.type[::-1]))


def test_a_subclass_with_another_decision_is_asked() -> None:
    topology = Topology.of([Node(type="v100", accelerators=4)] * 4)
    assert Fifo().info.promises.rank is not None and Reversed().info.promises.rank is None
    actions, _ = play_ranked(Reversed(), topology, 1.0, by_itself=True, replay=False)
    assert actions.answers > 0


@pytest.mark.parametrize(("restore_s", "quantum"), [(500.0, 50.0), (0.0, 1e-7)], ids=["no progress", "no time passes"])
def test_a_run_that_gets_nowhere_is_given_up_as_one_by_one(restore_s: float, quantum: float) -> None:
    topology = Topology.of([Node(type="v100", accelerators=1)])
    speeds, overheads = load("uniform", topology.types), Overheads(restore_s=restore_s)
    policy, ends = Las(quantum=quantum), []
    for by_itself in (True, False):
        two = [Job(job_id=f"j{m}", total_steps=4000.0, submitted=float(m), sequence=m) for m in range(2)]
        world = Simulation(two, topology, speeds, overheads=overheads)
        scheduler = Scheduler(topology, policy.info, Leases(recall=True), Belief(speeds, overheads))
        metrics = Metrics(topology, speeds, {})
        gave_up = run(scheduler, world if by_itself else OneByOne(world), InlinePolicyRunner(policy), [metrics])
        gave_up = gave_up.split(", in which")[0]  # the asks of that millisecond, of which a batch has none
        ends.append((gave_up, world.given_up, repr(metrics.figures().summary)))
    assert ends[0] == ends[1]
    assert ends[0][0] + ends[0][1]


@pytest.mark.parametrize("aligned", [False, True])
def test_a_lease_that_ends_does_so_though_its_start_was_implied(aligned: bool) -> None:
    topology = Topology.of([Node(type="v100", accelerators=4)] * 4)
    leases = Leases(length=600.0, aligned=aligned, recall=True)
    each = [
        play_ranked(Tiresias(limits="500,3000"), topology, 1.0, by_itself=one, replay=False, gap_s=700.0, leases=leases)
        for one in (True, False)
    ]
    assert each[0][0].lines == each[1][0].lines
    assert each[0][1] == each[1][1]


def looked(policy: Policy, count: int, nodes: int) -> int:
    """How many rows and blocks of jobs were looked at in a run whose queue grows to most of `count` jobs."""
    topology = Topology.of([Node(type="v100", accelerators=4)] * nodes)
    speeds, terms, rng = load("uniform", topology.types), policy.info.mechanism, np.random.default_rng(2)
    sizes, steps = rng.choice([1, 2, 4], count).tolist(), rng.uniform(50.0, 90.0, count).tolist()
    queue = [
        Job(job_id=f"j{m}", total_steps=steps[m], submitted=0.1 * m, sequence=m, scale_factor=sizes[m])
        for m in range(count)
    ]
    world = Simulation(queue, topology, speeds)
    leases = Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
    scheduler, actions = Scheduler(topology, policy.info, leases, Belief(speeds)), Actions()
    run(scheduler, world, InlinePolicyRunner(policy), [actions])
    assert sum("JobFinished" in line for line in actions.lines) == count
    assert world._implied is not None
    return looked_at(world._implied._lines)


@pytest.mark.parametrize("policy", [Fifo(), Fifo(backfill="skip"), EASY, Srtf(), Las(quantum=100.0)], ids=str)
def test_a_pass_does_not_look_at_all_that_wait(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at the rows of a block, and at one number of each other block."""
    monkeypatch.setattr(job_line, "BLOCK", 16)
    count = 400  # most of which wait at once; a pass has two searches at least
    assert looked(policy, count, 1) / count < 50


@pytest.mark.parametrize("policy", [Srtf(), Srtf(measure="service"), Las(quantum=100.0)], ids=str)
def test_a_pass_does_not_look_at_all_that_run(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 170 run at once, and more wait."""
    monkeypatch.setattr(job_line, "BLOCK", 16)
    assert looked(policy, 600, 100) / 600 < 100
