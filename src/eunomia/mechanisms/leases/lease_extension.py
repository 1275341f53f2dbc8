"""Leases that are extended while no job waits: no timer fires at their ends, which keep their phase.

The backend gets leases without an end, or they would lapse there. `until` keeps the agreed end, so that once a job
waits each lease ends where it would have ended, had it been renewed time and again.
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.core.state import State
from eunomia.model.arrays import Ints


def extend_leases(state: State) -> Ints:
    """Return and mark the running jobs whose leases still have an end for the backend."""
    jobs, running = state.jobs, state.running()
    rows = running[~jobs.lease_extended[running] & (jobs.until[running] < math.inf)]
    jobs.lease_extended[rows] = True
    return rows


def settle_extensions(state: State, at: float, length: float) -> None:
    """Set the ends of extended leases of `length` seconds to their first renewal from `at` on."""
    running = state.running()
    late = running[state.jobs.until[running] < at]
    until = state.jobs.until[late]
    state.jobs.until[late] = until + np.ceil((at - until) / length) * length
