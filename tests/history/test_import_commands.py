"""The command that an import prints runs as it is printed, whatever the history lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app

RUN = CliRunner()
POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "a", "uid": "p", "creationTimestamp": "2024-05-01T07:00:00Z"},
    "spec": {"nodeName": "n1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": 2, "amd.com/gpu": 0}}}]},
    "status": {"phase": "Failed", "startTime": "2024-05-01T08:00:00Z",
               "containerStatuses": [{"state": {"terminated": {"finishedAt": "2024-05-01T09:00:00Z"}}}]},
}  # fmt: skip
AGAIN = json.loads(json.dumps(POD).replace("T08", "T11").replace("T09", "T12").replace('"p"', '"q"'))
for one in (POD, AGAIN):
    one["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]  # type: ignore[index]
TPU = json.loads(json.dumps(POD).replace("nvidia.com/gpu", "google.com/tpu").replace('"p"', '"t"'))
FILES = {  # name → command, file, options, and whether the schedule as it was is in the command
    "no starts": ("csv", "job name,submit time,GPUs,runtime,user\na,2024-03-04 08:00:00,1,600,u\n",
                  ["--accelerators", "v100=8"], False),
    "no type": ("csv", "job name,submit time,start time,GPUs,runtime\na,2024-03-04 08:00,2024-03-04 08:01,1,600\n",
                ["--accelerators", "v100=4", "--accelerators", "a100=4"], False),
    "too small": ("csv", "id,submit,start,GPUs,runtime\na,0,0,4,600\nb,0,0,4,600\n",
                  ["--accelerators", "v100=4"], False),
    "swf": ("swf", "; MaxProcs: 8\n1 0 10 100 4 -1 -1 4 600 -1 1 3 1 -1 1 -1 -1 -1\n", ["--type", "v100"], True),
    "stopped and started again": ("kubernetes", json.dumps([POD, AGAIN]), [], True),
    "two makers": ("kubernetes", json.dumps([POD, TPU]), ["--resource", "google.com/tpu"], True),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_command_that_an_import_prints_runs_as_printed(name: str, tmp_path: Path) -> None:
    engine, text, options, has_past = FILES[name]
    (tmp_path / "history").write_text(text)
    out = str(tmp_path / "ours")
    done = RUN.invoke(app, ["import", engine, str(tmp_path / "history"), "--out", out, *options])
    assert done.exit_code == 0, done.output
    line = done.stdout.splitlines()[-1]
    assert ("--policy as_it_was" in line, "as_it_was) is not known" in done.stdout) == (has_past, not has_past)
    words = line.removeprefix("next: eunomia ").split()
    done = RUN.invoke(app, [*words, "--out", str(tmp_path / "compared")])
    assert done.exit_code == 0, done.output


def test_the_mapping_of_columns_is_printed_and_in_the_quality_report(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(FILES["no starts"][1])
    done = RUN.invoke(app, ["import", "csv", str(tmp_path / "jobs.csv"), "--out", str(tmp_path / "ours")])
    assert "columns: submitted_s ← submit time, duration_s ← runtime, scale_factor ← GPUs" in done.stdout
    quality = json.loads((tmp_path / "ours" / "quality.json").read_text())
    assert quality["columns"]["tenant"] == "user"
    assert quality["accelerator_hours_check"]["unexplained"] == []
