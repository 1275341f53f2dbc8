"""Many runs from one file: every combination of policies, loads, seeds and whatever else, on all cores, resumable.

`read` a sweep file, `plan` its runs, which checks them all, and `carry_out` what of them is not done yet.
"""

from __future__ import annotations

from eunomia.experiment.sweep.file import SweepFile, read
from eunomia.experiment.sweep.many import RunsFailed, simulate_many
from eunomia.experiment.sweep.plan import Row, plan

__all__ = ["Row", "RunsFailed", "SweepFile", "plan", "read", "simulate_many"]
