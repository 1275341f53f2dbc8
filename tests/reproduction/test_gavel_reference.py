"""A folder of Gavel's results: what is wrong with one is reported, and a log that differs is reported where."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia_reproduction.gavel.log_replay import of_log
from eunomia_reproduction.gavel.reference import read_reference

DATA = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "gavel"
RUN: dict[str, Any] = {
    "id": "a__1-1-1__isolated", "trace": "a.trace", "policy": "isolated", "policy_name": "Isolated",
    "cluster": {"v100": 1}, "gpus_per_server": {"v100": 1}, "seed": 0, "round_seconds": 360, "global_queue": False,
    "jct": {"0": 1.0}, "average_jct": 1.0, "makespan": 1.0,
}  # fmt: skip


def written(folder: Path, *runs: dict[str, Any]) -> Path:
    (folder / "traces").mkdir()
    (folder / "traces" / "a.trace").write_text("")
    (folder / "simulation_throughputs.json.gz").write_bytes(b"")
    (folder / "reference_results.json").write_text(json.dumps({"runs": list(runs)}))
    return folder


def test_a_folder_without_results_is_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_reference(tmp_path)
    assert "reference_results.json" in str(refused.value)


def test_everything_that_a_run_lacks_is_reported_at_once(tmp_path: Path) -> None:
    bad = {key: value for key, value in RUN.items() if key not in ("seed", "jct")} | {"id": "b", "trace": "b.trace"}
    found = read_reference(written(tmp_path, RUN, bad))
    assert [run.id for run in found.runs] == [RUN["id"]]
    assert [(problem.row, problem.column) for problem in found.failed["b"].problems] == [
        (2, "seed"),
        (2, "jct"),
        (2, "trace"),
    ]


def test_results_that_are_no_json_are_refused(tmp_path: Path) -> None:
    written(tmp_path, RUN)
    (tmp_path / "reference_results.json").write_text("{")
    with pytest.raises(InvalidInput):
        read_reference(tmp_path)


@pytest.mark.skipif(not (DATA / "round_logs.json.gz").is_file(), reason=f"there are no results of Gavel in {DATA}")
def test_the_first_round_of_a_log_that_differs_is_named() -> None:
    found = read_reference(DATA)
    one = next(run for run in found.runs if run.id in found.logs and run.policy == "isolated" and len(run.jct) < 50)
    events = copy.deepcopy(found.logs[one.id])
    third = [event for event in events if "assign" in event][2]
    (first, seats), (second, others) = list(third["assign"].items())[:2]
    third["assign"] |= {first: others, second: seats}
    rounds, *_ = of_log(one, replace(found, logs={one.id: events}))
    assert rounds.within is False
    assert rounds.measured == (rounds.published or 0) - 1
    assert "round 3 at" in rounds.note

    early = next(event for event in events if "allocation" in event and event["t"] > 0)
    early["t"] -= 1.0
    rounds, *_ = of_log(one, replace(found, logs={one.id: events}))
    assert rounds.within is False
