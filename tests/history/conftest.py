"""A small history: eight accelerators, two tenants, four weeks in which a second machine halves the queue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

HOUR, WEEK = 3600, 7 * 86_400
SPEEDS = (
    "type,job_type,scale_factor,steps_per_s\nv100,any,1,1\nh100,any,1,2\na100-80gb,any,1,1.5\nv100,only v100,1,1\n"
    "h100,only v100,1,0\na100-80gb,only v100,1,0\n"
)


def jobs_csv(weeks: int, bursts: int = 4, job_type: str = "any") -> str:
    """Return a native trace: every week bursts of six gangs of 4 that last an hour, of two tenants."""
    lines = ["job_id,submitted_s,scale_factor,job_type,duration_s,tenant"]
    for week in range(weeks):
        for burst in range(bursts):
            for k in range(6):
                at = week * WEEK + burst * 86_400 + 60 * k + 7 * week
                lines.append(f"{week}-{burst}-{k},{at},4,{job_type},{HOUR + 60 * week},{'ab'[k % 2]}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the scenario with these keys of the cluster, and returns its path."""

    def write(cluster: str = "accelerators = { v100 = 8 }", *, weeks: int = 4, job_type: str = "any") -> Path:
        (tmp_path / "jobs.csv").write_text(jobs_csv(weeks, job_type=job_type))
        (tmp_path / "speeds.csv").write_text(SPEEDS)
        path = tmp_path / "scenario.toml"
        path.write_text(
            f'[cluster]\n{cluster}\n[workload]\ntrace = "jobs.csv"\n[throughputs]\nsource = "speeds.csv"\n'
            '[policy]\nname = "fifo"\n'
        )
        return path

    return write
