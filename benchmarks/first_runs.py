"""How long the first run of each policy on the demo takes when nothing is compiled, against the second run.

`python -m benchmarks.first_runs POLICY …` measures only these. Both are times on the clock, as a first run has kernels
compiled on another core; policies that need tenants or other parts of a scenario are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.side_by_side import Comparison

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo.toml"
JOBS = 150  # of the demo


def cases(policies: Sequence[str] = ()) -> Iterator[Comparison]:
    """Yield a comparison for each policy that runs on the demo: the first run in `ours_s`, the second in `other_s`."""
    for policy in policies or _all_policies():
        with TemporaryDirectory() as cache, TemporaryDirectory() as out:
            first, second = (_run(policy, cache, Path(out, name)) for name in ("first", "second"))
        if first is not None and second is not None:
            yield Comparison(name=f"first run: {policy}", n=JOBS, ours_s=first, other_s=second, other="second run")


def _all_policies() -> list[str]:
    return [each["name"] for each in json.loads(_eunomia("policies", "--json").stdout)]


def _run(policy: str, cache: str, out: Path) -> float | None:
    """Return the seconds of a run; None if the policy cannot run on the demo."""
    before = time.perf_counter()
    done = _eunomia("simulate", str(DEMO), "--policy", policy, "--out", str(out), cache=cache)
    return time.perf_counter() - before if done.returncode == 0 else None


def _eunomia(*arguments: str, cache: str = "") -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if name != "EUNOMIA_KERNELS"}
    if cache:
        around["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-m", "eunomia", *arguments]
    return subprocess.run(command, env=around, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    for one in cases(sys.argv[1:]):
        print(f"{one.name:<40} {one.ours_s:7.1f} s  second run {one.other_s:7.1f} s", flush=True)
