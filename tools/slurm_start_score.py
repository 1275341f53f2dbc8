"""Scores `eunomia when --slurm` beside `squeue --start` on one stream of jobs.

    python tools/slurm_start_score.py --jobs 30

The limits of the jobs are three times their run times. Starts a Slurm on loopback (as root, with Slurm installed:
tools/install_packages), submits jobs that sleep, asks both for the start of each job a few seconds after its
submission, and compares with when it really started.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from statistics import mean, median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.slurm.loopback import LoopbackCluster

from eunomia.backends.slurm.commands import records
from eunomia.backends.slurm.queue import read_queue
from eunomia.history.queue_forecast import forecast_starts
from eunomia.history.slurm_queue import slurm_queue

ASK_AFTER_S = 3.0  # so that Slurm's backfill has looked at the job


def said_by_slurm(number: str) -> float:
    """Return when `squeue --start` expects a job to start, wall clock; nan without an answer."""
    text = subprocess.run(
        ["squeue", "-h", "--start", "-j", number, "-o", "%S"], capture_output=True, text=True, check=False
    ).stdout.strip()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return math.nan


def main() -> None:
    """Print the errors of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=30)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    cluster = LoopbackCluster(Path(tempfile.mkdtemp(prefix="eunomia-score-")), min_job_age=3600)
    forecasts: dict[str, tuple[float, float, float, float]] = {}
    asks: list[tuple[float, str]] = []
    try:
        begun, submitted = time.time(), 0
        while submitted < given.jobs or asks:
            now = time.time()
            if submitted < given.jobs and now >= begun + 2.5 * submitted:
                run_s, size = int(rng.choice([20, 40])), int(rng.choice([1, 2, 4]))
                kind = str(rng.choice(["v100", "k80"]))
                number = cluster.do(
                    "sbatch", "--parsable", f"--gpus={kind}:{size}", f"--time={3 * run_s // 60}", "--output=/dev/null",
                    f"--wrap=sleep {run_s}",
                )  # fmt: skip
                asks.append((now + ASK_AFTER_S, number))
                submitted += 1
            while asks and asks[0][0] <= now:
                number = asks.pop(0)[1]
                if "PENDING" in cluster.say("squeue", "-h", "-j", number, "-o", "%T"):
                    ours = {one.job_id: one for one in forecast_starts(slurm_queue())}.get(number)
                    asked = time.time()
                    if ours is not None:
                        points = (asked + ours.p10_s, asked + ours.p50_s, asked + ours.p90_s)
                        forecasts[number] = (*points, said_by_slurm(number))
            time.sleep(0.2)
        while cluster.say("squeue", "-h", "-t", "PENDING"):
            time.sleep(1.0)
        found = read_queue(records(cluster.do("scontrol", "show", "job")))
        started = {job.number: job.started for job in found}
    finally:
        cluster.close()
    report(forecasts, started)


def report(forecasts: dict[str, tuple[float, float, float, float]], started: dict[str, float]) -> None:
    """Print mean and median absolute errors, coverage, and how many jobs had no answer."""
    ours = [abs(one[1] - started[number]) for number, one in forecasts.items()]
    theirs = [abs(one[3] - started[number]) for number, one in forecasts.items() if not math.isnan(one[3])]
    inside = [one[0] - 1 <= started[number] <= one[2] + 1 for number, one in forecasts.items()]
    both = [number for number, one in forecasts.items() if not math.isnan(one[3])]
    same = [abs(forecasts[number][1] - started[number]) for number in both]
    signed = median(one[1] - started[number] for number, one in forecasts.items())
    print(f"jobs that waited: {len(forecasts)}")
    print(f"eunomia when --slurm: mean error {mean(ours):.1f} s, median {median(ours):.1f} s, signed {signed:+.1f} s")
    print(f"  in the 80 % interval (± 1 s of Slurm's clock): {mean(inside):.0%}")
    print(f"squeue --start: mean error {mean(theirs):.1f} s, median {median(theirs):.1f} s,"
          f" no answer {len(forecasts) - len(theirs)}")  # fmt: skip
    print(
        f"on the jobs that both answer: {mean(same):.1f} s against {mean(theirs):.1f} s,"
        f" {mean(theirs) / mean(same):.1f} ×"
    )


if __name__ == "__main__":
    main()
