"""The world in which everything can go wrong: by hand, against the plain world, and whatever is drawn."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.backends.simulated import FaultModel, Simulation
from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.backends.simulated.job_outcomes import OutcomeModel
from eunomia.backends.simulated.report_latency import ReportLatency
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.events import JobCancelled, NodeJoined, NodeLost
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.policies import load
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import draw
from eunomia.throughputs.interference import WITHIN, Pairs, PhillyNeighbours
from eunomia.throughputs.placed_throughputs import PlacedThroughputs
from eunomia.throughputs.placement import PhillySlowdowns, ThemisSlowdowns
from eunomia.throughputs.placement_level import ClusterUnits

from .conftest import Reported, Tell, Weather, play

APPROX = dict[str, Any](rel=1e-9, abs=1e-9)


def lost(reported: Reported) -> dict[str, float]:
    """Return what something was lost to, to nine digits."""
    return {what: round(amount, 9) for what, amount in reported.losses.lost.items() if abs(amount) > 1e-9}


# ---- one thing at a time, by hand ----------------------------------------------------------------------------------


def test_a_gang_on_two_machines_takes_its_slowdown_longer(tell: Tell) -> None:
    reported = tell(*[(100.0, 2)] * 3, machines=(3, 3), placement=ThemisSlowdowns())
    assert reported.finished == {"j0": 100.0, "j1": 100.0, "j2": pytest.approx(129.0)}  # vgg16, one on each machine
    assert reported.losses.useful == pytest.approx(600.0)
    assert lost(reported) == {"placement": pytest.approx(2 * 29.0)}


def test_a_gang_that_needs_two_machines_is_not_slowed_for_it_but_for_two_racks_it_is(tell: Tell) -> None:
    near = tell((100.0, 4), machines=(2, 2), placement=ThemisSlowdowns())
    assert near.finished == {"j0": 100.0}
    far = tell((100.0, 4), machines=(2, 2, 1), racks="abb", placement=ThemisSlowdowns())
    assert far.finished == {"j0": pytest.approx(100.0)}  # no rack has four
    farther = tell((50.0, 2), (100.0, 4), machines=(2, 2, 2), racks="abb", placement=ThemisSlowdowns())
    assert farther.finished["j1"] == pytest.approx(100.0 * 1.5 / 1.29)


def test_neighbours_slow_each_other_only_while_they_are_there(tell: Tell) -> None:
    reported = tell((100.0, 2), (300.0, 2), neighbours=PhillyNeighbours())
    first = 100 * WITHIN
    assert reported.finished == {"j0": pytest.approx(first), "j1": pytest.approx(first + 200.0)}
    assert lost(reported) == {"neighbours": pytest.approx(4 * (first - 100.0))}


def test_who_shares_accelerators_is_no_neighbour_of_its_partner(tell: Tell) -> None:
    policy = load("gandiva")()
    reported = tell((500.0, 2), (500.0, 2), machines=(2,), neighbours=PhillyNeighbours(), policy=policy)
    assert "neighbours" not in lost(reported)


def test_a_start_and_a_restore_are_reported_apart(tell: Tell) -> None:
    costs = Overheads(start_s=10.0, checkpoint_s=2.0, restore_s=3.0)
    reported = tell((100.0, 4), (100.0, 4), overheads=costs, policy=Las(quantum=60.0))
    assert lost(reported)["start"] == 2 * 4 * 10.0
    assert lost(reported)["restore"] % (4 * 5.0) == 0
    assert reported.losses.useful == pytest.approx(800.0)


def test_a_gang_that_failed_pays_no_checkpoint(tell: Tell) -> None:
    costs = Overheads(checkpoint_s=1000.0, restore_s=5.0)
    reported = tell((7200.0, 1), retries=9, overheads=costs, faults=FaultModel(job_failures_per_hour=1.0), seed=3)
    times = len(reported.failures)
    assert times > 0
    assert reported.finished == {"j0": pytest.approx(7200.0 + 5.0 * times)}
    assert lost(reported) == {"restore": pytest.approx(5.0 * times)}


def test_work_since_the_last_checkpoint_is_done_again_and_accounted_for(tell: Tell) -> None:
    reported = tell(
        (7200.0, 2), retries=99, checkpoint_every_s=1000.0, faults=FaultModel(job_failures_per_hour=1.0), seed=3
    )
    again = reported.finished["j0"] - 7200.0
    assert again > 0
    assert lost(reported) == {"rolled_back": pytest.approx(2 * again)}


def test_a_job_that_is_to_fail_fails_in_every_trial_and_all_its_work_is_lost(tell: Tell) -> None:
    reported = tell((5e6, 1), retries=2, faults=FaultModel(outcomes=OutcomeModel(failing=1.0, killed=0.0)))
    assert len(reported.failures) == 3
    assert reported.figures.jobs["status"].tolist() == ["failed"]
    assert reported.losses.useful == 0
    assert lost(reported) == {"failed_jobs": pytest.approx(reported.busy_accelerator_s)}


def test_a_job_that_is_to_fail_never_finishes_however_short_it_is(tell: Tell) -> None:
    reported = tell(*[(1.0, 1)] * 20, retries=1, faults=FaultModel(outcomes=OutcomeModel(failing=1.0, killed=0.0)))
    assert reported.finished == {}
    assert len(reported.failures) == 40


def test_a_killed_job_ends_before_its_last_step_and_its_work_is_lost(tell: Tell) -> None:
    reported = tell((1000.0, 2), faults=FaultModel(outcomes=OutcomeModel(failing=0.0, killed=1.0)))
    ((at, _),) = reported.events(JobCancelled)
    assert 0 < at < 1000
    assert lost(reported) == {"cancelled_jobs": pytest.approx(2 * at)}


def test_seats_stay_taken_until_word_of_the_end_comes(tell: Tell) -> None:
    reported = tell(
        (150.0, 4), (100.0, 4), faults=FaultModel(report_latency=ReportLatency(lost=1.0, reconcile_s=200.0))
    )
    assert reported.finished == {"j0": 200.0, "j1": 400.0}
    assert lost(reported) == {"unheard": 4 * (50.0 + 100.0)}


def test_a_job_that_was_stopped_after_an_unreported_end_only_has_to_be_started_to_say_so(tell: Tell) -> None:
    reports = ReportLatency(lost=1.0, reconcile_s=500.0)
    rounds = LeaseTerms(length_s=60.0, aligned=True)
    restore = Overheads(restore_s=40.0)
    faults = FaultModel(report_latency=reports)
    reported = tell((50.0, 4), (50.0, 4), faults=faults, overheads=restore, policy=Las(quantum=30.0), terms=rounds)
    assert Counter(reported.figures.jobs["status"].tolist()) == {"finished": 2}
    assert reported.losses.useful == pytest.approx(400.0)
    assert reported.figures.summary["preemptions"] > 0
    assert reported.losses.lost["restore"] == 0


def test_a_rack_that_is_lost_stops_the_gangs_on_all_its_machines(tell: Tell) -> None:
    faults = FaultModel(rack_failures_per_hour=2.0, rack_repair_s=60.0)
    reported = tell((36000.0, 2), (36000.0, 2), machines=(2, 2, 1), racks="aab", faults=faults, seed=1)
    losses = Counter(at for at, event in reported.events(NodeLost) if event != NodeLost(2))
    assert set(losses.values()) == {2}
    assert len(reported.events(NodeJoined)) in (len(reported.events(NodeLost)), len(reported.events(NodeLost)) - 2)
    assert min(reported.finished.values()) > 36000.0


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_job_may_end_as_its_trace_says(status: str) -> None:
    world = draw(3, jobs=2, types=1)
    jobs = tuple(replace(job, status=status, retries=1) for job in world.jobs)
    reported = play(replace(world, jobs=jobs), Weather(replay_status=True), Fifo())
    assert Counter(reported.figures.jobs["status"].tolist()) == {status: 2}
    assert reported.losses.useful == 0


# ---- against the plain world ---------------------------------------------------------------------------------------

TERMS = {
    "its own": None,
    "recall": LeaseTerms(recall=True),
    "rounds": LeaseTerms(length_s=60.0, aligned=True),
    "each its own end": LeaseTerms(length_s=77.7),
}
SEEDS = st.integers(0, 2**32 - 1)
SOME = st.sampled_from(
    ["fifo", "srtf", "las", "locality", "gandiva", "isolated"]
)  # every answer type, mechanism and pairs


@dataclass(frozen=True)
class Case:
    """A drawn world and how it is played."""

    seed: int
    policy: str
    terms: str
    weather: Weather

    def play(self, weather: Weather | None = None) -> Reported:
        world = draw(self.seed, elastic=self.seed % 2 == 0)
        policy: Policy = Las(quantum=400.0) if self.policy == "las" else load(self.policy)()
        return play(world, weather or self.weather, policy, TERMS[self.terms], self.seed % 1000)


COSTS = st.builds(
    Overheads,
    start_s=st.sampled_from([0.0, 5.0]),
    checkpoint_s=st.sampled_from([0.0, 3.0]),
    restore_s=st.sampled_from([0.0, 7.0]),
)


def calm_weather() -> st.SearchStrategy[Weather]:
    """What the plain world knows too."""
    faults = st.builds(
        FaultModel,
        job_failures_per_hour=st.sampled_from([0.0, 10.0]),
        cancel_fraction=st.sampled_from([0.0, 0.3]),
        cancel_after_s=st.just(300.0),
    )
    return st.builds(Weather, overheads=COSTS, faults=faults, checkpoint_every_s=st.sampled_from([0.0, 30.0]))


@settings(max_examples=60)
@given(st.builds(Case, SEEDS, SOME, st.sampled_from(sorted(TERMS)), calm_weather()))
def test_with_its_physics_off_it_is_the_plain_world(case: Case) -> None:
    world, policy = draw(case.seed, elastic=case.seed % 2 == 0), load(case.policy)()
    policy = Las(quantum=400.0) if case.policy == "las" else policy
    cut = TERMS[case.terms] or policy.info.mechanism
    ends, losses = [], []
    for kind in (Simulation, DetailedSimulation):
        speeds = PlacedThroughputs(world.speeds, ClusterUnits(world.topology))
        weather = case.weather
        mechanism = Leases(length=cut.length_s, aligned=cut.aligned, recall=cut.recall)
        scheduler = Scheduler(world.topology, policy.info, mechanism, Belief(speeds, weather.overheads))
        backend = kind(
            world.jobs,
            world.topology,
            speeds,
            overheads=weather.overheads,
            faults=weather.faults,
            checkpoint_every_s=weather.checkpoint_every_s,
            seed=case.seed % 1000,
        )
        ears = _Ends()
        run(scheduler, backend, InlinePolicyRunner(policy), [ears])
        ends.append(ears.at)
        losses.append(backend.losses(max(ears.at.values())))
    assert ends[0] == ends[1]
    plain, physical = losses
    assert {"useful": plain.useful, **plain.lost} == pytest.approx(
        {"useful": physical.useful, **physical.lost}, rel=1e-6, abs=1e-5
    )


class _Ends:
    """Hears when each job ended, or failed last."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def observe(self, moment: Any, decisions: Any) -> None:
        self.at |= {f"{type(e).__name__} {e.job_id}": moment.at for e in moment.events if hasattr(e, "job_id")}


# ---- whatever is drawn ---------------------------------------------------------------------------------------------


def stormy_weather() -> st.SearchStrategy[Weather]:
    """Everything at once."""
    reports = st.builds(ReportLatency, delay_s=st.sampled_from([0.0, 20.0]), lost=st.sampled_from([0.0, 0.3]),
                        reconcile_s=st.just(100.0))  # fmt: skip
    faults = st.builds(
        FaultModel,
        job_failures_per_hour=st.sampled_from([0.0, 5.0]),
        node_failures_per_hour=st.sampled_from([0.0, 1.0]),
        node_repair_s=st.just(600.0),
        rack_failures_per_hour=st.sampled_from([0.0, 0.5]),
        rack_repair_s=st.just(300.0),
        repairs_fixed=st.booleans(),
        cancel_fraction=st.sampled_from([0.0, 0.3]),
        cancel_after_s=st.just(300.0),
        outcomes=st.sampled_from([None, OutcomeModel(), OutcomeModel(failing=0.5, killed=0.3)]),
        report_latency=reports,
    )
    return st.builds(
        Weather,
        placement=st.sampled_from([None, ThemisSlowdowns(), PhillySlowdowns()]),
        neighbours=st.sampled_from([None, PhillyNeighbours()]),
        pairs=st.sampled_from([None, Pairs()]),
        accelerators_per_slot=st.sampled_from([0, 2]),
        overheads=COSTS,
        faults=faults,
        checkpoint_every_s=st.sampled_from([0.0, 30.0]),
    )


STORMY = st.builds(Case, SEEDS, SOME, st.sampled_from(sorted(TERMS)), stormy_weather())


@settings(max_examples=60)
@given(STORMY)
def test_whatever_goes_wrong_every_job_ends_and_every_accelerator_second_is_accounted_for(case: Case) -> None:
    reported = case.play()
    assert "unfinished" not in reported.figures.jobs["status"].tolist()
    assert reported.losses.held == pytest.approx(reported.busy_accelerator_s, rel=1e-6, abs=1e-6)
    assert all(amount >= -1e-6 for what, amount in reported.losses.lost.items() if what != "sharing")
    assert reported.losses.useful == pytest.approx(_work_of_the_finished(case, reported), rel=1e-6, abs=1e-6)


def _work_of_the_finished(case: Case, reported: Reported) -> float:
    """Return what the finished jobs' steps take alone; on several types or in several shapes they have no one price."""
    world = draw(case.seed, elastic=case.seed % 2 == 0)
    if len(world.topology.types) > 1 or any(job.other_shapes for job in world.jobs):
        return reported.losses.useful
    done = [job for job in world.jobs if job.job_id in reported.finished]
    alone = [world.speeds.solo_throughput(job.job_type, job.scale_factor)[0] for job in done]
    return float(sum(job.total_steps * job.scale_factor / rate for job, rate in zip(done, alone, strict=True)))


@settings(max_examples=10)
@given(STORMY)
def test_the_same_seed_tells_the_same_story(case: Case) -> None:
    first, again = case.play(), case.play()
    assert [moment.at for moment, _ in first.story] == [moment.at for moment, _ in again.story]
    assert first.losses == again.losses


def test_each_kind_of_chance_has_a_stream_of_its_own() -> None:
    world = draw(11, jobs=25, types=1)
    fates = FaultModel(outcomes=OutcomeModel(failing=0.5, killed=0.3))
    everything = replace(
        fates,
        node_failures_per_hour=1.0,
        report_latency=ReportLatency(delay_s=30.0),
        job_failures_per_hour=1.0,
        cancel_fraction=0.1,
    )
    ends = []
    for faults in (fates, everything):
        reported = play(world, Weather(faults=faults), Fifo(backfill="skip"), seed=5)
        ends.append(dict(zip(reported.figures.jobs["job_id"], reported.figures.jobs["status"], strict=True)))
    changed = [name for name in ends[0] if ends[0][name] != ends[1][name]]
    assert len(changed) <= 6  # cancelled early, or killed by chance without a retry left


def test_times_never_run_backwards_and_no_gang_works_faster_than_the_truth() -> None:
    world = draw(21, jobs=25, types=1)
    reported = play(world, Weather(placement=ThemisSlowdowns(), neighbours=PhillyNeighbours()), Fifo(backfill="skip"))
    assert np.all(np.diff([moment.at for moment, _ in reported.story]) >= 0)
    started = dict(zip(reported.figures.jobs["job_id"], reported.figures.jobs["first_started_s"], strict=True))
    for job in world.jobs:
        alone = float(world.speeds.solo_throughput(job.job_type, job.scale_factor)[0])
        assert reported.finished[job.job_id] - started[job.job_id] >= job.total_steps / alone - 1e-6
        assert math.isfinite(reported.finished[job.job_id])
