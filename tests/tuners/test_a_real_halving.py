"""Trials that are real processes, paused on their rungs by checkpoint and resumed from it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from eunomia.model.events import AppFinished, JobPaused, JobResumed
from eunomia.records.record import Record
from eunomia.records.replay import first_difference
from eunomia.runs.local_run import run_real
from eunomia.scenario import scenario_from_dict

EXAMPLE = Path(__file__).parents[2] / "examples" / "local"


@pytest.mark.slow
def test_real_trials_wait_for_each_other_and_go_on_from_their_checkpoints(tmp_path: Path) -> None:
    """Four trials of 16 steps, halved, on two seats: two go on at 4 steps and one at 8, long before they are done."""
    with (EXAMPLE / "trials.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[:5]
    for row in rows[1:]:
        row[rows[0].index("total_steps")] = "16"
    with (tmp_path / "trials.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    said = {
        "cluster": {"accelerators": {"cpu": 2}},
        "workload": {"trace": str(tmp_path / "trials.csv")},
        "throughputs": {"source": "uniform"},
        "policy": {"name": "fifo"},
        "check": True,
        "apps": {"tuner": "halving", "eta": 2},
        "world": {"backend": "local", "workdir": str(tmp_path / "work")},
    }
    result = run_real(scenario_from_dict(said, EXAMPLE), tmp_path)
    assert sorted(result.jobs["status"].tolist()) == ["cancelled"] * 3 + ["finished"]
    assert set(result.jobs["preemptions"].tolist()) == {0}
    record = result.record
    assert record is not None
    events = [event for _, moment, _ in record.steps() for event in moment.events]
    (end,) = [event for event in events if isinstance(event, AppFinished)]
    assert result.jobs["job_id"][result.jobs["status"] == "finished"].tolist() == [end.best]
    paused = [event.job_id for event in events if isinstance(event, JobPaused)]
    assert paused
    assert {event.job_id for event in events if isinstance(event, JobResumed)} <= set(paused)
    assert first_difference(Record(record.path)) is None
