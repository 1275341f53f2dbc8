"""The whole of Eunomia on a real Slurm: `eunomia run`, and the service with its process killed at random."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.engines.walk import SITE, check_scenario, service_after_kills
from tests.service.bench import LiveService, until
from tests.slurm.loopback import LoopbackCluster

WORLD = """\
[world]
backend = "slurm"
[world.slurm]
poll_s = 0.3
"""


def test_a_scenario_runs_on_slurm_with_preemption_and_each_step_is_done_once(
    slurm: LoopbackCluster, tmp_path: Path
) -> None:
    check_scenario(tmp_path, WORLD)
    slurm.clear()


def test_the_service_is_killed_at_random_and_slurm_s_jobs_are_adopted(slurm: LoopbackCluster, tmp_path: Path) -> None:
    service = service_after_kills(tmp_path, WORLD)
    try:
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
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path)
    site = (SITE + WORLD).replace('name = "las"\nquantum = 60', 'name = "srtf"')
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
        until(lambda: job(short)["state"] == "succeeded" and job(long)["state"] == "succeeded", within_s=300)
        assert job(long)["epoch"] == 2
    finally:
        service.kill(signal.SIGTERM)
        slurm.clear()
