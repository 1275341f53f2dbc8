"""One measurement of `benchmarks.growth`, in a process of its own: python growth_run.py POLICY WARM MEASURED.

It uses the public API only, so that it also measures another checkout, the one whose `src` is on PYTHONPATH. The files
are scenarios (.toml) or problems of one decision (.npz). Prints JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import eunomia


def answer(policy: str, file: Path) -> float | int | None:
    """Return a number that says whether two versions did the same: mean completion time, or the sum of the rates."""
    if file.suffix == ".npz":
        return float(eunomia.solve(policy, file).effective_throughput.sum())
    return eunomia.simulate(file).summary["jct_mean_s"]


def main() -> None:
    """Warm up, which loads and compiles code, then measure CPU seconds."""
    policy, warm, measured = sys.argv[1:]
    answer(policy, Path(warm))
    before = time.process_time()
    found = answer(policy, Path(measured))
    print(json.dumps({"cpu_s": time.process_time() - before, "answer": found}))


if __name__ == "__main__":
    main()
