"""What a short job costs a service after many others have ended: CPU time, rows of the scheduler, bytes of a snapshot.

    python -m benchmarks service [--against CHECKOUT] [--jobs N]

It measures after 0, N / 10 and N ended jobs, N = 100,000 if left out. A service whose cost depends on what is alive
shows the same in each line. Versions run one after the other, each in a process of its own (`benchmarks.service_run`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENDED = 100_000
HEAD = f"{'version':<12} {'ended jobs':>10} {'CPU of a short job':>18} {'rows':>9} {'snapshot':>11} {'memory':>9}"


def measured(checkout: Path, ended: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return what one version needs after so many ended jobs each."""
    path = os.pathsep.join([str(checkout / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(ROOT / "benchmarks" / "service_run.py"), "ended", *map(str, ended)]
    found = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in found.stdout.splitlines()]


def main(jobs: int | None, against: Path | None, out: Path) -> None:
    """Measure, print and write."""
    most = jobs or ENDED
    versions = {"here": ROOT} | ({} if against is None else {"against": against.resolve()})
    print(HEAD, flush=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, checkout in versions.items():
        found[name] = measured(checkout, (0, most // 10, most))
        for one in found[name]:
            size, memory = f"{one['snapshot_bytes'] / 1024:,.0f} KiB", f"{one['memory_mib']:,.0f} MiB"
            cpu = f"{one['cpu_ms']:.2f} ms"
            print(f"{name:<12} {one['ended']:>10,} {cpu:>18} {one['rows']:>9,} {size:>11} {memory:>9}", flush=True)
    out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
