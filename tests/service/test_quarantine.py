"""A whole service whose gangs it does not have in hand: an accelerator has one holder, whatever restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import SITE, LiveService, until
from tests.unkillable import freezer

from eunomia.backends.processes.gang_group import children


def supervisors(live: LiveService) -> list[int]:
    assert live.process is not None
    found = children(live.process.pid)
    return [pid for pid in found if b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_seat_with_an_unkillable_process_stays_out_of_service_over_a_restart_and_says_why(tmp_path: Path) -> None:
    live = LiveService(tmp_path, SITE.replace("cpu = 2", "cpu = 1"))
    live.start()
    ann = live.client("ann", "vision")

    def node() -> dict[str, Any]:
        (found,) = live.operator.get("/v1/nodes")["nodes"]
        return dict(found)

    with freezer() as cold:
        job = ann.submit({"command": ["sleep", "600"], "checkpoint": {"grace_s": 0}})["id"]
        until(lambda: ann.get(f"/v1/jobs/{job}")["state"] == "running")
        supervisor = until(lambda: supervisors(live))[0]
        cold.freeze(until(lambda: children(supervisor))[0])
        ann.send("DELETE", f"/v1/jobs/{job}")
        os.kill(supervisor, signal.SIGKILL)
        until(lambda: node()["quarantined"] == [0])
        before = node()["quarantine"]["0"]
        assert before["job"] == job
        shown = subprocess.run(
            [sys.executable, "-m", "eunomia", "nodes"], check=True, cwd=tmp_path, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "EUNOMIA_STATE": "state", "COLUMNS": "400"},
        ).stdout  # fmt: skip
        assert f"processes of job {job} that cannot be killed since {before['since']}: {before['why']}" in shown
        live.kill()
        live.start()
        waiting = ann_again(live, ann).submit({"command": ["true"]})["id"]
        until(lambda: node()["quarantined"] == [0])
        assert node()["quarantine"]["0"] == before
        said = [one["text"] for one in live.operator.get(f"/v1/jobs/{waiting}/why")["reasons"]]
        assert any(f"processes of job {job} that cannot be killed" in text for text in said)
        assert live.operator.get(f"/v1/jobs/{waiting}")["state"] == "pending"
        cold.thaw()
        until(lambda: live.operator.get(f"/v1/jobs/{waiting}")["state"] == "succeeded")
        assert node()["quarantined"] == []
    live.kill(signal.SIGTERM)


def ann_again(live: LiveService, ann: Any) -> Any:
    """Return a client with the same token, for the port of the service that was started again."""
    from eunomia.service.client import Address, Client

    return Client(Address(live.url, ann.address.token))


def test_a_gang_that_a_restored_store_does_not_know_is_named_and_can_be_ended(tmp_path: Path) -> None:
    live = LiveService(tmp_path, SITE.replace("cpu = 2", "cpu = 1").replace("lease_s = 30", "lease_s = 600"))
    live.start()
    backup = str(tmp_path / "backup.db")
    assert eunomia(tmp_path, "backup", backup).startswith("written")
    job = live.operator.submit({"command": ["sleep", "600"], "checkpoint": {"grace_s": 0}})["id"]
    until(lambda: live.operator.get(f"/v1/jobs/{job}")["state"] == "running")
    live.kill()
    eunomia(tmp_path, "restore", backup)
    live.start()
    (node,) = until(lambda: [one for one in live.operator.get("/v1/nodes")["nodes"] if one["taken"]])
    assert node["taken"]["0"].startswith(f"job {job}, which the store does not know to run")
    waiting = live.operator.submit({"command": ["true"]})["id"]
    assert any(job in one["text"] for one in live.operator.get(f"/v1/jobs/{waiting}/why")["reasons"])
    assert eunomia(tmp_path, "orphans") == f"{job}  start 1, seats 0"
    assert "no gang of that job runs here" in eunomia(tmp_path, "orphans", "--end", "7-absent")
    assert eunomia(tmp_path, "orphans", "--end", job, "--grace", "0").endswith("is being stopped")
    until(lambda: live.operator.get(f"/v1/jobs/{waiting}")["state"] == "succeeded")
    assert eunomia(tmp_path, "orphans") == "every gang that runs here is known to the store"
    live.kill(signal.SIGTERM)


def test_a_gang_whose_job_waits_in_a_restored_store_is_taken_back_and_goes_on(tmp_path: Path) -> None:
    live = LiveService(tmp_path, SITE.replace("cpu = 2", "cpu = 1").replace("lease_s = 30", "lease_s = 600"))
    live.start()
    first = live.operator.submit({"command": ["sleep", "600"], "checkpoint": {"grace_s": 0}})["id"]
    until(lambda: live.operator.get(f"/v1/jobs/{first}")["state"] == "running")
    go_on = tmp_path / "go-on"
    waits = f"while [ ! -e {go_on} ]; do sleep 0.1; done"
    second = live.operator.submit({"command": ["sh", "-c", waits], "checkpoint": {"grace_s": 0}})["id"]
    backup = str(tmp_path / "backup.db")
    assert eunomia(tmp_path, "backup", backup).startswith("written")
    live.operator.send("DELETE", f"/v1/jobs/{first}")
    until(lambda: live.operator.get(f"/v1/jobs/{second}")["state"] == "running")
    live.kill()
    eunomia(tmp_path, "restore", backup)
    live.start()  # its store says that the first runs and the second waits
    assert f"start 1 of job {second} goes on" in until(lambda: taken_back(tmp_path))
    until(lambda: live.operator.get(f"/v1/jobs/{second}")["state"] == "running")
    assert live.operator.get(f"/v1/jobs/{second}")["seats"] == [0]
    live.kill()
    live.start()  # nothing of it is only in memory
    until(lambda: live.operator.get(f"/v1/jobs/{second}")["state"] == "running")
    assert eunomia(tmp_path, "orphans") == "every gang that runs here is known to the store"
    live.operator.send("DELETE", f"/v1/jobs/{first}")
    go_on.touch()
    until(lambda: live.operator.get(f"/v1/jobs/{second}")["state"] == "succeeded")
    assert live.kill(signal.SIGTERM) == 0


def taken_back(folder: Path) -> str:
    return "\n".join(line for line in (folder / "log").read_text().splitlines() if "did not know it" in line)


def eunomia(folder: Path, *words: str) -> str:
    """Run `eunomia store` on the state folder, and return what it prints."""
    command = [sys.executable, "-m", "eunomia", "store", *words, "--state", "state"]
    return subprocess.run(
        command, check=False, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout.strip()
