"""A sweep on a Ray cluster of three nodes in this machine beside the local pool: bytes, overhead a run, memory.

python -m benchmarks.ray_sweep [--runs 2000] [--processes 2]

A node that has runs is killed in the middle. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from tests.ray_cluster.loopback import RayCluster
from tests.ray_cluster.test_ray_sweep import SWEEP, TASK, runs_of, sweep_in

from eunomia.sweeps import plan, read
from eunomia.sweeps.runner import SweepProgress, carry_out


def main() -> None:
    """Print one line for each pool, and whether the bytes are the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ray_sweep", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2, help="runs at a time")
    asked = parser.parse_args()
    text = SWEEP.replace(', "own.py:Own"', "").replace("[0, 1, 2, 3]", str(list(range(asked.runs // 2))))
    cluster = RayCluster()
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            sweep = read(sweep_in(place / "here", text))
            rows, found = plan(sweep), {}
            for on in ("local", cluster.address):
                out = place / on.partition(":")[0]

                def lose_a_node(now: SweepProgress) -> None:
                    if 2 * now.done >= now.runs and not cluster.lost:
                        cluster.remove(next(iter(cluster.busy(TASK)), "k80-0"))

                before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
                done = carry_out(sweep, rows, out, asked.processes, None if on == "local" else lose_a_node, on=on)
                took = time.monotonic() - begun
                grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
                found[on] = runs_of(out)
                what = f"{len(done.rows):,} runs, {len(done.failures)} failed, {1e3 * took / len(rows):.1f} ms a run"
                print(f"{on}: {what} on {asked.processes} processes; grown by {grown:.0f} MiB", flush=True)
            one, other = found.values()
            print("same bytes" if one == other else "other bytes")
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
