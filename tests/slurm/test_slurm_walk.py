"""The whole of Eunomia on a real Slurm: `eunomia run`, and the service with its process killed at random."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import LiveService, until
from tests.slurm.loopback import LoopbackCluster

SCRIPT = Path(__file__).parent.parent / "service" / "recorded_job.py"
SITE = """\
check = true
[service]
listen = "127.0.0.1:0"
[cluster]
nodes = [{ type = "v100", count = 2, accelerators = 4 }, { type = "k80", accelerators = 8 }]
[policy]
name = "las"
quantum = 4
[world]
backend = "slurm"
[world.slurm]
poll_s = 0.3
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
    return {"command": [sys.executable, str(SCRIPT), str(ledger), str(steps), "0.1"], **more}


def test_a_scenario_runs_on_slurm_with_preemption_and_each_step_is_done_once(
    slurm: LoopbackCluster, tmp_path: Path
) -> None:
    from eunomia.runs.local_run import run_real
    from eunomia.scenario import load_scenario

    ledger = tmp_path / "ledger"
    jobs = {"wide": (8, 40, 0.0), "other": (8, 15, 0.0), "late": (4, 10, 1.5)}
    rows = [
        f'{name},{at},{size},x,"{json.dumps(recorded(ledger, steps)["command"]).replace(chr(34), chr(34) * 2)}",{steps}'
        for name, (size, steps, at) in jobs.items()
    ]
    (tmp_path / "jobs.csv").write_text(
        "job_id,submitted_s,scale_factor,job_type,command,total_steps\n" + "\n".join(rows)
    )
    (tmp_path / "run.toml").write_text(
        SITE.replace('[service]\nlisten = "127.0.0.1:0"\n', '[workload]\ntrace = "jobs.csv"\n').replace(
            'name = "las"\nquantum = 4', 'name = "srtf"'
        )
        + '[throughputs]\nsource = "uniform"\n'
    )
    result = run_real(load_scenario(tmp_path / "run.toml"), tmp_path / "out")
    assert [outcome.status for outcome in result.outcomes] == ["finished"] * 3
    check_ledger(ledger, {name: steps for name, (_, steps, _) in jobs.items()})
    assert result.summary["preemptions"] >= 1
    slurm.clear()


def test_the_service_is_killed_at_random_and_slurm_s_jobs_are_adopted(slurm: LoopbackCluster, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason='needs the extra: pip install "eunomia[service]"')
    rng = random.Random(0)
    service = LiveService(tmp_path)
    (tmp_path / "site.toml").write_text(SITE)
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
        until(lambda: all(service.operator.get(f"/v1/jobs/{job}")["state"] == "succeeded" for job in jobs), within_s=60)
        found = lines(ledger)
        starts = Counter((job, epoch) for kind, job, epoch, _ in found if kind == "start")
        assert set(starts.values()) == {1}, "an epoch was started twice"
        assert {(job, int(step)) for kind, job, _, step in found if kind == "step"} == {
            (job, step) for job, steps in jobs.items() for step in range(steps)
        }
        node = service.operator.get("/v1/nodes")["nodes"][0]["name"]
        service.operator.send("PUT", f"/v1/nodes/{node}", {"action": "drain", "reason": "fans"})
        until(lambda: "drain" in slurm.say("sinfo", "-h", "-n", "v100-0", "-o", "%t"))
        service.operator.send("PUT", f"/v1/nodes/{node}", {"action": "resume"})
        until(lambda: "idle" in slurm.say("sinfo", "-h", "-n", "v100-0", "-o", "%t"))
        slurm.do("scontrol", "update", "nodename=v100-1", "state=drain", "reason=cables")
        until(lambda: "cables" in str(service.operator.get("/v1/nodes")["nodes"][1]["reason"]))
    finally:
        service.kill(signal.SIGTERM)
        slurm.clear()


def test_users_go_on_typing_sbatch_and_a_short_job_preempts_a_long_one(slurm: LoopbackCluster, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason='needs the extra: pip install "eunomia[service]"')
    service = LiveService(tmp_path)
    site = SITE.replace('name = "las"\nquantum = 4', 'name = "srtf"')
    adopts = 'backend = "slurm"\nadopt_submissions = true'
    (tmp_path / "site.toml").write_text(site.replace('backend = "slurm"', adopts))
    service.start()

    def sbatch(*options: str, script: str) -> str:
        return slurm.do("sbatch", "--parsable", "--hold", "--output=/dev/null", *options, f"--wrap={script}")

    def job(number: str) -> dict[str, Any]:
        jobs = service.operator.get("/v1/jobs")["jobs"]
        return next((one for one in jobs if one["labels"].get("engine-submission") == number), {"state": ""})

    def state(number: str) -> str:
        return slurm.say("squeue", "-h", "-j", number, "-o", "%T").strip()

    try:
        long = sbatch("--gpus=k80:8", "--time=60", "--account=vision", "--requeue", script="sleep 8")
        until(lambda: job(long)["state"] == "running")
        assert job(long)["tenant"] == "vision" and job(long)["name"] == "wrap"
        short = sbatch("--gres=gpu:k80:4", "--nodes=1", "--time=1", script="sleep 1")
        until(lambda: job(short)["state"] in ("running", "succeeded"))
        assert state(long) != "RUNNING", "the long job was requeued"
        cancelled = sbatch("--gpus=k80:8", "--time=90", script="sleep 1")
        until(lambda: job(cancelled)["state"] == "pending")
        slurm.do("scancel", cancelled)
        until(lambda: job(cancelled)["state"] == "cancelled")
        until(lambda: job(short)["state"] == "succeeded" and job(long)["state"] == "succeeded", within_s=60)
        assert job(long)["epoch"] == 2
    finally:
        service.kill(signal.SIGTERM)
        slurm.clear()
