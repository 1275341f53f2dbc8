"""Leases that are extended while no job waits: nothing wakes the core at their ends, and yet they keep their pace.

The world is told that they have no end, or it would see them lapse. `until` keeps what was agreed, so that once a job
waits each lease ends where it would have ended, had it been renewed time and again.
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.core.state import State
from eunomia.model.arrays import Ints


def extend_leases(state: State) -> Ints:
    """Return and mark the running jobs whose leases still have an end for the world."""
    jobs, running = state.jobs, state.running()
    rows = running[~jobs.resting[running] & (jobs.until[running] < math.inf)]
    jobs.resting[rows] = True
    return rows


def settle_extensions(state: State, at: float, length: float) -> None:
    """Let leases of so many seconds that ran past their ends, end at the first of their renewals from `at` on."""
    running = state.running()
    late = running[state.jobs.until[running] < at]
    until = state.jobs.until[late]
    state.jobs.until[late] = until + np.ceil((at - until) / length) * length
