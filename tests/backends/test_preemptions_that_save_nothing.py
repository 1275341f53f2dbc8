"""What a preempted job goes on from: a checkpoint, its last periodic one, or nothing, in both simulations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import eunomia
from eunomia.inputs.problems import InvalidInput
from eunomia.model.overheads import Overheads
from eunomia.records.replay import first_difference
from eunomia.scenario import scenario_from_dict

PLAIN: dict[str, Any] = {}
DETAILED = {"placement": "philly"}  # which changes nothing for jobs of one accelerator
BOTH = pytest.mark.parametrize("physics", [PLAIN, DETAILED], ids=["plain", "detailed"])
JOBS = (
    "job_id,submitted_s,scale_factor,job_type,total_steps,retries\na,0,1,x,300,99\nb,100,1,x,50,99\nc,155,1,x,250,99\n"
)


def scenario(folder: Path, physics: dict[str, Any], saves: str, every_s: float = 0.0, **tables: Any) -> dict[str, Any]:
    """Return a scenario of three jobs on one accelerator: b preempts a at 100, when it has done 90 of 300 steps."""
    (folder / "jobs.csv").write_text(JOBS, encoding="utf-8")
    return {
        "cluster": {"nodes": [{"type": "gpu", "count": 1, "accelerators": 1}]},
        "workload": {"trace": str(folder / "jobs.csv"), "format": "native"},
        "throughputs": {"source": "uniform"},
        "policy": {"name": "srtf"},
        "overheads": {"start_s": 10.0, "checkpoint_s": 30.0, "restore_s": 20.0, "saves": saves},
        "world": {"checkpoint_every_s": every_s},
        "physics": physics,
        **tables,
    }


@BOTH
@pytest.mark.parametrize(
    ("saves", "every_s", "ends", "again"),
    [
        ("checkpoint", 0.0, (420.0, 160.0, 680.0), 0.0),  # a: 50 s to save and restore, 210 steps; then c
        ("nothing", 40.0, (400.0, 160.0, 660.0), 10.0),  # 80 steps are left of the checkpoint at 40 and 80 s of work
        ("nothing", 0.0, (730.0, 160.0, 420.0), 90.0),  # a has 300 steps to do again, so c with 250 is first
    ],
)
def test_a_preempted_job_goes_on_from_what_is_left(
    tmp_path: Path, physics: dict[str, Any], saves: str, every_s: float, ends: tuple[float, ...], again: float
) -> None:
    found = eunomia.simulate(scenario_from_dict(scenario(tmp_path, physics, saves, every_s), tmp_path))
    assert tuple(found.jobs["finished_s"].tolist()) == ends
    assert found.summary["lost_rolled_back_accelerator_s"] == pytest.approx(again)


@BOTH
def test_a_job_that_cannot_be_interrupted_loses_nothing(tmp_path: Path, physics: dict[str, Any]) -> None:
    asked = scenario(tmp_path, physics, "nothing")
    asked["workload"]["interruptible"] = False
    found = eunomia.simulate(scenario_from_dict(asked, tmp_path))
    assert tuple(found.jobs["finished_s"].tolist()) == (310.0, 370.0, 630.0)


@BOTH
def test_a_failure_loses_no_more_than_before(tmp_path: Path, physics: dict[str, Any]) -> None:
    ends = []
    for saves in ("checkpoint", "nothing"):
        asked = scenario(tmp_path, physics, saves, policy={"name": "fifo"})
        asked["world"] = {"job_failures_per_hour": 20.0}
        found = eunomia.simulate(scenario_from_dict(asked, tmp_path))
        assert found.summary["jobs_finished"] == 3
        ends.append(found.jobs["finished_s"].tolist())
    assert ends[0] == ends[1] != [310.0, 370.0, 630.0]


def test_jobs_that_start_over_for_ever_are_given_up(tmp_path: Path) -> None:
    asked = scenario(tmp_path, PLAIN, "nothing", policy={"name": "las", "quantum": 100.0})
    found = eunomia.simulate(scenario_from_dict(asked, tmp_path))
    assert found.summary["jobs_unfinished"] == 2
    assert "preempted jobs save nothing" in found.given_up


def test_a_record_of_such_a_run_replays(tmp_path: Path) -> None:
    found = eunomia.simulate(
        scenario_from_dict(scenario(tmp_path, PLAIN, "nothing"), tmp_path), record_to=tmp_path / "r.gz"
    )
    assert found.record is not None
    assert first_difference(found.record) is None
    assert found.record.header["overheads"]["saves"] == "nothing"


def test_real_processes_save_what_their_program_saves(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenario_from_dict(scenario(tmp_path, PLAIN, "nothing", world={"backend": "local"}), tmp_path)
    assert [problem.column for problem in refused.value.problems] == ["overheads.saves"]


def test_what_is_saved_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="checkpoint, periodic, nothing"):
        Overheads(saves="all")  # type: ignore[arg-type]
    costs = {saves: Overheads(start_s=1, checkpoint_s=2, restore_s=4, saves=saves) for saves in ("periodic", "nothing")}
    assert {saves: cost.of(first=False) for saves, cost in costs.items()} == {"periodic": 4, "nothing": 1}
    assert {cost.of(first=False, saved=False) for cost in costs.values()} == {4}
