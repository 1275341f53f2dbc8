"""Real trials of a tuner that requests them one by one, and real jobs whose loss curves a policy fits.

The study is Optuna's if it is installed; else one that draws at random and prunes no trial, with the same calls:
`create_study`, `ask`, `report`, `should_prune`, `tell`.
"""

from __future__ import annotations

import csv
import random
import re
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eunomia.model.events import AppFinished, JobCancelled, JobFinished, JobSubmitted, Measured
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.runs.local_run import run_real
from eunomia.runs.simulation import Result
from eunomia.scenario import scenario_from_dict

EXAMPLE = Path(__file__).parents[2] / "examples" / "local"
SPACE = {"step_size": {"low": 0.001, "high": 3.0, "log": True}, "momentum": [0.0, 0.5, 0.9]}


class RandomStudy:
    """A study as Optuna's `Study` is used here; it keeps its calls."""

    made: RandomStudy  # the last one

    def __init__(self, seed: int):
        self._rng = random.Random(seed)
        self.params: list[Mapping[str, Any]] = []
        self.results: list[tuple[Mapping[str, Any], float | None]] = []
        RandomStudy.made = self

    def ask(self, space: Mapping[str, Any]) -> SimpleNamespace:
        params = {name: draw(self._rng) for name, draw in space.items()}
        self.params.append(params)
        return SimpleNamespace(params=params, report=lambda loss, step: None, should_prune=lambda: False)

    def tell(self, trial: SimpleNamespace, value: float | None = None, state: Enum | None = None) -> None:
        self.results.append((trial.params, value))


def stand_in() -> ModuleType:
    """Return a module with those names of Optuna's that a search uses."""
    kinds = SimpleNamespace(
        FloatDistribution=lambda low, high, log: lambda rng: rng.uniform(low, high),
        IntDistribution=lambda low, high, log: lambda rng: rng.randint(low, high),
        CategoricalDistribution=lambda choices: lambda rng: rng.choice(choices),
    )
    module = ModuleType("optuna")
    module.__dict__.update(
        logging=SimpleNamespace(set_verbosity=lambda level: None, WARNING=30),
        distributions=kinds,
        samplers=SimpleNamespace(TPESampler=lambda seed: seed),
        pruners=SimpleNamespace(MedianPruner=lambda n_startup_trials: None),
        trial=SimpleNamespace(TrialState=Enum("TrialState", ["FAIL", "PRUNED"])),
        create_study=lambda direction, sampler, pruner: RandomStudy(sampler),
    )
    return module


@pytest.fixture
def optuna(monkeypatch: pytest.MonkeyPatch) -> bool:
    """See that there is a module optuna; tell whether it is the real one."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        monkeypatch.setitem(sys.modules, "optuna", stand_in())
        return False
    return True


def ran(folder: Path, *, jobs: int, steps: int, app: str, **said: Any) -> Result:
    """Run so many of the example's trials, `steps` long, on two seats."""
    with (EXAMPLE / "trials.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[:jobs]
    with (folder / "trials.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "total_steps": str(steps), "app": app} for row in rows)
    scenario = {
        "cluster": {"accelerators": {"cpu": 2}},
        "workload": {"trace": str(folder / "trials.csv")},
        "throughputs": {"source": "uniform"},
        "check": True,
        "world": {"backend": "local", "workdir": str(folder / "work")},
        **said,
    }
    return run_real(scenario_from_dict(scenario, EXAMPLE), folder)


@pytest.mark.slow
def test_a_study_is_asked_for_two_real_trials_at_a_time_and_for_five_in_all(optuna: bool, tmp_path: Path) -> None:
    apps = {"tuner": "optuna", "parallel": 2, "max_trials": 5, "space": SPACE}
    result = ran(tmp_path, jobs=7, steps=4, app="search", policy={"name": "fifo"}, apps=apps)
    assert result.record is not None
    record = Record(result.record.path)
    alive, most, submitted = set[str](), 0, list[str]()
    ends: list[AppFinished] = []
    for _, moment, _ in record.steps():
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    submitted.append(job.job_id)
                    alive.add(job.job_id)
                case JobFinished(name) | JobCancelled(name):
                    alive.discard(name)
                case AppFinished():
                    ends.append(event)
        most = max(most, len(alive))
    assert submitted == [f"trial-{m}" for m in range(5)]
    assert most == 2
    (end,) = ends
    said = {name: _printed(tmp_path / "work", name) for name in submitted}
    losses = {name: words[2] for name, words in said.items() if words}
    assert end.loss == pytest.approx(min(losses.values()), abs=1e-6)
    assert losses[end.best] == min(losses.values())
    assert first_difference(record) is None
    if not optuna:  # each trial ran with its settings, and the study received its loss
        study = RandomStudy.made
        asked = [(params["step_size"], params["momentum"]) for params in study.params]
        assert np.allclose(sorted(words[:2] for words in said.values() if words), sorted(asked), atol=1e-4)
        reported = {
            (params["step_size"], params["momentum"]): value for params, value in study.results if value is not None
        }
        assert np.allclose(sorted(reported.values()), sorted(losses.values()), atol=1e-6)
        assert sorted(reported) == sorted(asked)


def _printed(work: Path, name: str) -> tuple[float, float, float] | None:
    """Return the step size, momentum and loss that a trial printed at its end; None for one that was stopped."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((work / name).glob("*log*")))
    found = re.search(r"step size ([\d.]+), momentum ([\d.]+): loss ([\d.]+)", text)
    return tuple(map(float, found.groups())) if found else None  # type: ignore[return-value]


@pytest.mark.slow
def test_slaq_fits_curves_to_what_real_jobs_tell(tmp_path: Path) -> None:
    """Three jobs take turns of a second on two seats and tell a loss at every step."""
    policy = {"name": "slaq", "curves": "fitted", "slot_s": 1.0}
    rounds = {"name": "leases", "length_s": 1.0, "aligned": True}
    result = ran(tmp_path, jobs=3, steps=12, app="", policy=policy, mechanism=rounds)
    assert set(result.jobs["status"].tolist()) == {"finished"}
    assert result.record is not None
    record = Record(result.record.path)
    reports: dict[str, int] = {}
    known = 0.0
    for _, moment, _ in record.steps():
        for event in moment.events:
            if isinstance(event, Measured):
                reports[event.job_id] = reports.get(event.job_id, 0) + 1
            if (memory := getattr(getattr(event, "answer", None), "memory", None)) and "curve_known" in memory:
                fitted = memory["curve_c"] != 0  # without c it is no curve
                known = max(known, float(np.max(memory["curve_known"][fitted], initial=0.0)))
    assert set(reports) == {"trial-0", "trial-1", "trial-2"}
    assert min(reports.values()) >= 10
    assert known >= 6  # of 12 steps: a curve that was fitted while its job ran
    assert first_difference(record) is None
