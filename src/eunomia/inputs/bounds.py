"""Bounds of numbers that are added up or divided by, said once for every format.

With them no sum of a service or a simulation is infinite, and no quotient is.
"""

from __future__ import annotations

MOST = 1_000_000  # accelerators or retries of one job: beyond any cluster, and exact in every number type
MOST_S = 1e12  # seconds of one job, 30,000 years: up to there a clock distinguishes milliseconds
MOST_STEPS = 1e15  # of one job: up to there each step is counted
MOST_WEIGHT = 1e9
MOST_J = 1e15  # of one report: a gigawatt for 11 days
MOST_DEMAND = 1e9  # CPUs or GiB of one gang or machine, accelerators of a quota
LEAST = 1e-9  # of what is divided by: lengths of jobs and weights
