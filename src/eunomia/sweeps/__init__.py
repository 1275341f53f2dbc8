"""Many runs from one file: every combination of policies, loads, seeds and whatever else, on all cores, resumable.

`read` a sweep file, `plan` its runs, which checks them all, and `carry_out` what of them is not done yet.
"""

from __future__ import annotations

from eunomia.sweeps.batch import RunsFailed, simulate_many
from eunomia.sweeps.plan import PlannedRun, plan
from eunomia.sweeps.sweep_file import SweepFile, read

__all__ = ["PlannedRun", "RunsFailed", "SweepFile", "plan", "read", "simulate_many"]
