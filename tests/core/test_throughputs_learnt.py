"""Throughputs that are learnt from the progress of gangs: what is measured, what follows from it, what is tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eunomia
from eunomia.core.belief import Belief
from eunomia.inputs.problems import InvalidInput
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import (
    Event,
    JobFailed,
    JobFinished,
    JobSubmitted,
    PairsEstimated,
    Progressed,
    ThroughputsLearnt,
)
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import Result
from eunomia.runs.throughput_learning import LearningSettings, ThroughputLearner, learning_note
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.throughputs import Throughputs
from eunomia.throughputs.estimators.learnt_throughputs import NOISE, LearntThroughputs
from eunomia.throughputs.measured_table import MeasuredThroughputs, Measurements

FAST, SLOW = 0, 1  # rows of the types, and the seat of each
SIGMA = 0.5
SMALL: Mapping[str, Any] = {
    "seed": 3,
    "check": True,
    "cluster": {"accelerators": {"v100": 2, "k80": 2}, "accelerators_per_node": 2},
    "workload": {"generator": "poisson", "jobs": 15, "rate_per_hour": 12.0},
    "policy": {"name": "max_min_fairness"},
}


def table(rates: Mapping[str, tuple[float, float]], sizes: tuple[int, ...] = (1,)) -> Throughputs:
    alone = {
        (type, job, size): rate * size
        for job, both in rates.items()
        for type, rate in zip(("fast", "slow"), both, strict=True)
        for size in sizes
    }
    return Throughputs(("fast", "slow"), MeasuredThroughputs(("fast", "slow"), Measurements("by hand", alone, {})))


def learner(prior: Throughputs, **settings: Any) -> ThroughputLearner:
    defaults: dict[str, Any] = {"measure_s": 60.0, "explore": 0.0, "tolerance": 0.02, "trial_s": 360.0}
    doubt = LearntThroughputs(prior, lambda job_type, size: (np.full(2, SIGMA), 0.5))
    topology = Topology.of([Node(type="fast", accelerators=1), Node(type="slow", accelerators=1)])
    return ThroughputLearner(doubt, topology, LearningSettings(**{**defaults, **settings}))


def job(name: str, kind: str = "a", steps: float = 1000.0) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, job_type=kind, total_steps=steps))


def start(name: str, seat: int, partner: str | None = None) -> Start:
    more = {} if partner is None else {"partner_id": partner, "partner_epoch": 1}
    return Start(name, 1, (seat,), math.inf, **more)


def rates(events: list[Event]) -> Floats:
    (event,) = events
    assert isinstance(event, ThroughputsLearnt)
    return event.throughput[0]


# ---- what is measured -----------------------------------------------------------------------------------------


def test_steps_from_the_first_report_to_one_a_measurement_later_are_the_speed() -> None:
    found = learner(table({"a": (10.0, 5.0)}))
    assert found.take(0.0, [job("1")]) == []
    found.order(0.0, start("1", SLOW))
    assert found.take(5.0, [Progressed(("1",), (0.0,))]) == []  # loading took 5 s
    assert found.take(64.0, [Progressed(("1",), (118.0,))]) == []  # less than a measurement
    (event,) = found.take(65.0, [Progressed(("1",), (120.0,))])
    assert isinstance(event, ThroughputsLearnt)
    assert (event.job_types, event.scale_factors) == (("a",), (1,))
    assert event.throughput[0, SLOW] == pytest.approx(2.0, rel=1e-9)  # 120 steps in 60 s
    # on the other type: half of how far off it was here, in the logarithm, less the noise of one measurement
    shrunk = 0.5 * math.log(2.0 / 5.0) / (1.0 + NOISE / SIGMA**2)
    assert event.throughput[0, FAST] == pytest.approx(10.0 * math.exp(shrunk), rel=1e-9)
    assert event.measured_s.tolist() == [[0.0, 60.0]] and not event.tried.any()


def test_later_measurements_count_half_and_are_reported_only_when_they_move_it() -> None:
    found = learner(table({"a": (10.0, 5.0)}), tolerance=0.1)
    found.take(0.0, [job("1", steps=1e6)])
    found.order(0.0, start("1", FAST))
    found.take(0.0, [Progressed(("1",), (0.0,))])
    assert (
        rates(found.take(60.0, [Progressed(("1",), (600.0,))]))[FAST] == 10.0
    )  # as it was: reported once, as measured
    assert found.take(120.0, [Progressed(("1",), (600.0 + 660.0,))]) == []  # 11 steps/s: 10.5 is within a tenth
    moved = rates(found.take(180.0, [Progressed(("1",), (1260.0 + 900.0,))]))  # 15 steps/s
    assert moved[FAST] == pytest.approx((10.5 + 15.0) / 2, rel=1e-9)


@pytest.mark.parametrize("ends", ["fails", "stops", "shares", "falls back"])
def test_a_gang_that_does_not_run_on_alone_is_not_measured(ends: str) -> None:
    found = learner(table({"a": (10.0, 5.0)}))
    found.take(0.0, [job("1"), job("2")])
    found.order(0.0, start("1", FAST, partner="2" if ends == "shares" else None))
    found.take(0.0, [Progressed(("1",), (300.0,))])
    late: tuple[Event, ...] = (Progressed(("1",), (290.0 if ends == "falls back" else 900.0,)),)
    if ends == "fails":
        late = (*late, JobFailed("1", 1, "chance"))
    if ends == "stops":
        found.order(50.0, Stop(("1",), (1,)))
    assert found.take(100.0, late) == []


def test_a_gang_spread_over_machines_is_measured_as_on_one_where_that_differs() -> None:
    alone = {("fast", "a", 2): 10.0, ("slow", "a", 2): 4.0, ("fast_unconsolidated", "a", 2): 5.0}
    prior = Throughputs(("fast", "slow"), MeasuredThroughputs(("fast", "slow"), Measurements("by hand", alone, {})))
    for spreads, expected in ((True, 16.0), (False, 8.0)):
        found = learner(prior, spreads=spreads)
        found.topology = Topology.of([Node(type="fast", accelerators=1)] * 2 + [Node(type="slow", accelerators=2)])
        found.take(0.0, [JobSubmitted(Job(job_id="1", job_type="a", total_steps=1e4, scale_factor=2))])
        found.order(0.0, Start("1", 1, (0, 1), math.inf))
        found.take(0.0, [Progressed(("1",), (0.0,))])
        assert rates(found.take(60.0, [Progressed(("1",), (480.0,))]))[FAST] == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.tuples(st.sampled_from([FAST, SLOW]), st.floats(0.01, 1e4)), min_size=1, max_size=6), st.booleans())
def test_what_was_measured_is_believed_whatever_was_stated_and_0_stays_0(
    measured: list[tuple[int, float]], can_run: bool
) -> None:
    found = learner(table({"a": (10.0, 5.0 if can_run else 0.0)}), tolerance=0.0)
    found.take(0.0, [job("1", steps=1e12)])
    at, steps, last = 0.0, 0.0, dict[int, float]()
    for seat, rate in measured:
        for _ in range(40):  # the average reaches what is measured again and again
            found.order(at, start("1", seat))
            found.take(at, [Progressed(("1",), (steps,))])
            at, steps = at + 60.0, steps + 60.0 * rate
            found.take(at, [Progressed(("1",), (steps,))])
        last[seat] = rate
    believed = found.learnt.rates("a", 1).median
    assert np.isfinite(believed).all()
    for seat, rate in last.items():
        assert believed[seat] == pytest.approx(rate if seat == FAST or can_run else 0.0, rel=1e-3)
    assert (believed[SLOW] > 0) == can_run


def test_the_last_report_of_the_start_before_begins_no_measurement() -> None:
    found = learner(table({"a": (10.0, 5.0)}), tolerance=0.0)
    found.take(0.0, [job("1", steps=1e6)])
    found.order(0.0, start("1", FAST))
    found.take(0.0, [Progressed(("1",), (0.0,))])
    found.order(50.0, Stop(("1",), (1,)))
    found.order(51.0, start("1", FAST))
    assert found.take(52.0, [Progressed(("1",), (400.0,))]) == []  # what it saved when it was stopped
    assert found.take(122.0, [Progressed(("1",), (500.0,))]) == []  # the first step of the new start, which began late
    assert rates(found.take(182.0, [Progressed(("1",), (980.0,))]))[FAST] == 8.0


# ---- what is tried --------------------------------------------------------------------------------------------


def test_a_type_is_tried_while_that_is_short_beside_what_is_left_to_gain() -> None:
    # the fastest type does 10 steps/s, so 36,000 steps are an hour; a trial of 360 s may be a tenth of that
    high = math.exp(1.2815515655446004 * SIGMA)
    prior = table({"a": (10.0, 5.0)})
    found = learner(prior, explore=0.1)
    assert found.take(0.0, [job("1", steps=18_000.0)]) == []  # half an hour: 360 s are a fifth
    event = found.take(10.0, [job("2", steps=18_000.0)])[0]
    assert isinstance(event, ThroughputsLearnt)
    assert event.tried.tolist() == [[True, True]]
    np.testing.assert_allclose(event.throughput, [[10.0 * high, 5.0 * high]], rtol=1e-9)
    assert rates(found.take(20.0, [JobFinished("2", 1)])).tolist() == [10.0, 5.0]  # and no longer
    assert learner(prior).take(0.0, [job("1", steps=1e9)]) == []  # explore = 0


def test_a_trial_that_cannot_be_ended_has_to_be_worth_a_whole_job() -> None:
    prior = table({"a": (10.0, 5.0)})
    alone = learner(prior, explore=0.1, trial_s=math.inf)
    assert alone.take(0.0, [job(str(m), steps=1e5) for m in range(9)]) == []
    assert alone.take(1.0, [job("9", steps=1e5)]) != []  # one of ten


@pytest.mark.parametrize("ends", ["fails", "reports nothing", "reports the same steps"])
def test_a_type_on_which_nothing_can_be_measured_is_tried_three_times(ends: str) -> None:
    found = learner(table({"a": (10.0, 5.0)}), explore=0.5)
    found.take(0.0, [job("1", steps=1e6), job("2", steps=1e6)])
    seen = list[Event]()
    for at in (100.0, 200.0, 300.0):
        assert found.given_up() == []
        found.order(at, start("1", SLOW))
        if ends == "fails":
            seen = found.take(at + 5.0, [JobFailed("1", 1, "chance")])
            continue
        if ends == "reports the same steps":
            found.take(at, [Progressed(("1",), (0.0,))])
            seen = found.take(at + 60.0, [Progressed(("1",), (0.0,))])
        found.order(at + 60.0, Stop(("1",), (1,)))
        if ends == "reports nothing":
            seen = found.take(at + 60.0, [])
    (event,) = seen
    assert isinstance(event, ThroughputsLearnt)
    assert event.tried.tolist() == [[True, False]]  # the other type still is
    assert event.throughput[0, SLOW] == 5.0  # as stated
    assert event.failed is not None and event.failed.tolist() == [[0, 3]]
    assert found.given_up() == [(("a", 1), SLOW)]
    assert "not tried any more after 3 starts without progress: a on 1 slow" in learning_note(found, 1e6)
    assert found.take(400.0, [job("3", steps=1e6)]) == []


def test_a_measurement_after_all_ends_that_a_type_is_given_up() -> None:
    found = learner(table({"a": (10.0, 5.0)}), explore=0.5)
    found.take(0.0, [job("1", steps=1e6)])
    for at in (100.0, 200.0, 300.0):
        found.order(at, start("1", SLOW))
        found.take(at + 5.0, [JobFailed("1", 1, "chance")])
    found.order(400.0, start("1", SLOW))
    found.take(400.0, [Progressed(("1",), (10.0,))])
    found.take(430.0, [Progressed(("1",), (20.0,))])  # may be what the start before saved
    (event,) = found.take(500.0, [Progressed(("1",), (300.0,))])
    assert isinstance(event, ThroughputsLearnt) and event.failed is None
    assert found.given_up() == []


def test_a_learner_that_takes_moments_of_a_record_learns_what_the_first_one_did() -> None:
    first, again = (learner(table({"a": (10.0, 5.0)}), explore=0.5, tolerance=0.0) for _ in range(2))
    moments: list[tuple[float, int | None, list[Event]]] = [
        (0.0, FAST, [job("1", steps=1e6)]),
        (0.0, None, [Progressed(("1",), (0.0,))]),
        (60.0, None, [Progressed(("1",), (600.0,))]),
        (120.0, None, [Progressed(("1",), (1800.0,))]),  # twice as fast: the average of both
        (200.0, SLOW, [JobFailed("1", 1, "chance")]),
        (210.0, None, [JobFailed("1", 2, "chance")]),
    ]
    for at, seat, events in moments:
        again.take(at, [*events, *first.take(at, events)])
        for one in (first, again) if seat is not None else ():
            one.order(at, start("1", seat))
        known, twice = first.learnt.rates("a", 1), again.learnt.rates("a", 1)
        assert (known.median.tolist(), known.measured_s.tolist()) == (twice.median.tolist(), twice.measured_s.tolist())
        assert first._failed == again._failed
    assert (known.median[FAST], known.measured_s[FAST]) == (15.0, 120.0)
    assert first._failed == {(("a", 1), SLOW): 1}


@pytest.mark.parametrize("ends", ["stopped soon", "measured"])
def test_a_start_that_says_nothing_of_a_type_or_measures_it_does_not_count_against_it(ends: str) -> None:
    found = learner(table({"a": (10.0, 5.0)}), explore=0.5)
    found.take(0.0, [job("1", steps=1e6)])
    for at in (100.0, 200.0, 300.0, 400.0):
        found.order(at, start("1", SLOW))
        if ends == "measured":
            found.take(at, [Progressed(("1",), (at,))])
            found.take(at + 60.0, [Progressed(("1",), (at + 60.0,))])
        found.order(at + (60.0 if ends == "measured" else 50.0), Stop(("1",), (1,)))
    assert found.given_up() == []


def test_what_trials_cost_and_gained_is_counted() -> None:
    found = learner(table({"a": (10.0, 5.0)}), explore=0.5)
    found.take(0.0, [job("1", steps=1e6)])
    for seat, at, steps, rate in ((SLOW, 0.0, 0.0, 20.0), (SLOW, 100.0, 1200.0, 20.0), (FAST, 200.0, 2400.0, 10.0)):
        found.order(at, start("1", seat))
        found.take(at, [Progressed(("1",), (steps,))])
        found.take(at + 60.0, [Progressed(("1",), (steps + 60.0 * rate,))])
        found.order(at + 100.0, Stop(("1",), (1,)))
    account = found.account
    assert (account.tried, account.better, account.held) == (2, 1, 120.0)
    # the fast type, tried last, does 10 steps/s and the other 20 by then: half of the 60 s of its trial were lost
    assert account.lost == pytest.approx(30.0)
    fast = 10.0 * math.exp(0.5 * math.log(20.0 / 5.0) / (1.0 + NOISE / SIGMA**2))  # as believed when the second ended
    assert account.saved == pytest.approx(100.0 * (20.0 / fast - 1.0))


# ---- what is believed -----------------------------------------------------------------------------------------


def test_a_belief_changes_rates_of_pairs_spread_gangs_and_shapes_in_proportion() -> None:
    alone = {(t, k, n): r * n for t, k, r in (("fast", "a", 10.0), ("fast", "b", 6.0)) for n in (1, 2)}
    alone |= {("fast_unconsolidated", "a", 2): 12.0}
    pairs = {("fast", one, other, 1): 4.0 for one, other in ("ab", "ba")}
    belief = Belief(Throughputs(("fast",), MeasuredThroughputs(("fast",), Measurements("by hand", alone, pairs))))
    for name, kind, size in (("1", "a", 1), ("2", "b", 1), ("3", "a", 2)):
        belief.learn(Job(job_id=name, job_type=kind, scale_factor=size, total_steps=1.0))
    belief.paired(), belief.spread_throughput(np.array([2]))
    some = np.zeros((2, 1))
    belief.learn_throughputs(ThroughputsLearnt(("a", "a"), (1, 2), np.array([[5.0], [30.0]]), some, some.astype(bool)))
    assert belief.throughput[:3, 0].tolist() == [5.0, 6.0, 30.0]
    assert belief.paired()[0, 1, 0] == 2.0 and belief.paired()[1, 0, 0] == 4.0
    assert belief.spread_throughput(np.array([2]))[0, 0] == 18.0
    belief.estimate_pairs(PairsEstimated(("a",), ("b",), np.array([[0.7]])))
    assert belief.paired()[0, 1, 0] == pytest.approx(3.5)
    belief.learn(Job(job_id="4", job_type="a", total_steps=1.0))
    assert belief.throughput[3, 0] == 5.0


def run(belief: Mapping[str, Any], record_to: Path | None = None, **more: Any) -> Result:
    return eunomia.simulate({**SMALL, "belief": dict(belief), **more}, record_to=record_to)


MEASURED: Mapping[str, Any] = {"kind": "measured", "error": 0.5, "tolerance": 0.0}


def test_after_a_run_every_measured_throughput_is_the_true_one_and_the_record_replays(tmp_path: Path) -> None:
    found = run(MEASURED, tmp_path / "record.jsonl.gz")
    assert found.record is not None and first_difference(found.record) is None
    truth = set_up(scenario_from_dict({**SMALL}, Path())).truth
    events = [
        event
        for _, moment, _ in found.record.steps()
        for event in moment.events
        if isinstance(event, ThroughputsLearnt)
    ]
    measured = 0
    for event in events:
        for place, kind in enumerate(zip(event.job_types, event.scale_factors, strict=True)):
            known = event.measured_s[place] > 0
            measured += int(known.sum())
            np.testing.assert_allclose(event.throughput[place][known], truth.solo_throughput(*kind)[known], rtol=1e-9)
    assert measured > 10
    assert any("were measured" in note and "Until they were measured, trials held" in note for note in found.notes)


@pytest.mark.parametrize(
    "more",
    [
        {"policy": {"name": "srtf"}},
        {"policy": {"name": "themis"}},
        {"policy": {"name": "max_min_fairness", "space_sharing": True}},
        {"policy": {"name": "las"}, "overheads": {"restore_s": 30.0, "start_s": 20.0}},
        {"policy": {"name": "max_min_fairness"}, "physics": {"placement": "throughputs", "report_delay_s": 5.0}},
        {"policy": {"name": "srtf"}, "world": {"job_failures_per_hour": 0.5}},
        {"policy": {"name": "optimus"}, "workload": {**SMALL["workload"], "elastic": "halves"}},
    ],
    ids=["order", "grants", "pairs", "overheads", "placement", "failures", "shapes"],
)
def test_speeds_are_learnt_whatever_the_policy_answers_and_the_world_does(more: dict[str, Any], tmp_path: Path) -> None:
    found = run(MEASURED, tmp_path / "record.jsonl.gz", **more)
    assert found.summary["jobs_unfinished"] == 0 and found.summary["jobs_finished"] > 5
    assert found.record is not None and first_difference(found.record) is None
    assert int(found.notes[-1].split()[0]) > 10  # of 26 throughputs were measured


def test_without_doubt_nothing_is_learnt_that_was_not_known() -> None:
    # the truth is stated, so nothing is tried, and further asks get the answers of true throughputs
    known, found = (run({"kind": kind}, policy={"name": "srtf"}).summary for kind in ("oracle", "measured"))
    assert found["jct_mean_s"] == pytest.approx(known["jct_mean_s"], rel=1e-9)


def test_a_job_type_without_a_row_begins_as_a_typical_one_and_is_measured(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(
        "type,job_type,scale_factor,steps_per_s\nv100,a,1,10\nv100,b,1,20\nv100,c,1,90\nk80,a,1,2\nk80,b,1,5\nk80,c,1,8\n"
    )
    (tmp_path / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,total_steps\n1,0,1,a,9000\n2,1,1,new,90000\n"
    )
    scenario = {
        "cluster": {"accelerators": {"v100": 1, "k80": 1}},
        "workload": {"trace": str(tmp_path / "jobs.csv")},
        "throughputs": {"source": str(tmp_path / "rates.csv"), "draw": True},
        "policy": {"name": "max_min_fairness"},
    }
    with pytest.raises(InvalidInput, match="there are no throughputs for this job type"):
        eunomia.simulate({**scenario, "belief": {"kind": "oracle"}})
    record = tmp_path / "record.jsonl.gz"
    found = eunomia.simulate({**scenario, "belief": {"kind": "measured"}}, record_to=record)
    assert found.summary["jobs_finished"] == 2
    setup = set_up(scenario_from_dict({**scenario, "belief": {"kind": "measured"}}, Path()))
    assert setup.believed.solo_throughput("new", 1).tolist() == [20.0, 5.0]  # medians
    assert found.record is not None
    last = [e for _, m, _ in found.record.steps() for e in m.events if isinstance(e, ThroughputsLearnt)]
    new = {e.job_types[i]: e for e in last for i in range(len(e.job_types))}["new"]
    assert (new.measured_s[new.job_types.index("new")] > 0).any()


@pytest.mark.parametrize(
    ("belief", "rule"),
    [
        ({"kind": "noisy", "measure_s": 30.0}, "it is an option of measured throughputs"),
        ({"explore": 0.5}, "it is an option of measured throughputs"),
        ({"kind": "measured", "profiled": 0.5}, "it is an option of estimated throughputs"),
        ({"kind": "measured", "measure_s": 0.0}, "above 0"),
    ],
)
def test_options_that_say_nothing_are_refused(belief: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        scenario_from_dict({**SMALL, "belief": belief}, Path())


def test_a_simulation_in_which_nothing_can_be_learnt_says_so() -> None:
    assert any("there is nothing to learn" in note for note in run({"kind": "measured"}).notes)
    assert not any("nothing to learn" in note for note in run(MEASURED).notes)


def test_the_ideal_mechanism_measures_nothing() -> None:
    with pytest.raises(
        InvalidInput, match=r'\[belief\] kind is "measured"; under the mechanism ideal no gang has seats'
    ):
        run({"kind": "measured"}, mechanism={"name": "ideal"})


def test_gavels_rounds_take_the_truth_only() -> None:
    with pytest.raises(InvalidInput, match="is not the truth"):
        run({"kind": "measured"}, mechanism={"name": "gavel"})
