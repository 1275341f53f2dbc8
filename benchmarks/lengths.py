"""How the cost of a run grows with the length of the trace: jobs as in Philly at load 0.9 on 10,000 accelerators.

python -m benchmarks.lengths [--jobs N …] [--policy P …] [--all]    each run in its own process; --all: 10^6 too
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from benchmarks.simulator import PER_NODE, WAYS, ours, plain
from eunomia.traces import generate

NODES = 1250
LOAD = 0.9
POLICIES = ("fifo?backfill=skip", "srtf")
JOBS, MANY = (10_000, 100_000), 1_000_000
WARM_UP_JOBS = 2_000


@cache
def rate_per_hour() -> float:
    """Return how many jobs an hour ask for 0.9 of the cluster."""
    trace = generate("philly-like", seed=3, jobs=200_000, rate_per_hour=1.0, distribution="philly")
    work = np.mean(trace.duration_s * trace.scale_factor)
    return float(LOAD * NODES * PER_NODE / work * 3600)


def cases() -> Iterator[Comparison]:
    """Yield ours against the plain event loop, which is the same to the last bit, at two lengths."""
    name, rate = "fifo, backfill = skip", rate_per_hour()
    policy, way = WAYS[name]
    same = np.array_equal(ours(policy, WARM_UP_JOBS, NODES, rate), plain(way, WARM_UP_JOBS, NODES, rate))
    demand_equal(same, f"lengths: {name}", WARM_UP_JOBS)
    for jobs in JOBS:
        mine, other = partial(ours, policy, jobs, NODES, rate), partial(plain, way, jobs, NODES, rate)
        yield compare(
            f"10,000 accelerators: {name}",
            jobs,
            mine,
            other,
            "plain event loop in Python",
            repeats=1 + 2 * (jobs < 1e5),
        )


def one(policy: str, jobs: int) -> dict[str, Any]:
    """Run once in this process, figures and files included; return the timing."""
    from eunomia import simulate

    draw = {"generator": "philly-like", "distribution": "philly", "rate_per_hour": rate_per_hour()}
    scenario = {
        "seed": 3,
        "cluster": {"nodes": [{"type": "gpu", "count": NODES, "accelerators": PER_NODE}], "prices": {"gpu": 0.0}},
        "throughputs": {"source": "uniform", "reference_type": "gpu"},
        "policy": {"name": policy},
    }
    simulate({**scenario, "workload": {**draw, "jobs": WARM_UP_JOBS}})
    result = simulate({**scenario, "workload": {**draw, "jobs": jobs}})
    before = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        result.write(Path(folder))
    return {**result.timing, "files_cpu_s": time.process_time() - before, "utilization": result.summary["utilization"]}


def _apart(policy: str, jobs: int) -> dict[str, Any]:
    """Do `one` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.lengths", "--policy", policy, "--jobs", str(jobs), "--here"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a Markdown table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lengths", description=__doc__)
    parser.add_argument("--policy", nargs="+", default=POLICIES)
    parser.add_argument("--jobs", nargs="+", type=int, default=JOBS)
    parser.add_argument("--all", action="store_true", help=f"{MANY:,} jobs too")
    parser.add_argument("--here", action="store_true", help="one run, in this process, as JSON")
    asked = parser.parse_args()
    if asked.here:
        print(json.dumps(one(asked.policy[0], asked.jobs[0])))
        return
    print("| policy | jobs | CPU s | µs a job | files, CPU s | peak MiB | utilization |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for policy in asked.policy:
        for jobs in (*asked.jobs, *([MANY] if asked.all else [])):
            run = _apart(policy, jobs)
            print(
                f"| {policy} | {jobs:,} | {run['cpu_s']:.1f} | {run['cpu_s'] / jobs * 1e6:.0f} "
                f"| {run['files_cpu_s']:.1f} | {run['peak_rss_mib']:.0f} | {run['utilization']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
