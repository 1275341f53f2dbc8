"""The Philly trace under four policies, each run in a process of its own.

python -m benchmarks.philly [--jobs N …] [--load L …] [--policy P …] [--weights philly]

Reads EUNOMIA_DATA, else ../shared/data. With weights its virtual clusters have quotas.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TRACE = "traces/philly/philly_jobs.csv.gz"
POLICIES = ("fifo", "fifo?backfill=skip", "srtf", "las")
JOBS, LOADS = (10_000, 30_000, 84_605), (1.0, 1.3)
WARM_UP_JOBS = 50
# 552 machines and 2,490 GPUs, as the trace has them: machines of 2 and of 8 GPUs.
NODES = [{"type": "gpu", "count": 321, "accelerators": 2}, {"type": "gpu", "count": 231, "accelerators": 8}]


def data_folder() -> Path:
    """Return the folder of the data. Raises SystemExit with how to name it when the trace is not there."""
    folder = Path(os.environ.get("EUNOMIA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / TRACE).is_file():
        raise SystemExit(f"there is no {folder / TRACE}; set EUNOMIA_DATA to the folder that holds {TRACE}")
    return folder.resolve()


def _scenario(trace: Path, policy: str, load: float, jobs: int, weights: str) -> dict[str, Any]:
    weighed = {"tenant_weights": weights} if weights else {}
    return {
        "cluster": {"nodes": NODES, "prices": {"gpu": 0.0}},
        "workload": {"trace": str(trace), "format": "philly", "load": load, "max_jobs": jobs, **weighed},
        "throughputs": {"source": "uniform", "reference_type": "gpu"},
        "policy": {"name": policy},
    }


def one(policy: str, load: float, jobs: int, weights: str) -> dict[str, Any]:
    """Run once in this process; return the timing and enough of the summary to tell the run."""
    from eunomia import simulate

    trace = data_folder() / TRACE
    simulate(_scenario(trace, policy, load, WARM_UP_JOBS, weights))  # loads what numba compiled
    result = simulate(_scenario(trace, policy, load, jobs, weights))
    shown = {name: result.summary[name] for name in ("jct_mean_s", "preemptions", "end_s")}
    return {**result.timing, **shown}


def _apart(policy: str, load: float, jobs: int, weights: str) -> dict[str, Any]:
    """Do `one` in a fresh process."""
    arguments = ["--policy", policy, "--load", str(load), "--jobs", str(jobs), "--weights", weights, "--here"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.philly", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a Markdown table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.philly", description=__doc__)
    parser.add_argument("--policy", nargs="+", default=POLICIES)
    parser.add_argument("--load", nargs="+", type=float, default=LOADS)
    parser.add_argument("--jobs", nargs="+", type=int, default=JOBS)
    parser.add_argument("--weights", default="", help="philly: quotas as ASTRAEA's artifact has them")
    parser.add_argument("--here", action="store_true", help="one run, in this process, as JSON")
    asked = parser.parse_args()
    data_folder()
    if asked.here:
        print(json.dumps(one(asked.policy[0], asked.load[0], asked.jobs[0], asked.weights)))
        return
    columns = "wall s | CPU s | of it policy | asks | peak MiB | mean JCT s | preemptions | times real time (by CPU)"
    print(f"| policy | load | jobs | {columns} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for load in asked.load:
        for jobs in asked.jobs:
            for policy in asked.policy:
                run = _apart(policy, load, jobs, asked.weights)
                print(
                    f"| {policy} | {load:g} | {jobs:,} | {run['wall_s']:.1f} | {run['cpu_s']:.1f} "
                    f"| {run['policy_cpu_s']:.1f} | {run['rounds']:,} | {run['peak_rss_mib']:.0f} "
                    f"| {run['jct_mean_s']:,.0f} | {run['preemptions']:,} | {run['end_s'] / run['cpu_s']:,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
