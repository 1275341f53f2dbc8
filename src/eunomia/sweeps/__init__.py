"""Runs every combination of policies, loads, seeds and other keys on all cores; resumable.

`read` a sweep file, `plan` and check its runs, and `carry_out` those that are not done.
"""

from __future__ import annotations

from eunomia.sweeps.plan import PlannedRun, plan
from eunomia.sweeps.pool import RunsFailed, simulate_many
from eunomia.sweeps.sweep_file import SweepFile, read

__all__ = [
    "PlannedRun",
    "RunsFailed",
    "SweepFile",
    "plan",
    "read",
    "simulate_many",
]
