"""A sweep on a Ray cluster of three nodes in this machine beside the local pool: bytes, overhead a run, memory.

python -m benchmarks.ray_sweep [--runs 2000] [--processes 2]
python -m benchmarks.ray_sweep --steady --runs 10000            # memory over many short runs
python -m benchmarks.ray_sweep --steady --runs 12 --ask-s 0.25  # efficiency on long ones

A node that has runs is killed in the middle. With `--steady` none is, there is no local pool beside it, and two figures
more are printed: by how much the memory of this process grows over the runs after the first quarter (a line fitted to
it), and the efficiency: the time in runs, by their own clocks, of the time that the processes had. `--ask-s` seconds of
CPU are spent in each answer of the policy. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from tests.ray_cluster.loopback import RayCluster
from tests.ray_cluster.test_ray_sweep import SWEEP, TASK, TIMES, runs_of, sweep_in

from eunomia.sweeps import plan, read
from eunomia.sweeps.runner import SweepProgress, carry_out

BUSY = """\
import time
from eunomia.policies.order.fifo import Fifo
class Own(Fifo):
    def decide(self, view):
        end = time.process_time() + {ask_s}
        while time.process_time() < end:
            pass
        return super().decide(view)
"""


def steady(runs: int, processes: int, ask_s: float) -> None:
    """Print what a sweep on Ray costs: time a run, growth of this process, efficiency."""
    text = SWEEP.replace('["fifo", "las", "own.py:Own"]', '["own.py:Own"]' if ask_s else '["fifo"]')
    text = text.replace("[0, 1, 2, 3]", str(list(range(runs))))
    cluster, memory = RayCluster(), []
    try:
        with tempfile.TemporaryDirectory() as folder:
            sweep, out = read(sweep_in(Path(folder) / "here", text, BUSY.format(ask_s=ask_s))), Path(folder) / "out"
            rows = plan(sweep)

            def look(now: SweepProgress) -> None:
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                memory.append((now.done, pages * resource.getpagesize() / 2**20))

            begun = time.monotonic()
            done = carry_out(sweep, rows, out, processes, look, on=cluster.address)
            took = time.monotonic() - begun
            inside = sum(json.loads(file.read_text())["wall_s"] for file in out.rglob(TIMES))
    finally:
        cluster.close()
    x, y = np.array(memory[len(memory) // 4 :]).T
    (slope, _), spread = np.polyfit(x, y, 1, cov=True)
    print(f"{len(done.rows):,} runs, {len(done.failures)} failed, {1e3 * took / runs:.1f} ms a run, of which "
          f"{1e3 * inside / runs:.1f} ms in the run itself; load {os.getloadavg()[1]:.1f}")  # fmt: skip
    print(
        f"memory: {y[0]:.0f} to {y[-1]:.0f} MiB, {1e3 * slope:+.2f} ± {1e3 * spread[0, 0] ** 0.5:.2f} MiB a 1,000 runs"
    )
    print(f"efficiency: {inside / (processes * took):.1%} of the time of {processes} processes")


def main() -> None:
    """Print one line for each pool, and whether the bytes are the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ray_sweep", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2, help="runs at a time")
    parser.add_argument("--steady", action="store_true", help="measure time, memory and efficiency on Ray alone")
    parser.add_argument("--ask-s", type=float, default=0.0, help="seconds of CPU in each answer of the policy")
    asked = parser.parse_args()
    if asked.steady:
        steady(asked.runs, asked.processes, asked.ask_s)
        return
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
