"""The whole of Eunomia on an engine: a scenario with preemption, and the service killed at random."""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.engines.loopback import end_all
from tests.service.bench import LiveService, until

SCRIPT = Path(__file__).parent.parent / "service" / "recorded_job.py"
RUN_S = 600.0  # for a scenario to end
SITE = """\
check = true
[service]
listen = "127.0.0.1:0"
[cluster]
nodes = [{ type = "v100", count = 2, accelerators = 4 }, { type = "k80", accelerators = 8 }]
[policy]
name = "las"
quantum = 60
"""


def lines(ledger: Path) -> list[list[str]]:
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


def check_ledger(ledger: Path, jobs: dict[str, int]) -> None:
    """Every step of every job was done once, and no epoch began twice."""
    found = lines(ledger)
    done = Counter((job, step) for kind, job, _, step in found if kind == "step")
    assert done == Counter((job, str(step)) for job, steps in jobs.items() for step in range(steps))
    starts = Counter((job, epoch) for kind, job, epoch, _ in found if kind == "start")
    assert set(starts.values()) == {1}, "an epoch was started twice"


def recorded(ledger: Path, steps: int, **more: Any) -> dict[str, Any]:
    """Return the document of a job that writes its starts and steps to the ledger."""
    return {"command": [sys.executable, str(SCRIPT), str(ledger), str(steps), "0.1"], **more}


def check_scenario(tmp_path: Path, world: str) -> None:
    """Three jobs run with preemption on the backend of these lines, and each step is done once."""
    ledger = tmp_path / "ledger"
    jobs = {"wide": (8, 40, 0.0), "other": (8, 30, 0.0), "late": (4, 10, 1.5)}
    rows = [
        f'{name},{at},{size},x,"{json.dumps(recorded(ledger, steps)["command"]).replace(chr(34), chr(34) * 2)}",{steps}'
        for name, (size, steps, at) in jobs.items()
    ]
    (tmp_path / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,command,total_steps\n" + "\n".join(rows)
    )
    (tmp_path / "run.toml").write_text(
        SITE.replace('[service]\nlisten = "127.0.0.1:0"\n', '[workload]\ntrace = "jobs.csv"\n').replace(
            'name = "las"\nquantum = 60', 'name = "srtf"'
        )
        + world
        + '[throughputs]\nsource = "uniform"\n'
    )
    argv = [sys.executable, "-m", "eunomia", "run", "run.toml", "--out", "out"]
    with open(tmp_path / "said", "wb") as said:
        run = subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        code: int | str = run.wait(RUN_S)
    except subprocess.TimeoutExpired:
        code = f"not within {RUN_S:g} s"
    finally:
        end_all([run], 30.0)
    assert code == 0, f"eunomia run: {code}\n{(tmp_path / 'said').read_text()[-4000:]}"
    with open(tmp_path / "out" / "jobs.csv", newline="") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["finished"] * 3
    check_ledger(ledger, {name: steps for name, (_, steps, _) in jobs.items()})
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["preemptions"] >= 1


def service_after_kills(tmp_path: Path, world: str) -> LiveService:
    """Return a service whose jobs have all succeeded, each epoch started once, although it was killed three times."""
    pytest.importorskip("uvicorn", reason="needs the extra service")
    rng = random.Random(0)
    service = LiveService(tmp_path)
    (tmp_path / "site.toml").write_text(SITE + world)
    service.start()
    ledger = tmp_path / "ledger"
    try:
        jobs = {
            service.operator.submit(recorded(ledger, steps, accelerators=4))["id"]: steps
            for steps in (30, 25, 20, 15, 10)
        }
        for _ in range(3):
            time.sleep(rng.uniform(0.3, 2.0))
            service.kill(signal.SIGKILL)
            time.sleep(rng.choice([0.0, 1.0]))
            service.start()
        until(
            lambda: all(service.operator.get(f"/v1/jobs/{job}")["state"] == "succeeded" for job in jobs),
            within_s=300,
            state=lambda: [service.operator.get(f"/v1/jobs/{job}{of}") for job in jobs for of in ("", "/why")],
        )
        check_ledger(ledger, jobs)
    except BaseException:
        service.kill(signal.SIGTERM)
        raise
    return service
