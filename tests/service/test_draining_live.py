"""Drains and maintenance as an operator types them, with real processes and a service that is killed in between."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import LiveService, until
from typer.testing import CliRunner

from eunomia.cli.app import app

SITE = """\
[service]
listen = "127.0.0.1:0"
supervisor_lease_s = 60
drain_timeout_s = 60
forecast_every_s = 0
[cluster]
accelerators = { cpu = 3 }
[policy]
name = "fifo"
backfill = "skip"
"""
# It says which accelerator it has, and what it has done when it is asked to save.
WORK = """
import os, signal, sys, time
def save(*_):
    open("saved", "a").write("saved\\n")
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
open("began", "a").write(os.environ["EUNOMIA_SEATS"] + "\\n")
while not os.path.exists("end"):
    time.sleep(0.05)
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveService]:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path, SITE)
    service.start()
    monkeypatch.setenv("EUNOMIA_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("EUNOMIA_URL", "EUNOMIA_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield service
    if service.process is not None and service.process.poll() is None:
        service.kill(signal.SIGTERM)
    service.stop_jobs()


def typed(*words: str, code: int = 0) -> str:
    said = CliRunner().invoke(app, list(words))
    assert said.exit_code == code, said.output
    return said.output


def begin(lab: LiveService, name: str, **document: Any) -> tuple[str, Path, str]:
    """Start a job in a folder of its own; return its id, that folder and its accelerator."""
    folder = lab.folder / name
    folder.mkdir()
    asked = {"command": ["python3", "-c", WORK], "cwd": str(folder), "accelerators": 1, "name": name, **document}
    job = lab.operator.submit(asked)["id"]
    until(lambda: (folder / "began").exists() and (folder / "began").read_text().endswith("\n"))
    until(lambda: state_of(lab, job) == "running")
    return job, folder, (folder / "began").read_text().split()[-1]


def state_of(lab: LiveService, job: str) -> str:
    return str(lab.operator.get(f"/v1/jobs/{job}")["state"])


def pids(lab: LiveService) -> set[int]:
    """Return the processes that run the work."""
    found = set()
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_ours = os.readlink(one / "cwd").startswith(str(lab.folder))
            if is_ours and b"EUNOMIA_SEATS" in (one / "cmdline").read_bytes():
                found.add(int(one.name))
    return found


def test_a_drained_accelerator_is_left_alone_by_its_job_and_by_a_killed_service(lab: LiveService) -> None:
    job, folder, seat = begin(lab, "first")
    other, _, _ = begin(lab, "second")
    before = pids(lab)
    shown = typed("drain", f"cpu-0/{seat}", "--dry-run")
    assert f"{job} of operator: has run for " in shown
    assert other not in shown
    assert "it would run until it ends" in shown
    assert "it would lose" in typed("drain", f"cpu-0/{seat}", "--now", "--dry-run")
    assert typed("drain", f"cpu-0/{seat}", "--reason", "ECC") == (
        f"cpu-0/{seat}: draining\nthey run on until they end: {job}\n"
    )
    lab.kill()
    lab.start()
    assert f"cpu-0/{seat} draining: 1 job left (ECC)" in " ".join(typed("nodes").split())
    until(lambda: state_of(lab, job) == "running")
    assert pids(lab) == before
    (folder / "end").write_text("")
    until(lambda: state_of(lab, job) == "succeeded")
    until(lambda: f"cpu-0/{seat} drained (ECC)" in " ".join(typed("nodes").split()))
    _, _, third = begin(lab, "third")
    assert third != seat
    waiting = lab.operator.submit({"command": ["true"], "accelerators": 1})["id"]
    assert f"cpu-0/{seat} is drained: ECC" in " ".join(typed("why", waiting).split())
    assert json.loads(typed("cluster", "--json"))["types"]["cpu"]["drained"] == 1
    metrics, _ = lab.operator.text("/metrics")
    assert 'eunomia_accelerators{state="drained",type="cpu"} 1.0' in metrics
    assert typed("resume", f"cpu-0/{seat}") == f"cpu-0/{seat}: in service\n"
    until(lambda: state_of(lab, waiting) == "succeeded")


def test_a_drain_with_a_time_stops_what_is_left_then_though_the_service_was_killed(lab: LiveService) -> None:
    job, folder, _ = begin(lab, "work", checkpoint={"grace_s": 20})
    said = typed("drain", "cpu-0", "--by", "6s")
    assert said.startswith("cpu-0: draining\nthey run on until ")
    lab.kill()
    assert not (folder / "saved").exists()
    lab.start()
    until((folder / "saved").exists)
    assert typed("drain", "cpu-0", "--wait") == "cpu-0: drained, no job is left there\n"
    assert state_of(lab, job) in ("pending", "preempted")
    typed("resume", "cpu-0")
    until(lambda: len((folder / "began").read_text().split()) == 2)
    assert typed("drain", "cpu-0", "--now") == f"cpu-0: draining\nthey save and stop: {job}\n"
    until(lambda: len((folder / "saved").read_text().split()) == 2)


def test_maintenance_stops_what_is_left_and_gives_the_node_back(lab: LiveService) -> None:
    job, folder, _ = begin(lab, "work", checkpoint={"grace_s": 20}, duration_s=9000)
    begins = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
    said = typed("maintenance", "cpu-0", "--from", begins, "--for", "5s", "--reason", "fans")
    assert said.startswith("maintenance 1: cpu-0 from ")
    assert "fans" in typed("maintenance", "--list")
    waiting = lab.operator.submit({"command": ["true"], "accelerators": 1, "duration_s": 9000})["id"]
    assert "cpu-0 starts no job that may run into its maintenance" in " ".join(typed("why", waiting).split())
    lab.kill()
    lab.start()
    until((folder / "saved").exists)
    until(lambda: "no maintenance is planned" in typed("maintenance"))
    until(lambda: state_of(lab, waiting) == "succeeded")
    until(lambda: state_of(lab, job) == "running")
    assert typed("maintenance", "cpu-0", "--from", "2h", "--for", "1h").startswith("maintenance 2: cpu-0 from ")
    assert typed("maintenance", "--cancel", "2") == "maintenance 2: cancelled\n"


def test_what_is_typed_wrong_is_refused_with_what_to_type(lab: LiveService) -> None:
    for words, said in (
        (("drain", "cpu-0/x"), "type cpu-0/0 for the first one, or cpu-0"),
        (("drain", "cpu-0/7"), "name one of cpu-0/0 to cpu-0/2"),
        (("drain", "cpu-0", "--by", "soon"), "--by 18:00"),
        (("drain", "cpu-0", "--by", "2001-01-01"), "name a later time"),
        (("drain", "cpu-0", "--by", "1h", "--now"), "give one of the two"),
        (("maintenance", "cpu-0", "--from", "18:00"), "--for"),
        (("maintenance", "cpu-9", "--from", "18:00", "--for", "2h"), "name nodes of this cluster: cpu-0"),
        (("maintenance", "cpu-0", "--from", "18:00", "--for", "long"), "send such as 2h"),
    ):
        assert said in " ".join(typed(*words, code=2).split()), words
    assert "no such node" in typed("drain", "cpu-9", code=1)
    assert "up" in typed("nodes")
