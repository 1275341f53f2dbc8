"""Pairs that are measured during a run: on real seats, within a budget, what teaches most first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eunomia
from eunomia.core.belief import Belief
from eunomia.inputs.problems import InvalidInput
from eunomia.model.events import Event, JobSubmitted, PairsEstimated
from eunomia.model.job import Job
from eunomia.records.explain import explain
from eunomia.records.replay import first_difference
from eunomia.runs.simulation import Result
from eunomia.scenario import load_scenario, scenario_from_dict
from eunomia.setup.belief_estimate import EstimatedSpeeds
from eunomia.setup.run_config import set_up
from eunomia.throughputs import Throughputs
from eunomia.throughputs.measured_table import MeasuredThroughputs, Measurements
from eunomia.throughputs.measuring_jobs import WithMeasuringJobs, measuring_on

SLICES: Mapping[str, Any] = {"kind": "estimated", "charge": "slices", "profile_s": 60.0, "choose": "telling"}
SMALL: Mapping[str, Any] = {
    "seed": 3,
    "check": True,
    "cluster": {"accelerators": {"v100": 2, "k80": 2}},
    "workload": {"generator": "poisson", "jobs": 15, "rate_per_hour": 12.0},
    "policy": {"name": "max_min_fairness", "space_sharing": True},
}


def run(folder: Path, **belief: Any) -> Result:
    return eunomia.simulate({**SMALL, "belief": {**SLICES, **belief}}, record_to=folder / "record.jsonl.gz")


def events(found: Result) -> list[tuple[float, Event]]:
    assert found.record is not None
    return [(moment.at, event) for _, moment, _ in found.record.steps() for event in moment.events]


def slices(found: Result) -> list[tuple[float, Job]]:
    submitted = [(at, event.job) for at, event in events(found) if isinstance(event, JobSubmitted)]
    return [(at, job) for at, job in submitted if job.tenant == "profiler"]


def test_slices_hold_seats_within_the_budget_and_do_not_count_among_the_jobs(tmp_path: Path) -> None:
    found = run(tmp_path, budget=0.02)
    asked = slices(found)
    assert len(asked) > 5
    for place, (at, job) in enumerate(asked):
        assert (job.submitted, job.total_steps) == (at, 60.0)
        assert 60.0 * (place + 1) <= 0.02 * 4 * at
    assert found.summary["jobs_submitted"] == found.summary["jobs_finished"] == 15
    assert "profiler-0000" not in found.jobs["job_id"]
    held = dict(zip(found.figures.tenants["tenant"], found.figures.tenants["received_gpu_s"], strict=True))
    assert 60.0 <= held["profiler"] <= 60.0 * len(asked) + 1e-6
    assert any("The profiler measured" in note for note in found.notes)


def test_what_is_measured_is_recorded_replays_and_brings_beliefs_nearer_to_the_truth(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert found.record is not None and first_difference(found.record) is None
    news = [event for _, event in events(found) if isinstance(event, PairsEstimated)]
    assert news and [event.measurements for event in news] == sorted(event.measurements for event in news)
    setup = set_up(scenario_from_dict({**SMALL, "belief": SLICES}, Path()))
    last = {}
    for event in news:
        last.update(zip(zip(event.job_types, event.partners, strict=True), event.kept, strict=True))
    errors = np.zeros(2)
    for (name, partner), kept in last.items():
        alone = setup.truth.solo_throughput(name, 1)
        true = setup.truth.packed_throughput(name, partner, 1) / alone
        before = setup.believed.packed_throughput(name, partner, 1) / alone
        errors += np.abs(before - true).sum(), np.abs(kept - true).sum()
    assert errors[1] < errors[0] / 2
    said = explain(found.record, str(found.jobs["job_id"][-1])).estimate
    assert said is not None and f"by {news[-1].measurements} pairs measured during the run" in said


def test_a_belief_of_a_pair_holds_for_gangs_of_each_size_and_only_where_the_pair_fits() -> None:
    alone = {("fast", job, size): 10.0 * size for job in "ab" for size in (1, 2)}
    pairs = {("fast", one, other, size): 4.0 * size for one, other in ("ab", "ba") for size in (1, 2)}
    speeds = MeasuredThroughputs(("fast",), Measurements("by hand", alone, pairs))
    belief = Belief(Throughputs(("fast",), speeds))
    for name, kind, size in (("1", "a", 1), ("2", "b", 1), ("3", "a", 2), ("4", "b", 2)):
        belief.learn(Job(job_id=name, job_type=kind, scale_factor=size, total_steps=1.0))
    belief.paired()
    belief.estimate_pairs(PairsEstimated(("a", "a"), ("b", "a"), np.array([[0.7], [0.9]])))
    belief.learn(Job(job_id="5", job_type="a", scale_factor=3, total_steps=1.0))
    table = belief.paired()[:, :, 0]
    assert table[0, 1] == 7.0 and table[2, 3] == 14.0
    assert table[1, 0] == 4.0  # nothing new
    assert table[0, 0] == 0.0  # two of them do not fit
    assert table[0, 3] == 0.0  # gangs of two sizes


def test_a_job_that_measures_runs_on_its_type_alone() -> None:
    speeds = MeasuredThroughputs(("fast", "slow"), Measurements("by hand", {("fast", "a", 1): 5.0}, {}))
    source = WithMeasuringJobs(speeds, ("fast", "slow"))
    assert source.solo_throughput(measuring_on("slow"), 1).tolist() == [0.0, 1.0]
    assert source.packed_throughput("a", measuring_on("slow"), 1).tolist() == [0.0, 0.0]
    assert source.solo_throughput("a", 1)[0] == 5.0
    assert set(source.job_types) == {"a", measuring_on("fast"), measuring_on("slow")}


def test_slices_leave_the_ends_of_jobs_alone() -> None:
    with pytest.raises(InvalidInput, match="draws how jobs end over all jobs"):
        eunomia.simulate({**SMALL, "belief": SLICES, "physics": {"fates": "philly"}})


OUTSIDE = """
from eunomia.backends.inputs import BackendClass

class Rack(BackendClass):
    real_time = True
"""


@pytest.mark.parametrize("backend", ["local", "slurm", "ray", "kubernetes", "rack.py:Rack"])
@pytest.mark.parametrize("charge", ["slices", "job_type", "job"])
def test_no_real_accelerator_is_asked_to_measure(tmp_path: Path, backend: str, charge: str) -> None:
    (tmp_path / "rack.py").write_text(OUTSIDE)
    path = tmp_path / "mine.toml"
    path.write_text(
        '[cluster]\naccelerators = {v100 = 2}\n[workload]\ngenerator = "poisson"\njobs = 3\n'
        '[policy]\nname = "max_min_fairness"\nspace_sharing = true\n'
        f'[world]\nbackend = "{backend}"\n'
        f'[belief]\nkind = "estimated"\nprofile_s = 60\ncharge = "{charge}"\n'
    )
    with pytest.raises(InvalidInput) as found:
        set_up(load_scenario(path))
    problems = [each for each in found.value.problems if "are measured in simulated runs only" in each.rule]
    expected = {("belief.profile_s", 13)} | ({("belief.charge", 14)} if charge != "job" else set())
    assert {(each.column, each.row) for each in problems} == expected
    assert all(each.file == str(path) and "leave profile_s and charge out" in each.fix for each in problems)


def test_real_accelerators_may_believe_estimates_that_nothing_is_measured_for() -> None:
    scenario = {**SMALL, "world": {"backend": "local"}, "belief": {"kind": "estimated"}}
    assert isinstance(set_up(scenario_from_dict(scenario, Path())).believed, EstimatedSpeeds)


@pytest.mark.slow
def test_the_published_estimator_is_fed_by_slices_beside_references(tmp_path: Path) -> None:
    found = run(tmp_path, method="match", budget=0.1)
    assert found.record is not None and first_difference(found.record) is None
    assert found.summary["jobs_finished"] == 15
    assert len(slices(found)) > 20
    assert any(isinstance(event, PairsEstimated) for _, event in events(found))


@pytest.mark.parametrize(
    ("belief", "said"),
    [
        ({"profile_s": 0.0}, "write profile_s = 60 beside it"),
        ({"kind": "oracle"}, 'write kind = "estimated" beside it'),
    ],
)
def test_slices_need_a_length_and_estimated_throughputs(belief: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        eunomia.simulate({**SMALL, "belief": {**SLICES, **belief}})
