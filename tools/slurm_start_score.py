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
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean, median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.slurm.loopback import LoopbackCluster

from eunomia.backends.slurm.commands import records
from eunomia.backends.slurm.queue import read_queue
from eunomia.forecasts.intervals import NEEDED
from eunomia.history.queue_forecast import calibrated_starts, forecast_starts
from eunomia.history.slurm_queue import slurm_queue

ASK_AFTER_S = 3.0  # so that Slurm's backfill has looked at the job
CLOCK_S = 1.0  # of Slurm's times


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was said about the start of a job, in s of the wall clock."""

    p50: float
    interval: tuple[float, float]
    uncorrected: tuple[float, float]
    slurm: float  # by `squeue --start`; nan = nothing
    learned: int  # starts that were known then


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
    forecasts: dict[str, Said] = {}
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
                    asked, queue = time.time(), slurm_queue()
                    plain, ours = (
                        {one.job_id: one for one in forecast(queue)}.get(number)
                        for forecast in (forecast_starts, calibrated_starts)
                    )
                    if plain is not None and ours is not None:
                        forecasts[number] = Said(
                            p50=asked + ours.p50_s, interval=(asked + ours.p10_s, asked + ours.p90_s),
                            uncorrected=(asked + plain.p10_s, asked + plain.p90_s), slurm=said_by_slurm(number),
                            learned=sum(one.started < math.inf for one in queue.earlier),
                        )  # fmt: skip
            time.sleep(0.2)
        while cluster.say("squeue", "-h", "-t", "PENDING"):
            time.sleep(1.0)
        found = read_queue(records(cluster.do("scontrol", "show", "job")))
        started = {job.number: job.started for job in found}
    finally:
        cluster.close()
    report(forecasts, started)


def report(forecasts: dict[str, Said], started: dict[str, float]) -> None:
    """Print mean and median absolute errors, coverage, and how many jobs had no answer."""
    off = {number: one.p50 - started[number] for number, one in forecasts.items()}
    theirs = {
        number: abs(one.slurm - started[number]) for number, one in forecasts.items() if not math.isnan(one.slurm)
    }
    ours = [abs(each) for each in off.values()]
    same = mean(abs(off[number]) for number in theirs)
    print(f"jobs that waited: {len(forecasts)}")
    print(f"eunomia when --slurm: mean error {mean(ours):.1f} s, median {median(ours):.1f} s,"
          f" signed {median(off.values()):+.1f} s")  # fmt: skip
    groups = {"all": list(forecasts), "from the 41st known start on": [
        number for number, one in forecasts.items() if one.learned > NEEDED]}  # fmt: skip
    for name, numbers in groups.items():
        for kind in ("uncorrected", "interval"):
            spans = [(getattr(forecasts[number], kind), started[number]) for number in numbers]
            held = [low - CLOCK_S <= at <= high + CLOCK_S for (low, high), at in spans]
            wide = median(high - low for (low, high), _ in spans) if spans else math.nan
            print(f"  {name}, {kind}: {sum(held)} of {len(held)} in the 80 % interval, median width {wide:.0f} s")
    print(f"squeue --start: mean error {mean(theirs.values()):.1f} s, median {median(theirs.values()):.1f} s,"
          f" no answer {len(forecasts) - len(theirs)}")  # fmt: skip
    print(f"on the jobs that both answer: {same:.1f} s against {mean(theirs.values()):.1f} s,"
          f" {mean(theirs.values()) / same:.1f} ×")  # fmt: skip


if __name__ == "__main__":
    main()
