"""A whole service whose job leaves a process that does not die: its accelerator has one holder, whatever restarts."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

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
