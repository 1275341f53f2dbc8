"""Whole runs with tuners: the surviving trials, the results, and replay without a tuner."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.model.curves import curve_of
from eunomia.model.events import (
    AppFinished,
    JobCancelled,
    JobPaused,
    JobResumed,
    JobSubmitted,
    JobUpdated,
    Measured,
    Moment,
)
from eunomia.records.explain import explain
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import simulate
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.tuners.hyperdrive import HyperDrive
from eunomia.tuners.late_promotion import LatePromotion

Scene = Callable[..., Mapping[str, Any]]


def status(scenario: Mapping[str, Any]) -> dict[str, str]:
    jobs = simulate(scenario).jobs
    return dict(zip(jobs["job_id"].tolist(), jobs["status"].tolist(), strict=True))


def test_without_a_tuner_an_app_is_only_a_name(scene: Scene) -> None:
    assert set(status(scene("off")).values()) == set(status(scene("all")).values()) == {"finished"}


def test_the_best_of_nine_survives_and_a_job_outside_the_app_is_left_alone(scene: Scene) -> None:
    """With η = 3 three of nine go on at a ninth of the steps, and one of those at a third."""
    ended = status(scene("halving"))
    names = [f"t{m}" for m in range(9)]
    three = sorted(names, key=lambda name: curve_of(0, name).loss(1 / 9))[:3]
    one = min(three, key=lambda name: curve_of(0, name).loss(1 / 3))
    assert ended[one] == ended["alone"] == "finished"
    assert sum(ended[name] == "cancelled" for name in names) >= 6


def test_everything_a_search_does_is_in_the_record_and_a_replay_needs_no_tuner(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl.gz"
    simulate(scene("halving"), record_to=path)
    events = [event for _, moment, _ in Record(path).steps() for event in moment.events]
    (end,) = [event for event in events if isinstance(event, AppFinished)]
    assert end.app == "app"
    assert end.loss == pytest.approx(float(curve_of(0, end.best).loss(1.0)))
    measured = [event for event in events if isinstance(event, Measured)]
    first = [event for event in measured if event.steps == pytest.approx(300.0)]
    assert {event.job_id for event in first} == {f"t{m}" for m in range(9)}
    for event in measured:
        assert event.loss == pytest.approx(float(curve_of(0, event.job_id).loss(event.steps / 2700)))
    assert any(isinstance(event, JobCancelled) for event in events)
    assert any(isinstance(event, JobUpdated) and not math.isnan(event.total_steps) for event in events)
    assert first_difference(Record(path)) is None


@pytest.mark.parametrize("tuner", ["halving", "hyperband", "asha", "hyperdrive"])
def test_a_search_gives_up_work_and_so_ends_sooner(scene: Scene, tuner: str) -> None:
    whole, cut = (simulate(scene(one)).jobs for one in ("all", tuner))
    assert np.nansum(cut["attained_service_s"]) < np.nansum(whole["attained_service_s"])


def test_a_scenario_may_ask_for_the_published_asha_and_for_hyperdrives_slots(scene: Scene) -> None:
    later = {"tuner": "asha", "promotion": "later"}
    jobs = simulate(scene("asha", apps=later)).jobs
    assert sum(jobs["paused_s"] > 0) >= 6  # those that are not among the best third when they reach a rung
    assert isinstance(set_up(scenario_from_dict(scene("asha", apps=later), Path())).tuners["app"], LatePromotion)
    given = scenario_from_dict(scene("hyperdrive", apps={"tuner": "hyperdrive", "slots": 2}), Path())
    search = set_up(given).tuners["app"]
    assert isinstance(search, HyperDrive)
    assert search.slots == 2
    search = set_up(scenario_from_dict(scene("hyperdrive"), Path())).tuners["app"]
    search.begin("app", set_up(given).jobs[:9])
    assert isinstance(search, HyperDrive)
    assert search.slots == 4  # of the cluster, and nine trials are alive


def test_a_replay_pauses_and_resumes_as_the_run_did_and_a_rest_is_explained(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl.gz"
    jobs = simulate(scene("halving"), record_to=path).jobs
    record = Record(path)
    events = [(m.at, event) for _, m, _ in record.steps() for event in m.events]
    name = next(event.job_id for _, event in events if isinstance(event, JobResumed))
    begin = [at for at, event in events if isinstance(event, JobPaused) and event.job_id == name]
    over = [at for at, event in events if isinstance(event, JobResumed | JobCancelled) and event.job_id == name]
    end = over[: len(begin)]  # one that is given up while it runs rests no more
    assert sum(end) - sum(begin) == pytest.approx(jobs["paused_s"][jobs["job_id"] == name][0])
    assert first_difference(record) is None
    rests = [wait for wait in explain(record, name).waits if wait.reason == "held"]
    assert [(wait.from_s, wait.to_s) for wait in rests] == list(zip(begin, end, strict=True))


@pytest.mark.parametrize(("tuner", "names"), [("asha", 6), ("all", 6), ("hyperdrive", 6)])
def test_a_search_asks_for_trials_one_after_the_other(scene: Scene, tmp_path: Path, tuner: str, names: int) -> None:
    path = tmp_path / "record.jsonl.gz"
    limits = {"apps": {"tuner": tuner, "parallel": 2, "max_trials": names}}
    jobs = simulate(scene(tuner, 9, **limits), record_to=path).jobs
    there = sorted(name for name in jobs["job_id"].tolist() if name != "alone")
    assert set(there) <= {f"t{m}" for m in range(names)}
    assert there[:2] == ["t0", "t1"]
    submitted = jobs["submitted_s"][jobs["app"] == "app"]
    assert (submitted == 0).sum() == 2
    assert first_difference(Record(path)) is None


def test_gavels_clock_hears_what_a_search_thinks_of_its_trials(scene: Scene) -> None:
    said = {"mechanism": {"name": "gavel"}, "policy": {"name": "max_min_fairness"}}
    apps = {"tuner": "halving", "pause": False}
    scenario = scenario_from_dict({**scene("halving", **said), "apps": apps}, Path())
    setup = set_up(scenario)
    core = setup.scheduler()
    core.handle(Moment.of(0.0, [JobSubmitted(setup.jobs[0]), JobUpdated(setup.jobs[0].job_id, 4.0, 900.0)]))
    assert core.state.jobs.weight[0] == 4.0
    assert core.belief.total[0] == 900.0
    assert simulate(scenario).summary["jobs_unfinished"] == 0


@pytest.mark.parametrize(
    ("apps", "rule"),
    [
        ({"tuner": "hyperband"}, "have no pause; set pause = false"),
        ({"tuner": "asha", "parallel": 2}, "need the number of jobs to come"),
        ({"tuner": "asha", "promotion": "later"}, "Gavel's rounds have no pause"),
    ],
)
def test_what_gavels_clock_cannot_do_is_refused(scene: Scene, apps: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        scenario_from_dict({**scene("off"), "mechanism": {"name": "gavel"}, "apps": apps}, Path())


@pytest.mark.parametrize(
    "apps", [{"tuner": "asha"}, {"tuner": "halving"}, {"tuner": "hyperband"}, {"tuner": "asha", "parallel": 2}]
)
def test_a_tuner_continues_through_failures_kills_and_lost_nodes(scene: Scene, apps: dict[str, Any]) -> None:
    rough = {
        "job_failures_per_hour": 0.5,
        "cancel_fraction": 0.2,
        "node_failures_per_hour": 0.2,
        "node_repair_s": 600.0,
    }
    for seed in range(5):
        ended = simulate(scene("", 12, world=rough, seed=seed, apps=apps)).summary
        assert ended["jobs_unfinished"] == 0


def test_a_trial_that_arrives_after_the_end_of_its_app_is_cancelled(scene: Scene, tmp_path: Path) -> None:
    scenario = scene("hyperdrive")
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(jobs.read_text(encoding="utf-8") + "late,90000,1,2700,any,app\n", encoding="utf-8")
    path = tmp_path / "record.jsonl.gz"
    ended = simulate(scenario, record_to=path).jobs
    (row,) = np.flatnonzero(ended["job_id"] == "late")
    assert (ended["status"][row], ended["attained_service_s"][row]) == ("cancelled", 0.0)
    assert first_difference(Record(path)) is None


@pytest.mark.parametrize(
    ("apps", "rule"),
    [
        ({"tuner": "all", "eta": 4}, "does nothing with tuner = 'all'"),
        ({"tuner": "optuna"}, "it searches among real trials"),
        ({"tuner": "halving", "eta": 1}, "must be at least 2"),
        ({"tuner": "asha", "pause": False}, "does nothing with tuner = 'asha'"),
        ({"tuner": "halving", "promotion": "later"}, "does nothing with tuner = 'halving'"),
        ({"tuner": "asha", "slots": 4}, "does nothing with tuner = 'asha'"),
        ({"tuner": "halving", "parallel": 4}, "trials wait on a rung for all others"),
        ({"tuner": "off", "max_trials": 4}, "does nothing with tuner = 'off'"),
        ({"tuner": "optuna", "space": {"lr": {"low": 1.0, "high": 0.1}}}, "each entry is a range or a list of choices"),
    ],
)
def test_what_makes_no_sense_is_refused(scene: Scene, tmp_path: Path, apps: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        scenario_from_dict({**scene("off"), "apps": apps}, tmp_path)
    assert rule in str(refusal.value)
