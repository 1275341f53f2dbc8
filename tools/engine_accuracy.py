"""Plays one scenario of 60 short jobs in the simulation and on real backends, and compares the mean JCT.

    python tools/engine_accuracy.py local slurm --out accuracy
    python tools/engine_accuracy.py ray kubernetes --loopback --kills 3 --out accuracy
    python tools/engine_accuracy.py local slurm ray --loopback --serve --kills 6 --out served

The cluster has 8 seats of type v100 and 8 of k80; jobs are real processes that sleep through their steps, which take
twice as long on k80, and save each. Overheads are measured on each backend first (`eunomia world measure`); the
simulation's checkpoints take half a step longer, as a gang that is stopped finishes its step.
`--loopback` starts the engine of the tests on this machine. With `--kills`, `eunomia run` is killed so often, at random
points, and resumed. With `--serve` the jobs are submitted to `eunomia serve` at their times, and it is the service that
is killed and started again; a submission without an answer is repeated with its key. Each start and step of a job is
written down, and each use of a seat: none may be there twice, and none may be missing; nor may a job of the service.
Which job finds which seats free turns on fractions of a second, so the simulation is repeated with submissions moved by
up to half a second: the mean JCT of these runs is what the real one is compared with, and their range is printed. Where
no job is preempted, the simulation is also given what each start cost in the real run.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eunomia.runs.engine_overheads import measure_overheads, with_overheads
from eunomia.runs.simulation import simulate
from eunomia.scenario import Scenario, load_scenario
from eunomia.scenario.writing import as_toml, with_absolute_paths
from eunomia.service.client import Unreachable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
if TYPE_CHECKING:
    from tests.service.bench import LiveService

JOB = """\
import fcntl, os, sys, time
from eunomia.lease import Lease

def note(what, number):
    with open(sys.argv[2], "a") as ledger:
        ledger.write(f"{what} {sys.argv[3]} {number}\\n")

node = os.environ.get("SLURMD_NODENAME", "")  # Slurm gives a gang any accelerators of the node
seats = os.environ["CUDA_VISIBLE_DEVICES" if node else "EUNOMIA_SEATS"].split(",")
held = [open(f"{sys.argv[2]}-seat-{node}-{seat}", "w") for seat in seats]
for number, seat in enumerate(held):
    try:
        fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note("taken", number)
seconds = {"v100": 0.5, "k80": 1.0}[os.environ["EUNOMIA_ACCELERATOR_TYPE"]]
note("start", os.environ["EUNOMIA_EPOCH"])
with Lease() as lease:
    state = lease.load({"step": 0})
    for step in lease.steps(int(sys.argv[1]), start=state["step"]):
        time.sleep(seconds)
        state = {"step": step + 1}
        lease.save(state)
        note("step", step)
"""
SCENARIO = """\
seed = 0
[cluster]
nodes = [{ type = "v100", count = 2, accelerators = 4 }, { type = "k80", count = 1, accelerators = 8 }]
[workload]
trace = "jobs.csv"
[throughputs]
source = "speeds.csv"
reference_type = "v100"
[policy]
name = "fifo?backfill=skip"
[world]
backend = "local"
"""
JOBS, SPAN_S = 60, 90.0
DRAWS, MOVED_S = 20, 0.5  # of the submissions
HALF_STEP_S = (0.5 / 2 + 1.0 / 2) / 2  # that a gang which is stopped works on, on average over the two types
LEDGER = "ledger"
LONGEST_S = 900.0  # for a run


def write_scenario(folder: Path) -> Path:
    """Write scenario, trace, throughputs and program; return the scenario's path."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    (folder / "job.py").write_text(JOB)
    sizes = rng.choice([1, 2, 4], JOBS, p=[0.5, 0.3, 0.2])
    lines = ["job_id,submitted_s,scale_factor,job_type,total_steps,command"]
    for n, at in enumerate(np.sort(rng.uniform(0, SPAN_S, JOBS))):
        steps = int(rng.integers(8, 41))
        argv = [sys.executable, str(folder.resolve() / "job.py"), str(steps), str(folder.resolve() / LEDGER), f"j{n}"]
        command = json.dumps(argv).replace('"', '""')
        lines.append(f'j{n},{at:.3f},{sizes[n]},sleep,{steps},"{command}"')
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    speeds = [f"{kind},sleep,{size},{rate}" for kind, rate in (("v100", 2), ("k80", 1)) for size in (1, 2, 4)]
    (folder / "speeds.csv").write_text("\n".join(["type,job_type,scale_factor,steps_per_s", *speeds]) + "\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    return folder / "scenario.toml"


@contextmanager
def engine(backend: str, *, on_loopback: bool) -> Iterator[list[str]]:
    """Start the engine of the tests, if it is wanted; yield what scenarios need to reach it."""
    if not on_loopback or backend not in ("slurm", "ray", "kubernetes"):
        yield []
        return
    if backend == "slurm":
        from tests.slurm.loopback import LoopbackCluster

        with tempfile.TemporaryDirectory() as folder, closing(LoopbackCluster(Path(folder))):
            yield []
        return
    if backend == "ray":
        from tests.ray_cluster.loopback import RayCluster

        with closing(RayCluster()) as cluster:
            yield [f"world.ray.address={cluster.address}"]
        return
    from tests.kubernetes.kubelet import Kubelet
    from tests.kubernetes.loopback import LoopbackServer

    with tempfile.TemporaryDirectory() as folder, closing(LoopbackServer(Path(folder))) as server:
        os.environ["KUBECONFIG"] = str(server.folder / "kubeconfig")
        with closing(Kubelet(server)):
            yield ["world.kubernetes.image=none"]


def run_killed(file: Path, out: Path, kills: int) -> dict[str, Any]:
    """Run a scenario in a process that is killed so often; return its summary."""
    rng = random.Random(0)
    argv = [sys.executable, "-m", "eunomia", "run", str(file), "--out", str(out), "--force"]
    for _ in range(kills):
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            time.sleep(rng.uniform(5.0, 2.0 * SPAN_S / kills))
            process.kill()
        argv[-1] = "--resume"
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=LONGEST_S)
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def serve_killed(scenario: Scenario, out: Path, kills: int) -> dict[str, Any]:
    """Submit the trace to a service that is killed so often; return what `run_killed` does, of the service's jobs."""
    from tests.service.bench import LiveService

    out.mkdir()
    tables = as_toml(with_absolute_paths(scenario)).split("\n\n")
    site = "\n\n".join(table for table in tables if not table.startswith("[workload]"))
    service = LiveService(out, site + '\n[service]\nlisten = "127.0.0.1:0"\n')
    service.start()
    rng, until = random.Random(0), time.monotonic() + LONGEST_S
    try:
        with ThreadPoolExecutor(1) as users:
            submitting = users.submit(submit_trace, service, out.parent / "jobs.csv")
            for _ in range(kills):
                time.sleep(rng.uniform(1.0, 2.0 * SPAN_S / kills))
                service.kill()
                time.sleep(rng.choice([0.0, 0.5, 3.0]))
                service.start()
            ids = submitting.result()
        while True:
            jobs = [service.operator.get(f"/v1/jobs/{one}") for one in ids]
            if all(job["ended_at"] for job in jobs) or time.monotonic() > until:
                break
            time.sleep(1.0)
        known = len(service.operator.get("/v1/jobs", limit=2 * JOBS)["jobs"])
    finally:
        service.kill(signal.SIGTERM)
    finished = [job for job in jobs if job["state"] == "succeeded"]
    times = [[datetime.fromisoformat(job[f"{name}_at"]) for name in ("submitted", "ended")] for job in finished]
    return {
        "jct_mean_s": float(np.mean([(end - begin).total_seconds() for begin, end in times])),
        "preemptions": sum(job["epoch"] - 1 for job in finished),
        "jobs_finished": len(finished),
        "wrong": abs(known - len(ids)),
    }


def submit_trace(service: LiveService, trace: Path) -> list[str]:
    """Submit each job at its time; one without an answer again, with the same key, until there is one. Return ids."""
    begun, ids = time.monotonic(), []
    with open(trace, newline="") as file:
        for row in csv.DictReader(file):
            document = {
                "command": json.loads(row["command"]), "accelerators": int(row["scale_factor"]),
                "job_type": row["job_type"], "total_steps": float(row["total_steps"]),
            }  # fmt: skip
            time.sleep(max(begun + float(row["submitted_s"]) - time.monotonic(), 0.0))
            while True:
                try:
                    ids.append(service.operator.submit(document, f"submission-of-{row['job_id']}")["id"])
                    break
                except Unreachable:
                    time.sleep(0.1)
    return ids


def simulated(scenario: Scenario, trace: Path) -> tuple[list[float], float]:
    """Return the mean JCT of simulations with submissions a little earlier or later, (draw,), and their preemptions."""
    with open(trace, newline="") as file:
        rows = list(csv.DictReader(file))
    rng, found = np.random.default_rng(1), []
    for _ in range(DRAWS):
        at = [max(float(row["submitted_s"]) + rng.uniform(-MOVED_S, MOVED_S), 0.0) for row in rows]
        moved = write_trace(trace.with_name("moved.csv"), [{**rows[k], "submitted_s": at[k]} for k in np.argsort(at)])
        work = scenario.workload.model_copy(update={"trace": moved.name})
        found.append(simulate(scenario.model_copy(update={"workload": work})).summary)
    return [float(each["jct_mean_s"] or 0.0) for each in found], float(np.mean([each["preemptions"] for each in found]))


def simulated_with_own_starts(scenario: Scenario, trace: Path, run: Path) -> float:
    """Return the mean JCT of a simulation in which each start costs what it did in a run without preemption."""
    with open(trace, newline="") as planned, open(run / "jobs.csv", newline="") as played:
        rows, real = list(csv.DictReader(planned)), {row["job_id"]: row for row in csv.DictReader(played)}
    for row in rows:
        found = real[row["job_id"]]
        rate = 2.0 if float(found["received_v100_s"] or 0.0) > 0.0 else 1.0
        row["total_steps"] = str(rate * (float(found["finished_s"]) - float(found["first_started_s"])))
    path = write_trace(trace.with_name("own_starts.csv"), rows)
    work = scenario.workload.model_copy(update={"trace": path.name})
    free = scenario.overheads.model_copy(update={"start_s": 0.0})
    return float(simulate(scenario.model_copy(update={"workload": work, "overheads": free})).summary["jct_mean_s"] or 0)


def write_trace(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as a trace."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def wrong(trace: Path, ledger: Path) -> int:
    """Return how many starts and steps of jobs are there twice or missing, and uses of a seat that was in use."""
    rows = [line.split(",") for line in trace.read_text().splitlines()[1:]]
    done = Counter(ledger.read_text().splitlines())
    twice = sum(count - 1 for count in done.values()) + sum(each.startswith("taken") for each in done)
    return twice + sum(f"step {row[0]} {step}" not in done for row in rows for step in range(int(row[4])))


def main() -> None:
    """Print one line a backend."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--loopback", action="store_true", help="start the engine of the tests")
    parser.add_argument("--serve", action="store_true", help="submit the jobs to a service")
    parser.add_argument("--kills", type=int, default=0, help="so often the run or service is killed and goes on")
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    given = parser.parse_args()
    path = write_scenario(given.out)
    print("backend,start_s,checkpoint_s,restore_s,simulated_jct_s,lowest,highest,own_starts,real_jct_s,difference,"
          "simulated_preemptions,preemptions,finished,kills,wrong,load")  # fmt: skip
    for backend in given.backends:
        ledger = given.out / LEDGER
        ledger.unlink(missing_ok=True)
        with engine(backend, on_loopback=given.loopback) as reach:
            scenario = load_scenario(path, [f"world.backend={backend}", *reach, *given.overrides])
            cost = measure_overheads(scenario, given.out / f"measure-{backend}", 5)
            scenario = with_overheads(scenario, replace(cost, checkpoint_s=cost.checkpoint_s + HALF_STEP_S))
            own = float("nan")
            draws, preemptions = simulated(scenario, given.out / "jobs.csv")
            if given.serve:
                real = serve_killed(scenario, given.out / f"serve-{backend}", given.kills)
            else:
                file = given.out / f"{backend}.toml"
                file.write_text(as_toml(scenario))
                real = run_killed(file, given.out / f"run-{backend}", given.kills)
                if not real["preemptions"]:
                    own = simulated_with_own_starts(scenario, given.out / "jobs.csv", given.out / f"run-{backend}")
        jct, expected = float(real["jct_mean_s"] or 0.0), float(np.mean(draws))
        print(
            f"{backend},{cost.start_s},{cost.checkpoint_s},{cost.restore_s},{expected:.2f},{min(draws):.2f},"
            f"{max(draws):.2f},{own:.2f},{jct:.2f},{jct / expected - 1:+.1%},{preemptions:.0f},{real['preemptions']},"
            f"{real['jobs_finished']},"
            f"{given.kills},{real.get('wrong', 0) + wrong(given.out / 'jobs.csv', ledger)},{os.getloadavg()[1]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
