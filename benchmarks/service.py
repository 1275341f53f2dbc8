"""What the service costs: a short job after many others have ended, and a decision while many wait.

    python -m benchmarks service [--against CHECKOUT] [--jobs N]
    python -m benchmarks service decisions [--against CHECKOUT] [--jobs N] [--policy NAME …]

The first measures CPU time, rows of the scheduler and bytes of a snapshot after 0, N / 10 and N ended jobs, N = 100,000
if left out. A service whose cost depends on what is alive shows the same in each line. The second measures CPU time and
stored bytes of a decision of each policy with 1,000 and 10,000 jobs waiting, or N. Versions run one after the other,
each in a process of its own (`benchmarks.service_run`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eunomia.policies import POLICIES

ROOT = Path(__file__).parents[1]
ENDED = 100_000
WAITING = (1_000, 10_000)
LIMIT_S = 900.0  # for the decisions of one policy
DECIDED = f"{'version':<12} {'policy':<24} {'waiting':>8} {'policy ms':>10} {'service ms':>11} {'answer':>12}"
HEAD = f"{'version':<12} {'ended jobs':>10} {'CPU of a short job':>18} {'rows':>9} {'snapshot':>11} {'memory':>9}"


def measured(checkout: Path, *arguments: object, limit_s: float | None = None) -> list[dict[str, Any]]:
    """Return what `service_run` measures of one version. Raises a SubprocessError where it fails or takes too long."""
    path = os.pathsep.join([str(checkout / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(ROOT / "benchmarks" / "service_run.py"), *map(str, arguments)]
    found = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True, timeout=limit_s
    )
    return [json.loads(line) for line in found.stdout.splitlines()]


def main(jobs: int | None, against: Path | None, out: Path) -> None:
    """Measure, print and write."""
    most, versions = jobs or ENDED, _versions(against)
    print(HEAD, flush=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, checkout in versions.items():
        found[name] = measured(checkout, "ended", 0, most // 10, most)
        for one in found[name]:
            size, memory = f"{one['snapshot_bytes'] / 1024:,.0f} KiB", f"{one['memory_mib']:,.0f} MiB"
            cpu = f"{one['cpu_ms']:.2f} ms"
            print(f"{name:<12} {one['ended']:>10,} {cpu:>18} {one['rows']:>9,} {size:>11} {memory:>9}", flush=True)
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def decisions(policies: Sequence[str], jobs: int | None, against: Path | None, out: Path) -> None:
    """Measure decisions, print and write; a policy that fails or takes too long has no figures."""
    found = list[dict[str, Any]]()
    print(DECIDED, flush=True)
    for policy in policies or list(POLICIES):
        for name, checkout in _versions(against).items():
            for waiting in WAITING if jobs is None else (jobs,):
                try:
                    (one,) = measured(checkout, "decisions", policy, waiting, limit_s=LIMIT_S)
                except subprocess.SubprocessError as error:
                    print(f"{name:<12} {policy:<24} {waiting:>8,} {type(error).__name__}", flush=True)
                    continue
                found.append({"version": name, **one})
                cost = f"{one['policy_ms']:>10.1f} {one['service_ms']:>11.1f} {one['bytes']:>10,.0f} B"
                print(f"{name:<12} {policy:<24} {waiting:>8,} {cost}", flush=True)
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _versions(against: Path | None) -> dict[str, Path]:
    return {"here": ROOT} | ({} if against is None else {"against": against.resolve()})
