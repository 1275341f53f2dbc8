"""A whole run as `eunomia simulate` does it, by part: CPU time a job, and peak memory, in a process of its own.

python -m benchmarks.whole_run [--policy P] [--jobs N] [--nodes N] [--rate R]

Generated jobs with sizes and durations as on Philly, on nodes of 8 GPUs; all figures, files and the report are made.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from eunomia.report.run_report import write_run_report
from eunomia.runs.simulation import simulate

WARM_UP_JOBS = 3_000  # loads what numba compiled


def scenario(policy: str, jobs: int, nodes: int, rate: float) -> dict[str, Any]:
    """Return the scenario of one run."""
    return {
        "seed": 3,
        "cluster": {"nodes": [{"type": "gpu", "count": nodes, "accelerators": 8}], "prices": {"gpu": 0.0}},
        "workload": {"generator": "philly-like", "jobs": jobs, "rate_per_hour": rate, "distribution": "philly"},
        "throughputs": {"source": "uniform", "reference_type": "gpu"},
        "policy": {"name": policy},
    }


def measure(work: dict[str, Any], folder: Path) -> dict[str, float]:
    """Run once; return CPU seconds by part, and asks."""
    begun = time.process_time()
    result = simulate(work)
    played = time.process_time()
    result.write(folder)
    written = time.process_time()
    write_run_report([(work["policy"]["name"], result)], "a whole run", folder)
    asks = result.timing["rounds"] or 0
    parts = {"simulate": played - begun, "files": written - played, "report": time.process_time() - written}
    return {**parts, "in all": time.process_time() - begun, "asks": asks}


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole_run", description=__doc__)
    parser.add_argument("--policy", default="fifo")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--rate", type=float, default=19.5, help="jobs an hour")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(scenario(asked.policy, min(asked.jobs, WARM_UP_JOBS), asked.nodes, asked.rate), Path(folder))
        found = measure(scenario(asked.policy, asked.jobs, asked.nodes, asked.rate), Path(folder))
    asks = found.pop("asks")
    parts = ", ".join(f"{name} {1e6 * seconds / asked.jobs:.1f}" for name, seconds in found.items())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    head = f"{asked.policy}, {asked.jobs:,} jobs, {asks / asked.jobs:.2f} asks a job"
    print(f"{head}: CPU µs a job: {parts}; {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
