"""Walks through the whole service with real processes, some of which are killed. The checker reads files only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import SITE, LiveService, until

from eunomia.service.client import Client

SCRIPT = Path(__file__).with_name("recorded_job.py")
FAST = SITE.replace("quantum = 60", "quantum = 2")


def recorded(ledger: Path, steps: int, seconds: float, **more: Any) -> dict[str, Any]:
    """Return the document of a job that writes into the ledger."""
    return {"command": ["python", str(SCRIPT), str(ledger), str(steps), str(seconds)], **more}


def lines(ledger: Path) -> list[list[str]]:
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


def check_ledger(ledger: Path, jobs: dict[str, int]) -> None:
    """Every job did every step exactly once, no accelerator had two jobs, and no start went back."""
    found = lines(ledger)
    assert [line for line in found if line[0] == "DOUBLE"] == []
    done = Counter((job, step) for kind, job, _, step in found if kind == "step")
    assert done == Counter((job, str(step)) for job, steps in jobs.items() for step in range(steps))
    assert {job for kind, job, _, _ in found if kind == "end"} == set(jobs)
    for job in jobs:
        begun = [(int(epoch), int(step)) for kind, one, epoch, step in found if kind == "start" and one == job]
        assert begun == sorted(begun)
        assert len({epoch for epoch, _ in begun}) == len(begun), "an epoch was started twice"


def states(client: Client, jobs: list[str]) -> list[str]:
    return [client.get(f"/v1/jobs/{job}")["state"] for job in jobs]


def test_a_third_job_preempts_the_first_which_resumes_and_a_kill_loses_and_doubles_nothing(live: LiveService) -> None:
    (live.folder / "site.toml").write_text(FAST)
    live.start()
    ledger = live.folder / "ledger"
    ann, bob = live.client("ann", "vision"), live.client("bob", "speech")
    first = ann.submit(recorded(ledger, 80, 0.1))["id"]
    second = bob.submit(recorded(ledger, 100, 0.1))["id"]
    until(lambda: [line for line in lines(ledger) if line[0] == "step" and line[1] == first and int(line[3]) > 25])
    third = bob.submit(recorded(ledger, 40, 0.1))["id"]
    until(lambda: (ann.get(f"/v1/jobs/{first}")["epoch"] == 1 and states(ann, [first])[0] in ("stopping", "preempted"))
          or states(bob, [second])[0] in ("stopping", "preempted"))  # fmt: skip
    until(lambda: states(bob, [third]) == ["running"])
    live.kill(signal.SIGKILL)
    before = len(lines(ledger))
    until(lambda: [line for line in lines(ledger)[before:] if line[:3] == ["step", third, "1"]])  # under its supervisor
    live.start()
    ann, bob = (
        Client(type(ann.address)(live.url, ann.address.token)),
        Client(type(bob.address)(live.url, bob.address.token)),
    )
    fourth = ann.submit(recorded(ledger, 5, 0.05))["id"]
    jobs = {first: 80, second: 100, third: 40, fourth: 5}
    until(lambda: states(live.operator, list(jobs)) == ["succeeded"] * 4, within_s=400)
    check_ledger(ledger, jobs)
    epochs = {job: live.operator.get(f"/v1/jobs/{job}")["epoch"] for job in jobs}
    assert max(epochs[first], epochs[second]) >= 2, "one of the first two was preempted and went on"
    assert live.kill(signal.SIGTERM) == 0
    said = subprocess.run(
        [sys.executable, "-m", "eunomia", "store", "check", "--state", "state"],
        cwd=live.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.stdout.strip() == "the store is sound"
    assert subprocess.run(
        [sys.executable, "-m", "eunomia", "store", "export", "site.toml", "day.jsonl.gz"], cwd=live.folder, check=False
    ).returncode == 0  # fmt: skip
    replayed = [sys.executable, "-m", "eunomia", "replay", "day.jsonl.gz"]
    assert (
        subprocess.run(replayed, cwd=live.folder, capture_output=True, text=True, check=False).stdout == "identical\n"
    )


def test_a_service_whose_world_fails_ends_and_the_next_one_goes_on(live: LiveService) -> None:
    live.start(EUNOMIA_TEST_BUILD="1", EUNOMIA_FAULT_POINT="launch.forked:raise")
    assert live.process is not None
    ledger, client = live.folder / "ledger", live.operator
    job = client.submit(recorded(ledger, 4, 0.05))["id"]
    assert live.process.wait(180) == 1
    assert "the local world has failed" in (live.folder / "log").read_text()
    assert live.process.stdout is not None
    live.process.stdout.close()
    live.start()
    until(lambda: states(live.operator, [job]) == ["succeeded"])
    check_ledger(ledger, {job: 4})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_service_and_its_supervisors_are_killed_at_random_and_every_step_is_done_once(
    live: LiveService, seed: int
) -> None:
    import random

    rng = random.Random(seed)
    (live.folder / "site.toml").write_text(FAST.replace("supervisor_lease_s = 30", "supervisor_lease_s = 6"))
    live.start()
    ledger, client = live.folder / "ledger", live.operator
    jobs = {client.submit(recorded(ledger, steps, 0.1))["id"]: steps for steps in (30, 25, 20, 15, 10, 5)}
    for _ in range(4):
        time.sleep(rng.uniform(0.3, 2.0))
        if rng.random() < 0.4:
            records = [
                json.loads(path.read_text()) for path in (live.folder / "state" / "jobs").glob("*/supervisor-*.json")
            ]
            pids = [one["pid"] for one in records if Path(f"/proc/{one['pid']}/cmdline").exists()
                    and b"supervisor.py" in Path(f"/proc/{one['pid']}/cmdline").read_bytes()]  # fmt: skip
            if pids:
                os.kill(rng.choice(pids), signal.SIGKILL)
        else:
            live.kill(signal.SIGKILL)
            time.sleep(rng.choice([0.0, 0.5, 8.0]))
            live.start()
    client = live.operator
    until(lambda: states(client, list(jobs)) == ["succeeded"] * len(jobs), within_s=500)
    found = lines(ledger)
    assert [line for line in found if line[0] == "DOUBLE"] == []
    assert {(job, int(step)) for kind, job, _, step in found if kind == "step"} == {
        (job, step) for job, steps in jobs.items() for step in range(steps)
    }


@pytest.mark.slow
@pytest.mark.parametrize("point", ["turn.decided", "turn.committed", "orders.sent", "reply.sent", "launch.forked"])
def test_a_kill_at_a_named_point_loses_no_accepted_job_and_a_repeated_submission_makes_one(
    live: LiveService, point: str
) -> None:
    from eunomia.service.client import Unreachable

    ledger = live.folder / "ledger"
    live.start()
    token = live.operator.address.token
    live.kill(signal.SIGTERM)
    hit = 3 if point not in ("launch.forked",) else 1
    live.start(EUNOMIA_TEST_BUILD="1", EUNOMIA_FAULT_POINT=f"{point}:kill:{hit}")
    client = Client(type(live.operator.address)(live.url, token))
    documents = {f"key-number-{n}": recorded(ledger, 4, 0.05) for n in range(4)}
    accepted: dict[str, str] = {}
    for key, document in documents.items():
        try:
            accepted[key] = client.submit(document, key)["id"]
        except Unreachable:
            break
    assert live.process is not None
    assert live.process.wait(180) == -signal.SIGKILL
    assert live.process.stdout is not None
    live.process.stdout.close()
    live.start()
    client = Client(type(client.address)(live.url, token))
    again = {key: client.submit(document, key)["id"] for key, document in documents.items()}
    assert {key: again[key] for key in accepted} == accepted
    jobs = dict.fromkeys(again.values(), 4)
    assert len(client.get("/v1/jobs")["jobs"]) == len(jobs) == 4
    until(lambda: states(client, list(jobs)) == ["succeeded"] * 4, within_s=300)
    check_ledger(ledger, jobs)


@pytest.mark.slow
def test_jobs_save_and_stop_when_no_service_renews_their_leases_and_go_on_later(live: LiveService) -> None:
    (live.folder / "site.toml").write_text(FAST.replace("supervisor_lease_s = 30", "supervisor_lease_s = 4"))
    live.start()
    ledger = live.folder / "ledger"
    job = live.operator.submit(recorded(ledger, 100, 0.1))["id"]
    until(lambda: [line for line in lines(ledger) if line[0] == "step"])
    live.kill(signal.SIGKILL)
    until(lambda: [line for line in lines(ledger) if line[0] == "end"])
    stopped = len(lines(ledger))
    time.sleep(0.5)
    assert len(lines(ledger)) == stopped
    (live.folder / "site.toml").write_text(FAST)  # so that no lease ends again
    live.start()
    until(lambda: states(live.operator, [job]) == ["succeeded"], within_s=300)
    found = lines(ledger)
    assert [int(step) for kind, _, _, step in found if kind == "step"] == list(range(100))
    assert [line[2] for line in found if line[0] == "start"] == ["1", "2"]


@pytest.mark.slow
def test_the_commands_work_without_any_setting_beside_the_state_folder(live: LiveService) -> None:
    live.start()

    def typed(*words: str, **variables: str) -> str:
        said = subprocess.run(
            [sys.executable, "-m", "eunomia", *words],
            cwd=live.folder, capture_output=True, text=True, check=False, env={**os.environ, **variables},
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        return said.stdout

    job = typed("submit", "--name", "hello", "--label", "a=b", "--", "python", "-c", "print('hi', 7, '--json')").strip()
    assert "hi 7 --json" in typed("logs", job, "-f")
    until(lambda: json.loads(typed("job", job, "--json"))["state"] == "succeeded")
    assert "hello" in typed("jobs", "--label", "a=b")
    assert "succeeded" in typed("why", job)
    assert "cpu-0" in typed("nodes")
    (live.folder / "mine").mkdir()
    (live.folder / "mine" / "python").write_text("#!/bin/sh\necho 'this is the python of my shell'\n")
    (live.folder / "mine" / "python").chmod(0o755)
    mine = typed("submit", "--", "python", "train.py", PATH=f"{live.folder}/mine:{os.environ['PATH']}").strip()
    assert "this is the python of my shell" in typed("logs", mine, "-f")
    (live.folder / "sweep.jsonl").write_text('{"command": ["true"]}\n{"command": ["true"], "name": "second"}\n')
    assert len(typed("submit", "--file", "sweep.jsonl").split()) == 2
    held = typed("submit", "--gpus", "2", "--", "sleep", "600").strip()
    assert f"{held}: held" in typed("hold", held)
    assert "its user holds it" in typed("why", held) or "held by" in typed("why", held)
    assert f"{held}: cancelled" in typed("cancel", held)
    assert typed("token", "create", "--user", "x", "--tenant", "y", "--role", "viewer").startswith("eun_")
    typed("store", "backup", "copy.db")
    refused = subprocess.run(
        [sys.executable, "-m", "eunomia", "submit", "--gpus", "9", "--json", "--", "true"],
        cwd=live.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["problems"][0]["field"] == "accelerators"
    live.kill(signal.SIGTERM)
    gone = subprocess.run(
        [sys.executable, "-m", "eunomia", "jobs", "--url", live.url], cwd=live.folder, capture_output=True, check=False
    )
    assert gone.returncode == 3
