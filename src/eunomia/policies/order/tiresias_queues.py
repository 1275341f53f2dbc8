"""The queues of Tiresias: which one a job is in, and when it comes into another.

    queue(m) = #{limits ≤ a_m},   a_m the service since its last promotion, in accelerator-seconds
    promoted when it waits, ran before, is not in the first queue, and   wait_m ≥ K · t_m

t_m is the time it ran since its last promotion, wait_m the wait without a break, K the knob. Whoever is promoted starts
anew: a = t = 0, in the first queue. Attained service itself is never touched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints

ONE_QUEUE = "none"
_ROUNDING = 1e-9  # of a limit: service is a sum of products


@dataclass(frozen=True, slots=True)
class Queues:
    """Limits between the queues, rising, and the knob K that lets jobs back into the first one (inf = never)."""

    limits: Floats  # (limit,) accelerator-seconds
    knob: float

    def of(self, served: Floats) -> Ints:
        """Return the queue of jobs that were served so much, (job,), 0 = the first."""
        return np.searchsorted(self.limits, served * (1 + _ROUNDING), side="right")

    def promoted(self, served: Floats, ran: Floats, wait: Floats) -> Bools:
        """Return who goes back into the first queue now, (job,)."""
        if math.isinf(self.knob):
            return np.zeros(len(served), dtype=bool)
        return np.asarray((self.of(served) > 0) & (wait > 0) & (wait >= self.knob * ran * (1 - _ROUNDING)))

    def demotion_in(self, served: Floats, size: Ints) -> Floats:
        """Return in how many seconds each job would come into its next queue if it ran, (job,)."""
        return np.asarray((np.append(self.limits, np.inf)[self.of(served)] - served) / size)

    def promotion_in(self, served: Floats, ran: Floats, wait: Floats) -> Floats:
        """Return in how many seconds each job would be promoted if it waited, (job,)."""
        if math.isinf(self.knob):
            return np.full(len(served), np.inf)
        return np.where(self.of(served) > 0, self.knob * ran - wait, np.inf)


@lru_cache(maxsize=64)
def numbers_in(said: float | str, parameter: str, what: str) -> Floats:
    """Return a number, or those of a text such as `3250,7200`. Raises ValueError, which names the parameter."""
    fix = f"{parameter} is {said!r}; it is {what}, such as 3250 or '3250,7200'"
    try:
        found = np.array([float(part) for part in str(said).split(",")])
    except ValueError:
        raise ValueError(fix) from None
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise ValueError(fix)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=64)
def limits_in(said: float | str) -> Floats:
    """Return the limits between queues. Raises ValueError unless they are above 0 and rise."""
    if said == ONE_QUEUE:
        return np.zeros(0)
    what = f"accelerator-seconds above 0 that rise from queue to queue, or {ONE_QUEUE!r} for one queue"
    limits = numbers_in(said, "limits", what)
    if (np.diff(limits) <= 0).any():
        raise ValueError(f"limits is {said!r}; it is {what}, such as 3250 or '3250,7200'")
    return limits
