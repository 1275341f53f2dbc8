"""Plays one scenario of 60 short jobs in the simulation and on real backends, and compares the mean JCT.

    python tools/engine_accuracy.py local slurm --out accuracy

The cluster has 8 seats of type v100 and 8 of k80; jobs are real processes that sleep through their steps, which take
twice as long on k80, and save each. Overheads are measured on each backend first (`eunomia world measure`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from eunomia.runs.engine_overheads import measure_overheads, with_overheads
from eunomia.runs.local_run import run_real
from eunomia.runs.simulation import simulate
from eunomia.scenario import load_scenario

JOB = """\
import os, sys, time
from eunomia.lease import Lease

seconds = {"v100": 0.5, "k80": 1.0}[os.environ["EUNOMIA_ACCELERATOR_TYPE"]]
with Lease() as lease:
    state = lease.load({"step": 0})
    for step in lease.steps(int(sys.argv[1]), start=state["step"]):
        time.sleep(seconds)
        state = {"step": step + 1}
        lease.save(state)
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
name = "las"
quantum = 15
[world]
backend = "local"
"""
JOBS, SPAN_S = 60, 120.0


def write_scenario(folder: Path) -> Path:
    """Write scenario, trace, throughputs and program; return the scenario's path."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    (folder / "job.py").write_text(JOB)
    sizes = rng.choice([1, 2, 4], JOBS, p=[0.5, 0.3, 0.2])
    lines = ["job_id,submitted_s,scale_factor,job_type,total_steps,command"]
    for n, at in enumerate(np.sort(rng.uniform(0, SPAN_S, JOBS))):
        steps = int(rng.integers(8, 41))
        command = json.dumps([sys.executable, str(folder.resolve() / "job.py"), str(steps)]).replace('"', '""')
        lines.append(f'j{n},{at:.3f},{sizes[n]},sleep,{steps},"{command}"')
    (folder / "jobs.csv").write_text("\n".join(lines) + "\n")
    speeds = [f"{kind},sleep,{size},{rate}" for kind, rate in (("v100", 2), ("k80", 1)) for size in (1, 2, 4)]
    (folder / "speeds.csv").write_text("\n".join(["type,job_type,scale_factor,steps_per_s", *speeds]) + "\n")
    (folder / "scenario.toml").write_text(SCENARIO)
    return folder / "scenario.toml"


def main() -> None:
    """Print one line a backend."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    path = write_scenario(given.out)
    print("backend,start_s,checkpoint_s,restore_s,simulated_jct_s,real_jct_s,difference,simulated_preemptions,"
          "preemptions,finished")  # fmt: skip
    for backend in given.backends:
        scenario = load_scenario(path, [f"world.backend={backend}"])
        cost = measure_overheads(scenario, given.out / f"measure-{backend}", 5)
        scenario = with_overheads(scenario, cost)
        simulated = simulate(scenario).summary
        real = run_real(scenario, given.out / f"run-{backend}", restart=True).summary
        jct, expected = float(real["jct_mean_s"] or 0.0), float(simulated["jct_mean_s"] or 0.0)
        print(
            f"{backend},{cost.start_s},{cost.checkpoint_s},{cost.restore_s},{expected:.3f},{jct:.3f},"
            f"{jct / expected - 1:+.1%},{simulated['preemptions']},{real['preemptions']},{real['jobs_finished']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
