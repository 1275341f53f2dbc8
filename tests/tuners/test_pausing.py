"""Searches whose trials wait for each other, by hand: which trials pause on which rung, and when each resumes.

Four trials of 8 steps, a step a second, halved: rungs at 2 and at 4 steps, from which two and one are resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.waits import WaitCauses
from eunomia.model.answers import Order, Rows
from eunomia.model.decisions import Decision, Refuse, Renew, Start, Stop, one_by_one
from eunomia.model.events import (
    AppFinished,
    Event,
    JobCancelled,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
)
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import RECALLABLE, Policy, PolicyInfo
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.grants.astraea.astraea import Astraea
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import one_type
from eunomia.throughputs.placed_throughputs import PlacedThroughputs
from eunomia.throughputs.placement_level import ClusterUnits
from eunomia.tuners.halving import Halving
from eunomia.tuners.late_promotion import LatePromotion
from eunomia.tuners.tuner import Trials, Tuner
from eunomia.tuners.tuner_backend import TunerBackend

LOSS = {"t0": 0.4, "t1": 0.7, "t2": 0.5, "t3": 0.6}  # of each trial, however far it is


@dataclass
class Story:
    """An observer that keeps what users did and when."""

    moments: list[tuple[Moment, Sequence[Decision]]]

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.moments.append((moment, decisions))

    def of(self, *kinds: type[Event]) -> list[tuple[float, str, str]]:
        """Return time, kind and job of each event of these kinds."""
        happened = [(moment.at, event) for moment, _ in self.moments for event in moment.events]
        return [(at, type(event).__name__, _job_id(event)) for at, event in happened if isinstance(event, kinds)]


def _job_id(event: Event) -> str:
    match event:
        case JobSubmitted(job):
            return job.job_id
        case JobPaused(name) | JobResumed(name) | JobCancelled(name) | JobFinished(name) | AppFinished(name):
            return name
    raise AssertionError(event)


@dataclass
class Result:
    story: Story
    figures: Figures
    scheduler: Scheduler

    def column(self, name: str) -> dict[str, Any]:
        return dict(zip(self.figures.jobs["job_id"].tolist(), self.figures.jobs[name].tolist(), strict=True))

    def claims(self, name: str) -> dict[str, float]:
        """Return a column of what the scheduler holds that jobs may claim."""
        jobs, claims = self.figures.jobs["job_id"].tolist(), self.scheduler.state.entitlements
        assert claims is not None
        return dict(zip(jobs, getattr(claims, name)[: len(jobs)].tolist(), strict=True))

    @property
    def jobs(self) -> Sequence[Job]:
        return self.scheduler.state.submitted


def play(
    tuner: Tuner,
    accelerators: int = 1,
    *,
    policy: Policy | None = None,
    others: Sequence[Job] = (),
    steps: float = 8.0,
    overheads: Overheads | None = None,
    split: bool = True,
    size: int = 1,
) -> Result:
    """Let a search of four trials, and other jobs, run to the end on so many accelerators; every moment is checked."""
    policy = policy or Fifo()
    search = {"app": "search", "total_steps": steps, "scale_factor": size}
    jobs = [Job(job_id=name, sequence=m, **search) for m, name in enumerate(LOSS)] + list(others)
    topology = Topology.of([Node(type="gpu", accelerators=accelerators)])
    cut, belief = policy.info.mechanism, Belief(one_type(), overheads)
    mechanism = Leases(length=cut.length_s, aligned=cut.aligned, recall=cut.recall)
    scheduler = Scheduler(topology, policy.info, mechanism, belief, checked=True)
    scheduler.state.keep_entitlements(frozenset({"fair_share_service", "tenant_hourly_usage"}))
    world = DetailedSimulation(
        jobs, topology, PlacedThroughputs(one_type(), ClusterUnits(topology)), overheads=overheads
    )
    users = TunerBackend(world, jobs, {"search": tuner}, lambda job, done: LOSS[job.job_id])
    metrics, story = Metrics(topology, one_type(), {}, WaitCauses() if split else None), Story([])
    run(scheduler, users, InlinePolicyRunner(policy), [metrics, story])
    return Result(story, metrics.figures(), scheduler)


def test_on_one_accelerator_the_trials_come_to_the_rung_one_by_one() -> None:
    """FIFO: t0, t1, t2 and t3 come to 2 steps at 2, 4, 6 and 8 s. Then t0 and t2 go on; t0 comes to 4 steps at 10 and
    pauses, t2 at 12 and is cancelled; t0 resumes and ends at 16. t2 waited for the cluster from 8 to 10, not before.
    """
    result = play(Halving(2))
    assert result.story.of(JobPaused, JobResumed, JobCancelled, AppFinished) == [
        (2, "JobPaused", "t0"),
        (4, "JobPaused", "t1"),
        (6, "JobPaused", "t2"),
        (8, "JobCancelled", "t1"),
        (8, "JobCancelled", "t3"),
        (8, "JobResumed", "t0"),
        (8, "JobResumed", "t2"),
        (10, "JobPaused", "t0"),
        (12, "JobCancelled", "t2"),
        (12, "JobResumed", "t0"),
        (16, "AppFinished", "search"),
    ]
    assert result.column("paused_s") == {"t0": 6 + 2, "t1": 4, "t2": 2, "t3": 0}
    assert result.column("attained_service_s") == {"t0": 8, "t1": 2, "t2": 4, "t3": 2}
    assert result.column("first_started_s") == {"t0": 0, "t1": 2, "t2": 4, "t3": 6}
    assert result.column("status") == {"t0": "finished", "t1": "cancelled", "t2": "cancelled", "t3": "cancelled"}
    assert result.column("wait_other_s") == {"t0": 0, "t1": 2, "t2": 4 + 2, "t3": 6}
    assert set(result.column("preemptions").values()) == {0}  # a pause is its user's will
    assert result.figures.summary["utilization"] == 1.0


def test_what_is_neither_running_nor_paused_is_waiting_where_no_policy_tells_why() -> None:
    """The same without causes of waits: all waiting is `other`, and a pause is no part of it."""
    result = play(Halving(2), split=False)
    assert result.column("wait_other_s") == {"t0": 0, "t1": 2, "t2": 4 + 2, "t3": 6}
    assert result.figures.tenants["total_wait_mean_s"].tolist() == [(2 + 6 + 6) / 4]


def test_trials_that_come_to_a_rung_at_one_instant_do_not_leave_their_seats() -> None:
    """Two accelerators: t0 and t1 are paused from 2 to 4, when t2 and t3 reach the rung; t2 keeps its seat. t0 and t2
    come to 4 steps at 6, t0 is better and runs on without a break until 10.
    """
    result = play(Halving(2), 2)
    assert result.story.of(JobPaused, JobResumed, JobCancelled) == [
        (2, "JobPaused", "t0"),
        (2, "JobPaused", "t1"),
        (4, "JobCancelled", "t1"),
        (4, "JobCancelled", "t3"),
        (4, "JobResumed", "t0"),
        (6, "JobCancelled", "t2"),
    ]
    assert result.column("paused_s") == {"t0": 2, "t1": 2, "t2": 0, "t3": 0}
    assert result.column("finished_s")["t0"] == 10


def test_to_go_on_after_a_pause_costs_what_any_stop_costs() -> None:
    """As on one accelerator, but a later start costs 1 s: t0 and t2 go on at 8 and begin at 9 and 12, t0 at 15."""
    result = play(Halving(2), overheads=Overheads(restore_s=1.0))
    assert result.story.of(AppFinished) == [(8 + 3 + 3 + 5, "AppFinished", "search")]


def test_a_paused_trial_leaves_its_seat_to_others_and_lays_claim_to_nothing() -> None:
    """A job of 20 s comes at 1 and waits behind all four trials by FIFO. On two accelerators t0, t1 pause at 2; t2
    and t3 run until 4, then t0 and t2; the job gets the seat that t2 leaves at 6. Until 10 it has half of the cluster:
    by weight t0 and the job deserve one accelerator each then. Before: a part for each that waits or runs.
    """
    result = play(Halving(2), 2, others=[Job(job_id="alone", total_steps=20.0, submitted=1.0, sequence=9)])
    assert result.column("first_started_s")["alone"] == 6
    deserved = result.claims("deserved")
    assert deserved == pytest.approx(
        {
            "t0": 0.5 + 2 / 5 + 2 * 2 / 3 + 4,  # until 1 of four, until 2 of five, from 4 of three, from 6 of two
            "t1": 0.5 + 2 / 5,
            "t2": 0.5 + 2 / 5 + 2 * 2 / 3 + 2 * 2 / 3,  # from 2 to 4 of three: t2, t3 and the job
            "t3": 0.5 + 2 / 5 + 2 * 2 / 3,
            "alone": 2 / 5 + 2 * 2 / 3 + 2 * 2 / 3 + 4 + 16,
        }
    )
    ltgf = result.column("ltgf")
    service = result.column("attained_service_s")
    assert {name: service[name] / ltgf[name] for name in deserved} == pytest.approx(deserved)  # from the outside


def test_a_tenant_whose_trials_rest_is_owed_nothing_for_them() -> None:
    """Three accelerators: t0, t1 and t2 run until 2 and rest while t3 runs until 4; then t0 and t2, from 6 on t0."""
    result = play(Halving(2), 3)
    assert result.column("finished_s")["t0"] == 10
    assert result.figures.tenants["deserved_gpu_s"].tolist() == [2 * 3 + 2 * 1 + 2 * 2 + 4 * 1]
    assert result.figures.waiting_jobs.sum() == pytest.approx(2 / 10 * 400)  # t3, from 0 to 2 of 10 s, in 400 bins


def test_a_policy_that_asks_who_has_least_sees_those_alone_that_want_seats() -> None:
    """LAS with a job that has run longer: while the trials are paused nothing keeps it from its seat."""
    old = Job(job_id="old", total_steps=30.0, sequence=9)
    result = play(Halving(2), 1, policy=Las(quantum=1.0), others=[old])
    assert result.column("status")["t0"] == "finished"
    assert result.column("status")["old"] == "finished"
    busy = sum(result.column("attained_service_s").values())
    assert busy == pytest.approx(result.figures.summary["end_s"])  # a job always ran


# ---- long-term fairness over leases -------------------------------------------------------------------------------


@pytest.mark.parametrize("starvation_s", [21600.0, 1200.0])
def test_astraea_charges_no_trial_for_its_pause(starvation_s: float) -> None:
    """Trials of 5600 s, rungs at 1400 and 2800 s, leases of 900 s, one accelerator. Each has one lease by 3600; then t0
    comes to the rung at 4100, t1 at 4600, t2 at 5100 and t3 at 5600; t0 and t2 resume. Both have run 1400 s, but t0
    deserved a quarter of 4100 s, t2 more: 1/4 until 4100, 1/3 until 4600, 1/2 until 5100. So t2 is first, though t0
    came before it. Turns of 900 s: t2, t0, t2, which pauses from 7900 at 2800 s; t0 comes there at 8400 and is better.
    A pause of 1500 s, as t0's, is no wait of 1200 s either.
    """
    result = play(Halving(2), policy=Astraea(delay_s=0.0, starvation_s=starvation_s), steps=5600.0)
    orders = [(m.at, one) for m, orders in result.story.moments for one in one_by_one(orders)]
    starts = [(at, one.job_id) for at, one in orders if isinstance(one, Start)]
    round_robin = [(0, "t0"), (900, "t1"), (1800, "t2"), (2700, "t3"), (3600, "t0"), (4100, "t1"), (4600, "t2")]
    assert starts == [*round_robin, (5100, "t3"), (5600, "t2"), (6500, "t0"), (7400, "t2"), (7900, "t0")]
    assert result.column("finished_s")["t0"] == 7900 + 500 + 2800
    d0, d2 = 4100 / 4, 4100 / 4 + 500 / 3 + 500 / 2
    later = 2300 / 2, 2300 / 2  # both from 5600 to 7900, then t0 alone until 8400, and after
    deserved = {"t0": d0 + later[0] + 500 + 2800, "t1": 4100 / 4 + 500 / 3, "t2": d2 + later[1], "t3": d2 + 500}
    assert result.claims("deserved") == pytest.approx(deserved)
    service, ltgf = result.column("attained_service_s"), result.column("ltgf")
    assert {name: service[name] / ltgf[name] for name in LOSS} == pytest.approx(deserved)
    assert service == {"t0": 5600, "t1": 1400, "t2": 2800, "t3": 1400}


@pytest.mark.parametrize("seed", range(10))
def test_under_astraea_a_rest_ends_the_lease_and_nothing_is_deserved_in_it(seed: int) -> None:
    """Random gangs beside a search. What each job deserved is added up again from the events, instant by instant;
    a paused trial holds no seats and receives none until it is resumed.
    """
    rng = np.random.default_rng(seed)
    some = [(float(rng.integers(0, 9000)), float(rng.integers(500, 9000)), int(rng.integers(1, 4))) for _ in range(6)]
    others = [
        Job(job_id=f"o{m}", submitted=at, total_steps=long, scale_factor=z, sequence=9 + m)
        for m, (at, long, z) in enumerate(sorted(some))
    ]
    result = play(Halving(2), 3, policy=Astraea(), others=others, steps=5600.0, size=int(rng.integers(1, 3)))
    assert result.story.of(JobPaused), "no job was paused: the test proves nothing"
    assert result.claims("deserved") == pytest.approx(
        _deserved(result.story, {job.job_id: job for job in result.jobs}, 3)
    )
    resting: set[str] = set()
    sitting: set[str] = set()
    for moment, orders in result.story.moments:
        of = {kind: {_job_id(e) for e in moment.events if isinstance(e, kind)} for kind in (JobPaused, *_ENDS_REST)}
        stopped = {name for order in orders if isinstance(order, Stop) for name in order.job_ids}
        assert of[JobPaused] & sitting <= stopped
        resting = (resting | of[JobPaused]).difference(*(of[kind] for kind in _ENDS_REST))
        started = {order.job_id for order in one_by_one(orders) if isinstance(order, Start)}
        renewed = {name for order in orders if isinstance(order, Renew) for name in order.job_ids}
        assert not resting & (started | renewed)
        sitting = (sitting - stopped) | started


_ENDS_REST = (JobResumed, JobCancelled)


def _deserved(story: Story, jobs: dict[str, Job], capacity: int) -> dict[str, float]:
    """Return ∫ min(z, capacity / jobs that are there) dt of each job, all weighing the same and of one tenant."""
    sums, there, since = dict.fromkeys(jobs, 0.0), set[str](), 0.0
    for moment, _ in story.moments:
        for name in there:
            sums[name] += min(jobs[name].scale_factor, capacity / len(there)) * (moment.at - since)
        since = moment.at
        for event in moment.events:
            if isinstance(event, JobSubmitted | JobResumed):
                there.add(_job_id(event))
            elif isinstance(event, JobPaused | JobCancelled | JobFinished):
                there.discard(_job_id(event))
    return sums


# ---- trials that are asked for ------------------------------------------------------------------------------------


def test_a_trial_that_has_not_been_asked_for_has_not_been_submitted() -> None:
    """Two at a time on four accelerators, and three at most: t0 and t1 at 0, t2 when they end at 8; t3 never."""
    result = play(Trials(parallel=2, most=3), 4)
    assert result.story.of(JobSubmitted, AppFinished) == [
        (0, "JobSubmitted", "t0"),
        (0, "JobSubmitted", "t1"),
        (8, "JobSubmitted", "t2"),
        (16, "AppFinished", "search"),
    ]
    assert result.column("submitted_s") == {"t0": 0, "t1": 0, "t2": 8}
    assert result.column("jct_s") == {"t0": 8, "t1": 8, "t2": 8}
    assert result.figures.apps["submitted_s"].tolist() == [0]
    assert result.figures.summary["jobs_submitted"] == 3


def test_asha_replaces_a_trial_that_it_gives_up() -> None:
    """η = 2, one rung more than at 2 steps is at 4; two at a time. At 2 t0 continues and t1, worse, stops: t2 starts.
    At 4 t2 is second of three at 2 steps and given up, t3 comes and is given up at 6. t0 is done at 8.
    """
    result = play(Halving(2, waits=False, parallel=2), 4)
    assert result.story.of(JobSubmitted, JobCancelled, JobPaused, AppFinished) == [
        (0, "JobSubmitted", "t0"),
        (0, "JobSubmitted", "t1"),
        (2, "JobSubmitted", "t2"),
        (2, "JobCancelled", "t1"),
        (4, "JobSubmitted", "t3"),
        (4, "JobCancelled", "t2"),
        (6, "JobCancelled", "t3"),
        (8, "AppFinished", "search"),
    ]


def test_the_published_asha_pauses_trials_and_promotes_them_before_new_ones_start() -> None:
    """The same four trials, two at a time. At 2 t0 is the better of two and goes on, t1 pauses, t2 starts. At 4 t0
    pauses on the second rung and t2 on the first, and t3 starts. At 6 t2 is second of four and goes on, so at 8 t0,
    better than t2 on the second rung, goes to its end.
    """
    result = play(LatePromotion(2, parallel=2), 4)
    kinds = JobSubmitted, JobPaused, JobResumed, JobCancelled, AppFinished
    assert sorted(result.story.of(*kinds)) == [
        (0, "JobSubmitted", "t0"),
        (0, "JobSubmitted", "t1"),
        (2, "JobPaused", "t1"),
        (2, "JobSubmitted", "t2"),
        (4, "JobPaused", "t0"),
        (4, "JobPaused", "t2"),
        (4, "JobSubmitted", "t3"),
        (6, "JobPaused", "t3"),
        (6, "JobResumed", "t2"),
        (8, "JobPaused", "t2"),
        (8, "JobResumed", "t0"),
        (12, "AppFinished", "search"),
        (12, "JobCancelled", "t1"),
        (12, "JobCancelled", "t2"),
        (12, "JobCancelled", "t3"),
    ]


# ---- what follows from a decision ---------------------------------------------------------------------------------


class Refusing:
    """Refuses jobs that have not run by a certain time; the others run in order of submission."""

    info = PolicyInfo(
        name="refusing",
        answer_type="order",
        objective="",
        technique="",
        paper="",
        needs=frozenset({"first_started"}),
        mechanism=RECALLABLE,
    )

    def __init__(self, by: float):
        self._by = by

    def decide(self, view: View) -> Order:
        """Return all jobs, and refuse those that are too late."""
        rows = np.arange(view.jobs)
        late = np.flatnonzero((view.first_started == np.inf) & (view.at >= self._by))
        return Order(Rows(rows, np.zeros_like(rows)), refuse=dict.fromkeys(late.tolist(), "too late"))


def test_what_a_user_wishes_when_a_trial_is_refused_happens_at_once() -> None:
    """Three trials reach their rung at 2, 4 and 6 and are paused; the fourth is refused at 6, and nothing else can
    happen. Its search receives the refusal at 6 and resumes the best two.
    """
    result = play(Halving(2), policy=Refusing(6))
    assert result.story.of(JobResumed) == [
        (6, "JobResumed", "t0"),
        (6, "JobResumed", "t2"),
        (8 + 2, "JobResumed", "t0"),
    ]
    refused = [(m.at, d.job_id) for m, decisions in result.story.moments for d in decisions if isinstance(d, Refuse)]
    assert refused == [(6, "t3")]
    assert result.column("status")["t0"] == "finished"
