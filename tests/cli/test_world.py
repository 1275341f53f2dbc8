"""`eunomia world measure` on this machine's processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.runs.engine_overheads import _Bench, measure_overheads
from eunomia.scenario import load_scenario

SCENARIO = """\
[cluster]
accelerators = { cpu = 1 }
[workload]
generator = "philly-like"
jobs = 1
[throughputs]
source = "uniform"
[world]
backend = "local"
"""

SCRIPTED = """\
import json
from contextlib import AbstractContextManager
from eunomia import BackendClass, decisions, events
class Scripted(BackendClass, AbstractContextManager):
    real_time = True
    def __init__(self, inputs):
        self.jobs, self.due = {job.job_id: job for job in inputs.jobs}, []
    build = classmethod(lambda cls, inputs: cls(inputs))
    __exit__ = lambda self, *_: None
    def moments(self):
        yield events.Moment(0.0, tuple(events.JobSubmitted(job) for job in self.jobs.values()))
        while self.due:
            yield events.Moment(1.0, (self.due.pop(),))
    def carry_out(self, decision):
        if not isinstance(decision, decisions.Start):
            return
        name, epoch = decision.job_id, decision.epoch
        job, restarted = self.jobs[name], epoch == 2
        lines = [("start", 2, 12.1)] if restarted else [("start", 0, 10.0), ("step", 1, 10.3), ("step", 2, 10.6)]
        with open(job.command[2], "a") as ledger:
            for what, step, at in lines:
                print(json.dumps(dict(what=what, job_id=name, epoch=epoch, step=step, at=at)), file=ledger)
        stopped = name == "trial-1" and not restarted
        self.due.append(events.Progressed((name,), (2.0,)) if stopped else events.JobFinished(name, epoch))
"""


def test_a_restart_costs_what_the_gang_s_own_clock_says_whenever_its_end_is_reported(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SCRIPTED)
    (tmp_path / "site.toml").write_text(SCENARIO.replace('"local"', '"own.py:Scripted"'))
    found = measure_overheads(load_scenario(tmp_path / "site.toml"), tmp_path / "measured", trials=1)
    assert (found.checkpoint_s, found.restore_s) == (0.05, 1.5)


POLLED = """\
import math
from eunomia.runs import engine_overheads
class Polled(Scripted):  # each trial of 2 s begins after 0.8 s, and its end is seen at the next whole second
    def carry_out(self, decision):
        if isinstance(decision, decisions.Start):
            self.due.append(events.JobFinished(decision.job_id, 1))
            engine_overheads.time.now = math.ceil(engine_overheads.time.now + 2.8)
"""


class HandClock:
    """Time that passes in sleep alone."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_start_costs_what_it_costs_on_average_however_it_falls_between_two_polls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eunomia.runs.engine_overheads.time", HandClock())
    monkeypatch.setattr("eunomia.setup.run_objects.world_options", lambda _: {"poll_s": 1.0})
    monkeypatch.setattr(_Bench, "stopped", lambda *_: (0.0, 0.0))
    (tmp_path / "own.py").write_text(SCRIPTED + POLLED)
    (tmp_path / "site.toml").write_text(SCENARIO.replace('"local"', '"own.py:Polled"'))
    found = measure_overheads(load_scenario(tmp_path / "site.toml"), tmp_path / "measured", trials=5)
    assert found.start_s == pytest.approx(0.8 + 0.5)


@pytest.mark.slow
def test_the_measured_overheads_are_those_of_the_scenario_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("site.toml").write_text(SCENARIO)
    done = CliRunner().invoke(
        app, ["world", "measure", "site.toml", "--trials", "1", "--out", "measured.toml", "--json"]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    written = load_scenario("measured.toml").overheads
    assert (written.start_s, written.checkpoint_s, written.restore_s) == tuple(
        found[name] for name in ("start_s", "checkpoint_s", "restore_s")
    )
    assert found["start_s"] > 0 and found["checkpoint_s"] >= 0 and found["restore_s"] > 0
    assert not list(tmp_path.glob("eunomia-measure-*"))


def test_a_simulation_has_no_overheads_to_measure(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(SCENARIO.replace('backend = "local"', 'backend = "simulated"'))
    done = CliRunner().invoke(app, ["world", "measure", str(tmp_path / "site.toml")])
    assert done.exit_code == 2
    assert 'set backend = "local" or an engine, such as "slurm"' in done.output


def test_the_manifests_of_kubernetes_are_those_of_the_docs_for_any_namespace() -> None:
    shown = CliRunner().invoke(app, ["world", "kubernetes", "manifests"])
    page = Path(__file__).parents[2] / "docs" / "operations" / "kubernetes.yaml"
    assert shown.stdout == page.read_text(), "write it with: eunomia world kubernetes manifests"
    other = CliRunner().invoke(app, ["world", "kubernetes", "manifests", "--namespace", "lab-2"]).stdout
    assert other.count("namespace: lab-2") == 5
    assert "namespace: eunomia" not in other and "name: eunomia-lab-2 }" in other


def test_what_names_no_namespace_is_refused() -> None:
    done = CliRunner().invoke(app, ["world", "kubernetes", "manifests", "--namespace", "My Lab"])
    assert done.exit_code == 2
    assert "lower-case letters" in done.stderr and "such as lab-2" in done.stderr
