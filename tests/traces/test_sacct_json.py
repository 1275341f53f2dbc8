"""`sacct --json` is read as the text form is; what is wrong with it is said with its row and field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.traces.sacct_truth import LAYOUTS, SacctHistory

from eunomia import read_trace
from eunomia.inputs.problems import InvalidInput
from eunomia.traces.slurm import read_history

Write = Callable[..., Path]
JOB: dict[str, Any] = {
    "job_id": 7, "account": "bio", "user": "ann", "partition": "gpu", "qos": "normal", "cluster": "c",
    "nodes": "n[1-2]", "allocation_nodes": 2, "state": {"current": ["RUNNING", "COMPLETING"], "reason": "None"},
    "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}, "task": ""},
    "het": {"job_id": 0, "job_offset": {"set": False, "infinite": False, "number": 0}},
    "time": {"submission": 1_700_000_000, "eligible": 1_700_000_000, "start": 1_700_000_060, "end": 0, "elapsed": 600,
             "suspended": 0},
    "tres": {"requested": [],
             "allocated": [{"type": "mem", "name": "", "id": 2, "count": 65536},
                           {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 8}]},
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_jobs_have_the_same_trace_in_lines_and_in_json(layout: str, tmp_path: Path) -> None:
    for seed in range(20):
        read = []
        for form in ("", layout):
            history = SacctHistory(seed)
            history.season, history.elapsed_in, history.without_elapsed, history.split = "plain", "both", False, None
            folder = tmp_path / f"{seed}{form}"
            folder.mkdir()
            read.append(read_history(history.write(folder, form)))
        lines, objects = read
        assert lines.hours is not None and objects.hours is not None
        assert {k: round(v, 6) for k, v in lines.hours.by_owner.items()} == {
            k: round(v, 6) for k, v in objects.hours.by_owner.items()
        }
        of_lines, of_objects = (
            sorted(zip((name.partition("@")[0] for name in one.trace.job_id),
                       one.trace.scale_factor.tolist(), one.trace.duration_s.tolist(),
                       one.trace.tenant, one.trace.memory_gib.tolist(), one.ran_on, strict=True))
            for one in read
        )  # fmt: skip
        assert of_lines == of_objects


def written_jobs(written: Write, *jobs: dict[str, Any], **more: Any) -> Path:
    return written(json.dumps({"jobs": jobs, **more}, indent=1), name="sacct.json")


def test_a_job_of_json_is_read_with_all_that_its_line_would_say(written: Write) -> None:
    found = read_history([written_jobs(written, JOB)])
    trace = found.trace
    assert (trace.job_id, trace.tenant, trace.scale_factor.tolist()) == (("7",), ("bio",), [8])
    assert (trace.duration_s.tolist(), trace.memory_gib.tolist(), found.ran_on) == ([600.0], [64.0], ("a100",))
    assert (found.started_s.tolist(), found.machines) == ([60.0], (("n1", "n2"),))
    assert any("still ran" in each.what for each in found.findings)  # the last word of the state counts


def test_tasks_of_arrays_and_components_have_the_ids_of_the_text(written: Write) -> None:
    of_array = {"job_id": 12, "task_id": {"set": True, "infinite": False, "number": 0}, "task": ""}
    waits = {"job_id": 12, "task_id": None, "task": "4-9"}
    of_het = {"job_id": 20, "job_offset": 1}
    jobs = [JOB | {"job_id": 13, "array": of_array}, JOB | {"job_id": 12, "array": waits},
            JOB | {"job_id": 21, "het": of_het}]  # fmt: skip
    found = read_history([written_jobs(written, *jobs)])
    assert sorted(found.trace.job_id) == ["12_0", "20+1"]
    assert any("array tasks that never started" in each.what and "JobID=12_[4-9]" in each.example
               for each in found.findings)  # fmt: skip


def test_each_job_that_lacks_something_is_named_with_its_row_and_field(written: Write) -> None:
    path = written_jobs(written, JOB, {"job_id": 8}, JOB | {"time": JOB["time"] | {"elapsed": "10 min"}})
    with pytest.raises(InvalidInput) as caught:
        read_trace(path, "slurm")
    rows = [n for n, line in enumerate(path.read_text().splitlines(), 1) if line == "  {"]
    assert [(one.row, one.column) for one in caught.value.problems] == [
        (rows[1], "time.submission"), (rows[1], "state.current"), (rows[1], "tres"), (rows[2], "time.elapsed"),
    ]  # fmt: skip
    assert all("sacct --allusers" in one.fix for one in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"items": []}', "there is no list 'jobs'"),
        ('{"jobs": [{"job_id": 1}, {"job_id"', "Expecting"),
        ('{"jobs": [{"job_id": NaN}]}', "NaN is no number of JSON"),
        ('{"jobs": [1]}', "a job must be an object"),
        ('{"jobs": []}', "there is no line of a job"),
        ('{"jobs": []} x', "Extra data"),
        ('{"jobs": [{"job_id": 1},]}', "Expecting value"),
    ],
)
def test_other_json_is_refused_with_the_command_that_writes_it(written: Write, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match="sacct --allusers") as caught:
        read_history([written(text)])
    assert said in str(caught.value)


def test_files_of_both_forms_do_not_mix(written: Write) -> None:
    lines = written("JobID|Submit|State|ElapsedRaw|AllocTRES", "1|2024-05-01T00:00:00|COMPLETED|60|gres/gpu=1",
                    name="sacct.txt")  # fmt: skip
    with pytest.raises(InvalidInput, match="files of one form"):
        read_history([lines, written_jobs(written, JOB)])


@pytest.mark.parametrize("indent", [None, 2])
def test_the_format_is_detected_from_the_first_name(written: Write, indent: int | None) -> None:
    for first in ({"jobs": [JOB], "meta": {}}, {"meta": {}, "errors": [], "jobs": [JOB]}):
        path = written(json.dumps(first, indent=indent))
        assert read_trace(path, "auto").job_id == ("7",)
