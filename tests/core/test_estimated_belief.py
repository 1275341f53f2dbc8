"""Beliefs that are estimated: they arrive as events, are recorded and replay, and policies see the median."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import eunomia
from eunomia.cli.app import app
from eunomia.core.belief import Belief, median_left
from eunomia.inputs.problems import InvalidInput
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import Estimated, JobSubmitted, Moment, PairsEstimated
from eunomia.model.job import Job
from eunomia.policies.order.srtf import Srtf
from eunomia.records.explain import explain
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.scenario import scenario_from_dict
from eunomia.setup.belief_estimate import EstimatedSpeeds
from eunomia.setup.run_config import set_up
from eunomia.throughputs.job_type_facts import gavel_job_types

if TYPE_CHECKING:
    from .conftest import Sit

SMALL: Mapping[str, Any] = {
    "seed": 3,
    "cluster": {"accelerators": {"v100": 4, "k80": 4}},
    "workload": {"generator": "poisson", "jobs": 40, "rate_per_hour": 12.0},
    "policy": {"name": "srtf"},
}


class TwoTypes:
    """Jobs of 2 steps/s on the first type, and half of that on the second."""

    types = ("fast", "slow")

    def solo_throughput(self, job_type: str, scale_factor: int) -> np.ndarray:
        return np.array([2.0, 1.0])

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> np.ndarray:
        return np.zeros(2)


def test_what_is_left_is_the_median_given_that_it_has_lasted() -> None:
    rng = np.random.default_rng(0)
    u = rng.random(400_000)
    total = 100.0 * (u / (1 - u)) ** (1 / 1.5)  # log-logistic with median 100 and steepness 1.5
    for done in (0.0, 50.0, 400.0):
        by_hand = np.median(total[total > done]) - done
        found = median_left(np.array([100.0]), np.array([1.5]), np.array([done]))[0]
        assert found == pytest.approx(by_hand, rel=0.02)


def test_an_estimate_counts_on_the_fastest_type_and_a_declaration_replaces_it() -> None:
    belief = Belief(TwoTypes())
    row = belief.learn(Job(job_id="a", total_steps=7.0))
    belief.estimate(row, Estimated("a", 50.0, 5.0, 500.0, 9))
    assert belief.remaining_at(0.0, np.array([row]))[0] == pytest.approx(100.0)
    belief.declare(row, 30.0)
    assert belief.remaining_at(0.0, np.array([row]))[0] == 30.0
    assert belief.estimates == {}


def test_an_estimate_is_sorted_behind_the_submission_of_its_job() -> None:
    job = Job(job_id="a", total_steps=1.0)
    events = Moment.of(0.0, [Estimated("a", 1.0, 0.5, 2.0), JobSubmitted(job)]).events
    assert [type(event) for event in events] == [JobSubmitted, Estimated]


@pytest.mark.parametrize("duration", ["history", "none"])
def test_estimates_are_recorded_and_replay_identically(tmp_path: Path, duration: str) -> None:
    found = eunomia.simulate({**SMALL, "belief": {"duration": duration}}, record_to=tmp_path / "record.jsonl.gz")
    assert found.record is not None
    assert first_difference(found.record) is None
    assert found.summary["jobs_finished"] == 40
    assert any("Run times of jobs are" in note for note in found.notes)


def test_an_estimate_that_moves_by_more_than_its_tolerance_asks_again_and_replays(tmp_path: Path) -> None:
    run = {
        each: eunomia.simulate(
            {**SMALL, "belief": {"duration": "history", "tolerance": each}}, record_to=tmp_path / f"{each}.jsonl.gz"
        )
        for each in (0.2, 1e9)
    }
    moments = {each: [moment for _, moment, _ in found.record.steps()] for each, found in run.items() if found.record}
    last: dict[str, float] = {}
    for event in (event for moment in moments[0.2] for event in moment.events):
        if isinstance(event, Estimated):
            before = last.get(event.job_id, event.run_s)
            assert event.run_s == before or max(event.run_s / before, before / event.run_s) > 1.2
            last[event.job_id] = event.run_s
    count = {each: sum(isinstance(e, Estimated) for m in found for e in m.events) for each, found in moments.items()}
    assert count[1e9] == 40 < count[0.2]
    assert run[0.2].record is not None and first_difference(run[0.2].record) is None


def test_an_estimate_alone_asks_the_policy_again_and_may_turn_its_order(sit: Sit) -> None:
    desk = sit(Srtf(), (1,))
    desk.submit(0.0, "a", "b")
    asked = len(desk.asks)
    decided = desk.tell(10.0, Estimated("b", 5.0, 1.0, 25.0, 7))
    assert len(desk.asks) == asked + 1
    assert [type(each) for each in decided] == [Stop, Start] and decided[1].job_id == "b"
    desk.tell(11.0, PairsEstimated(("resnet",), ("resnet",), np.array([[0.5]]), 3))
    assert len(desk.asks) == asked + 2


def test_a_tolerance_needs_run_times_from_history() -> None:
    with pytest.raises(InvalidInput, match='write duration = "history"'):
        eunomia.simulate({**SMALL, "belief": {"tolerance": 0.5}})


def test_an_explanation_says_what_a_run_time_rests_on(tmp_path: Path) -> None:
    found = eunomia.simulate({**SMALL, "belief": {"duration": "history"}}, record_to=tmp_path / "record.jsonl.gz")
    assert found.record is not None
    text = explain(found.record, str(found.jobs["job_id"][-1])).estimate
    assert text is not None
    assert "measurements of like jobs, 80 % between" in text
    declared = eunomia.simulate(SMALL, record_to=tmp_path / "declared.jsonl.gz")
    assert declared.record is not None
    assert "estimate" not in explain(declared.record, str(declared.jobs["job_id"][-1])).as_dict()


def test_the_jobs_and_the_notes_of_a_run_have_the_intervals_and_what_came_of_them() -> None:
    found = eunomia.simulate({**SMALL, "belief": {"duration": "none"}})
    assert (found.jobs["estimated_run_s"] == 3600.0).all()
    low, high = found.jobs["estimated_run_p10_s"], found.jobs["estimated_run_p90_s"]
    speeds = set_up(scenario_from_dict(SMALL, Path()))
    run_s = [
        job.total_steps / speeds.truth.solo_throughput(job.job_type, job.scale_factor).max() for job in speeds.jobs
    ]
    inside = ((low <= run_s) & (run_s <= high)).sum()
    assert 0 < inside < 40
    assert any(f"hold {inside} of 40 finished jobs" in note for note in found.notes)
    declared = eunomia.simulate(SMALL)
    assert "estimated_run_s" not in declared.jobs
    assert not any("finished jobs" in note for note in declared.notes)


SAID = r"estimated from [\d,]+ measurements? of like jobs, 80 % between [\d.,]+( s)? and [\d.,]+( s)?"


@pytest.mark.parametrize(
    ("belief", "of"),
    [("duration = 'history'", "its run time of .* s is "), ("kind = 'estimated'", r"it keeps 0\.\d\d of its speed .*")],
)
def test_report_explanation_and_json_say_how_sure_an_estimate_is(tmp_path: Path, belief: str, of: str) -> None:
    path, out = tmp_path / "mine.toml", tmp_path / "out"
    path.write_text(
        "[cluster]\naccelerators = {v100 = 4, k80 = 4}\n[workload]\ngenerator = 'poisson'\njobs = 12\n"
        f"[policy]\nname = 'max_min_fairness'\nspace_sharing = true\n[belief]\n{belief}\n"
    )
    ran = CliRunner().invoke(app, ["simulate", str(path), "--out", str(out), "--record", "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)["estimates"]  # the others are of the catalogue's throughputs
    (sentence,) = (each for each in found if re.search(SAID, each))
    assert html.escape(sentence, quote=False) in (out / "report.html").read_text()
    record, said = Record(out), list[str]()
    for job in (event.job for _, moment, _ in record.steps() for event in moment.events if type(event) is JobSubmitted):
        words = ["explain", job.job_id, "--record", str(out), "--json"]
        said += [json.loads(CliRunner().invoke(app, words).stdout).get("estimate", "")]
    assert any(re.match(of + SAID, each) for each in said)
    if "kind" in belief:  # pairs of references are known
        assert "" in said


def test_jobs_have_the_number_of_measurements_that_their_estimates_rest_on() -> None:
    found = eunomia.simulate({**SMALL, "belief": {"duration": "history"}})
    counts = found.jobs["estimated_measurements"]
    assert counts[0] == 0 and 10 < counts[-1] < 40


def test_ignorance_changes_what_srtf_decides() -> None:
    declared, guessed = (eunomia.simulate({**SMALL, "belief": {"duration": each}}) for each in ("declared", "none"))
    assert declared.summary["jct_mean_s"] != guessed.summary["jct_mean_s"]


def sharing(**belief: Any) -> dict[str, Any]:
    policy = {"name": "max_min_fairness", "space_sharing": True}
    return {**SMALL, "policy": policy, "belief": {"kind": "estimated", **belief}}


@pytest.mark.parametrize("method", ["best", "match"])
def test_space_sharing_runs_on_estimated_throughputs(tmp_path: Path, method: str) -> None:
    scenario = sharing(method=method) | {"workload": {"generator": "poisson", "jobs": 12, "rate_per_hour": 30.0}}
    found = eunomia.simulate(scenario, record_to=tmp_path / "record.jsonl.gz")
    assert found.summary["jobs_finished"] == 12
    assert found.record is not None and first_difference(found.record) is None


def believed_pairs(**belief: Any) -> np.ndarray:
    """The believed rates of all pairs of Gavel's job types on the cluster of `SMALL`."""
    setup = set_up(scenario_from_dict({**SMALL, "belief": {"kind": "estimated", "profiled": 0.05, **belief}}, Path()))
    names = gavel_job_types()
    return np.array([[setup.believed.packed_throughput(one, other, 1) for other in names] for one in names])


def test_a_cautious_belief_is_lower_and_leaves_the_measured_pairs_of_references_as_they_are() -> None:
    median, half, low = (believed_pairs(caution=each) for each in (0.0, 0.5, 1.0))
    assert (median >= half).all() and (half >= low).all()
    assert (median > low).any()
    assert (median == low).sum() > 2 * 16 * 16 / 2  # pairs of references are known; some other pairs do not fit


def test_telling_measurements_are_charged_by_their_number() -> None:
    by_chance, telling = (
        set_up(scenario_from_dict(sharing(profiled=0.03, profile_s=60.0, choose=each), Path())).overheads.start_s
        for each in ("random", "telling")
    )
    assert by_chance == pytest.approx(60.0 * 0.03 * 16 * 2)
    assert telling == 60.0  # one pair at least, and no part of one


def test_the_first_job_of_each_new_job_type_measures_for_the_others() -> None:
    workload = {"generator": "gavel", "jobs": 80, "rate_per_hour": 12.0}
    options = {"profiled": 0.25, "profile_s": 60.0, "choose": "telling", "charge": "job_type"}
    plain, charged = (
        set_up(scenario_from_dict(sharing(**each) | {"workload": workload}, Path()))
        for each in ({"choose": "telling"}, options)
    )
    assert charged.overheads == plain.overheads
    more = [m for m, (one, other) in enumerate(zip(plain.jobs, charged.jobs, strict=True)) if one != other]
    types = [charged.jobs[m].job_type for m in more]
    assert isinstance(charged.believed, EstimatedSpeeds)
    assert 0 < len(types) == len(set(types))
    assert set(types) == charged.believed.measured & {job.job_type for job in charged.jobs}
    for m in more:
        job = charged.jobs[m]
        assert all(other.job_type != job.job_type for other in charged.jobs[:m])
        rate = charged.truth.solo_throughput(job.job_type, job.scale_factor).max()
        assert (job.total_steps - plain.jobs[m].total_steps) / rate == pytest.approx(60.0 * 8)


def test_more_references_than_job_types_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"belief.references.*only \d+ job types run on every accelerator type"):
        eunomia.simulate(sharing(references=99))


def test_throughputs_without_pairs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no pair to estimate"):
        eunomia.simulate({**sharing(), "throughputs": {"source": "uniform"}})


def test_an_option_of_estimates_needs_them() -> None:
    with pytest.raises(InvalidInput, match='write kind = "estimated" beside it'):
        eunomia.simulate({**SMALL, "belief": {"profiled": 0.5}})


def test_the_rounds_of_gavel_take_the_truth_only() -> None:
    scenario = {**SMALL, "policy": {"name": "max_min_fairness"}, "mechanism": {"name": "gavel"}}
    with pytest.raises(InvalidInput, match=r"\[belief\] is not the truth"):
        eunomia.simulate({**scenario, "belief": {"duration": "history"}})


def test_measuring_is_charged_on_the_accelerators_of_a_job() -> None:
    free, charged = (eunomia.simulate(sharing(profile_s=each, profiled=0.05)) for each in (0.0, 600.0))
    assert charged.summary["utilization"] is not None and free.summary["jct_mean_s"] is not None
    assert charged.summary["jct_mean_s"] > free.summary["jct_mean_s"]
    assert any("measuring these costs each job" in note for note in charged.notes)
