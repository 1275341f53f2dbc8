"""A real search on real processes: Optuna says what trials are run with, and hears how good they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.model.events import AppFinished
from eunomia.model.job import Job
from eunomia.records.record import Record
from eunomia.runs.local_run import run_real
from eunomia.scenario import load_scenario
from eunomia.tuners.optuna_search import OptunaSearch

EXAMPLE = Path(__file__).parents[2] / "examples" / "local" / "search.toml"


def test_without_the_package_the_message_has_the_install_command() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"pip install .*\[tuners\]"):
            OptunaSearch({}, 0)
    else:
        pytest.skip("optuna is installed")


def test_the_same_seed_asks_for_the_same_and_learns_from_what_it_hears() -> None:
    pytest.importorskip("optuna", reason="the extra `tuners` is not installed")
    space = {"x": {"low": -1.0, "high": 1.0}, "kind": ["a", "b"]}
    asked = []
    for _ in range(2):
        search = OptunaSearch(space, 3)
        search.begin("app", [Job(job_id=f"t{m}", total_steps=1.0, app="app") for m in range(30)])
        mine = []
        for m in range(30):
            settings = search.settings(f"t{m}")
            assert search.settings(f"t{m}") == settings
            mine.append(settings["x"])
            search.ended(f"t{m}", settings["x"] ** 2)
        asked.append(mine)
    assert asked[0] == asked[1]
    assert sum(abs(x) for x in asked[0][20:]) < sum(abs(x) for x in asked[0][:10])


@pytest.mark.slow
def test_the_example_finds_a_better_trial_than_its_median(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the extra `tuners` is not installed")
    result = run_real(load_scenario(EXAMPLE), tmp_path)
    assert set(result.jobs["status"].tolist()) <= {"finished", "cancelled"}
    assert result.record is not None
    (end,) = [e for _, m, _ in Record(result.record.path).steps() for e in m.events if isinstance(e, AppFinished)]
    assert end.loss < 0.45


def test_the_example_names_jobs_of_one_app() -> None:
    with (EXAMPLE.parent / "trials.csv").open(encoding="utf-8") as file:
        assert {row["app"] for row in csv.DictReader(file)} == {"search"}


def test_a_search_of_real_trials_is_not_simulated() -> None:
    with pytest.raises(InvalidInput, match="it searches among real trials"):
        load_scenario(EXAMPLE, ["world.backend=simulated"])
