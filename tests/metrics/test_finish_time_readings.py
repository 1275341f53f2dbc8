"""The readings of T_id: policy and metric have one, and a scenario may choose another for the metric."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.model.answers import Grants
from eunomia.model.finish_time import IDEAL_TIMES, IdealTime
from eunomia.model.policy import PolicyInfo
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.grants.themis.agents import ended_leases, offers, read_state
from eunomia.policies.grants.themis.themis import Themis
from eunomia.runs.fingerprint import scenario_hash
from eunomia.runs.simulation import simulate
from eunomia.scenario import scenario_from_dict
from eunomia.sweeps import plan, read
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play


@dataclass
class Recorder:
    """Themis, and the views that it was shown."""

    themis: Themis
    views: list[View] = field(default_factory=list)

    @property
    def info(self) -> PolicyInfo:
        return self.themis.info

    def decide(self, view: View) -> Grants:
        self.views.append(view)
        return self.themis.decide(view)


@pytest.mark.parametrize(
    ("ideal", "seconds"), [("share", (4000, 4000)), ("work", (5000, 6000)), ("longest", (8000, 8000))]
)
def test_the_auction_and_the_metric_have_one_time_on_a_private_part(
    ideal: IdealTime, seconds: tuple[float, float]
) -> None:
    """Two searches of two gangs of 2 fill 8 accelerators and end together at 4000 s, so N is 2 all the time.

    x needs 1000 s and 4000 s, 10,000 accelerator-seconds, y 4000 s and 2000 s, 12,000; each can use 4.
    """
    line = line_up((0, 1000, 2), (0, 4000, 2), (0, 4000, 2), (0, 2000, 2))
    jobs = tuple(replace(job, app="xxyy"[m]) for m, job in enumerate(line))
    policy = Recorder(Themis(ideal=ideal))
    figures = play(policy, SmallWorld(nodes=(Node(type="gpu", accelerators=8),), jobs=jobs, speeds=one_type())).figures
    measured = figures.apps["jct_s"] / figures.apps["rho_themis"]
    first = policy.views[0]
    ended = ended_leases(first)
    assert read_state(first, ended, offers(first, ended), ideal).ideal.tolist() == list(seconds)
    assert measured.tolist() == pytest.approx(seconds)


def worst(policy: str, **measure: Any) -> tuple[float, tuple[str, ...]]:
    """Return the worst ρ of two searches of one trial that run at once on 8 accelerators; and the notes."""
    said = {
        "cluster": {"nodes": [{"type": "gpu", "count": 1, "accelerators": 8}]},
        "workload": {"generator": "searches", "jobs": 2, "rate_per_hour": 1e6, "most_per_app": 1},
        "throughputs": {"source": "linear"},
        "policy": {"name": policy},
        "measure": measure,
    }
    result = simulate(scenario_from_dict(said, Path(), "two"))
    return float(result.summary["rho_themis_max"] or 0.0), result.notes


def test_a_run_is_measured_by_the_reading_of_its_policy_unless_the_scenario_has_one() -> None:
    by_share, notes = worst("fifo")
    assert not [note for note in notes if "rho_themis" in note]
    by_work = worst("fifo", ideal="work")[0]
    assert by_work < by_share  # the printed formula gives each N times its time alone
    assert worst("themis")[0] == pytest.approx(by_share, rel=0.01)
    found, notes = worst("themis?ideal=work")
    assert found == pytest.approx(by_work, rel=0.01)
    assert [note for note in notes if 'set measure.ideal = "work"' in note]
    assert worst("themis?ideal=work", ideal="share")[0] == pytest.approx(by_share, rel=0.01)


def test_a_reading_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="ideal is 'best'; it is one of share, work, longest"):
        Themis(ideal="best")  # type: ignore[arg-type]
    assert IDEAL_TIMES == ("share", "work", "longest")


@pytest.mark.parametrize(
    ("policies", "reading"), [(("fifo", "themis?ideal=work"), "work"), (("themis", "themis?ideal=work"), "share")]
)
def test_all_runs_of_a_comparison_are_measured_by_one_reading(
    policies: tuple[str, str], reading: str, tmp_path: Path
) -> None:
    """That of the policies that go by one; where these differ, on a private part, with a note on the others."""
    scenario = tmp_path / "two.toml"
    scenario.write_text(
        '[cluster]\nnodes = [{ type = "gpu", count = 1, accelerators = 8 }]\n'
        '[workload]\ngenerator = "searches"\njobs = 2\nrate_per_hour = 1e6\nmost_per_app = 1\n'
        '[throughputs]\nsource = "linear"\n[policy]\nname = "fifo"\n'
    )
    said = ["compare", str(scenario), "--policy", policies[0], "--policy", policies[1], "--out", str(tmp_path / "out")]
    answer = CliRunner().invoke(app, said)
    assert answer.exit_code == 0, answer.output
    assert ("rho_themis is by ideal=share; themis goes by ideal=work" in answer.output) == (reading == "share")
    found = [json.loads(file.read_text())["rho_themis_max"] for file in tmp_path.glob("out/*/summary.json")]
    assert found == pytest.approx([worst("fifo", ideal=reading)[0]] * 2, rel=0.01)


@pytest.mark.parametrize(
    ("policies", "readings"),
    [
        (("fifo", "themis?ideal=work"), ("work", "work")),
        (("themis", "themis?ideal=work"), ("share", "share")),
        (("fifo", "themis"), ("policy", "policy")),
    ],
)
def test_all_runs_of_a_sweep_are_measured_by_one_reading(
    policies: tuple[str, str], readings: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[scenario.cluster]\nnodes = [{ type = "gpu", count = 1, accelerators = 8 }]\n'
        '[scenario.workload]\ngenerator = "searches"\njobs = 2\nrate_per_hour = 1e6\nmost_per_app = 1\n'
        f'[scenario.throughputs]\nsource = "linear"\n[axes]\npolicy = {json.dumps(policies)}\n'
    )
    runs = plan(read(file))
    assert tuple(run.scenario.measure.ideal for run in runs) == readings
    assert [run.scenario_hash for run in runs] == [scenario_hash(run.scenario) for run in runs]


def test_a_sweep_over_readings_keeps_each(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[scenario.cluster]\nnodes = [{ type = "gpu", count = 1, accelerators = 8 }]\n'
        '[scenario.workload]\ngenerator = "searches"\njobs = 2\nrate_per_hour = 1e6\nmost_per_app = 1\n'
        '[scenario.throughputs]\nsource = "linear"\n'
        '[axes]\npolicy = ["themis"]\nmeasure.ideal = ["work", "longest"]\n'
    )
    assert [run.scenario.measure.ideal for run in plan(read(file))] == ["work", "longest"]
