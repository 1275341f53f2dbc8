"""Rates that the jobs of a run reached, from the steps that they reported."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import eunomia
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.records.learnt_rates import measured_rates
from eunomia.records.record import Record

JOB = "ResNet-50 (batch size 64)"
SCENARIO = {"cluster": {"accelerators": {"v100": 2}}, "policy": {"name": "fifo"}, "throughputs": {"source": "uniform"}}


def run_with_reports(folder: Path, *reports: tuple[float, str, float]) -> Record:
    """A run of two jobs that start at 0, one of two accelerators after the other, with such reports of steps."""
    trace = folder / "jobs.csv"
    rows = [f"a,{JOB},1,5000,0", f"b,{JOB},1,5000,0"]
    trace.write_text("\n".join(["job_id,job_type,scale_factor,total_steps,submitted_s", *rows]) + "\n")
    path = folder / "record.jsonl.gz"
    eunomia.simulate({**SCENARIO, "workload": {"trace": str(trace)}}, record_to=path)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    end = next(row for row, line in enumerate(lines) if "JobFinished" in line)
    events = [(at, {"is": "Progressed", "job_ids": [job], "steps": [steps]}) for at, job, steps in reports]
    said = [json.dumps({"at": at, "kind": "moment", "events": [event]}) for at, event in events]
    path.write_bytes(gzip.compress("\n".join([*lines[:end], *said, *lines[end:]]).encode() + b"\n"))
    return Record(path)


def test_a_rate_is_that_between_the_first_report_and_the_last(tmp_path: Path) -> None:
    found = measured_rates(run_with_reports(tmp_path, (50.0, "a", 10.0), (60.0, "a", 40.0), (70.0, "a", 90.0)))
    assert found.alone == {("v100", JOB, 1): pytest.approx(4.0)}
    assert found.pairs == {}


def test_starts_of_one_kind_count_by_their_seconds(tmp_path: Path) -> None:
    reports = (0.0, "a", 0.0), (10.0, "b", 0.0), (40.0, "b", 30.0), (60.0, "a", 240.0)
    assert measured_rates(run_with_reports(tmp_path, *reports)).alone == {("v100", JOB, 1): pytest.approx(270 / 90)}


def test_a_job_that_reported_once_says_no_rate(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no start of a job that ran alone reported its steps twice"):
        measured_rates(run_with_reports(tmp_path, (50.0, "a", 10.0)))


def test_a_run_is_calibrated_like_a_table(tmp_path: Path) -> None:
    record, out = run_with_reports(tmp_path, (50.0, "a", 10.0), (70.0, "a", 90.0)), tmp_path / "out.csv"
    ran = CliRunner().invoke(app, ["calibrate", str(record.path), "--types", "k80", "--out", str(out), "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["measurements"] == 1
    assert f"v100,{JOB},1,4," in out.read_text()
