"""`eunomia tune job --service`: short jobs of a running service are measured, and cancelled when they have reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.desk import CommandDesk
from tests.service.bench import LiveService

SCRIPT = """\
import sys, time
from eunomia.lease import Lease
if int(sys.argv[1]) > 1:
    sys.exit("too wide")
with Lease() as lease:
    for step in lease.steps():
        time.sleep(0.05)
        lease.progress(step + 1)
"""


def test_shapes_are_measured_by_jobs_of_the_service_which_are_cancelled_then(
    shared: LiveService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = CommandDesk(tmp_path)
    desk.write("train.py", SCRIPT)
    desk.write("token", (shared.folder / "state" / "operator.token").read_text())
    where = ("--service", "--url", shared.url, "--token-file", "token")
    words = ("tune", "job", *where, "--workers", "1-2", "--steps", "10", "--warm-up", "1", "--out", "tuned")
    assert desk.type(*words, "--", "python", "train.py", "{workers}") == 0, desk.stderr
    rows = json.loads((tmp_path / "tuned" / "tune-job.json").read_text())["measurements"]
    found = {row["workers"]: row for row in rows}
    assert 5 < found[1]["steps_per_s"] < 30
    assert found[1]["gain_low"] is None or found[1]["gain_low"] < found[1]["steps_per_s"]
    assert "too wide" in found[2]["reason"]
    jobs = shared.operator.get("/v1/jobs", label="tuning=job")["jobs"]
    assert sorted(job["state"] for job in jobs) == ["cancelled", "failed"]


def test_types_and_counts_that_the_cluster_lacks_are_refused_before_a_job_is_submitted(
    shared: LiveService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = CommandDesk(tmp_path)
    desk.write("token", (shared.folder / "state" / "operator.token").read_text())
    words = ("--service", "--url", shared.url, "--token-file", "token", "--workers", "1-4", "--out", "tuned", "--json")
    before = len(shared.operator.get("/v1/jobs")["jobs"])
    assert desk.places("tune", "job", *words, "--type", "cpu,v100", "--", "python", "train.py") == [
        ("command line", None, "--workers"), ("command line", None, "--type")
    ]  # fmt: skip
    assert len(shared.operator.get("/v1/jobs")["jobs"]) == before
