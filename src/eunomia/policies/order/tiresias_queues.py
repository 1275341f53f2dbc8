"""The queues of Tiresias, demotion and promotion.

    queue(m) = #{limits ≤ a_m},   a_m the service since its last promotion, in accelerator-seconds
    promoted when it waits, ran before, is not in the first queue, and   wait_m ≥ K · t_m

t_m is the run time since the last promotion, wait_m the sum of all waits since then but for the one before it ran, and
K the knob. Promotion resets a = t = wait = 0; the attained service of the view is not changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.tolerance import RELATIVE

ONE_QUEUE = "none"
WAITS = {"waited_before": 0.0, "last_wait": 0.0}  # seconds of waits that are over, and of the last one that was seen


@dataclass(frozen=True, slots=True)
class Queues:
    """Rising limits between the queues, and the promotion knob K (inf = never)."""

    limits: Floats  # (limit,) accelerator-seconds
    knob: float

    def of(self, served: Floats) -> Ints:
        """Return the queue of each job by its service, (job,), 0 = the first."""
        return np.searchsorted(self.limits, served * (1 + RELATIVE), side="right")

    def waits(self, waiting_time: Floats, ran: Floats, memory: Mapping[str, Array]) -> dict[str, Floats]:
        """Return the memory columns of WAITS, (job,) seconds each: waits since the last promotion and the first run.

        `waiting_time` and `ran`, the run time since that promotion, are (job,) seconds. A policy is asked whenever a
        wait begins and ends, so one that is shorter than when it was last seen is another one. Unchanged where nothing
        is promoted.
        """
        last, before = memory["last_wait"], memory["waited_before"]
        if math.isinf(self.knob):
            return {"waited_before": before, "last_wait": last}
        wait = np.where(ran > 0, waiting_time, 0.0)
        return {"waited_before": before + np.where(wait < last, last, 0.0), "last_wait": wait}

    def promoted(self, served: Floats, ran: Floats, waited: Floats, waits: Bools) -> Bools:
        """Return whether each job is promoted to the first queue now, (job,)."""
        if math.isinf(self.knob):
            return np.zeros(len(served), dtype=bool)
        return np.asarray(waits & (self.of(served) > 0) & (waited >= self.knob * ran * (1 - RELATIVE)))

    def demotion_in(self, served: Floats, size: Ints) -> Floats:
        """Return the seconds until each job would enter its next queue if it ran, (job,)."""
        return np.asarray((self.limit_of(self.of(served)) - served) / size)

    def limit_of(self, queue: Ints) -> Floats:
        """Return the upper limit of each job's queue, (job,) accelerator-seconds; inf = the last."""
        return np.asarray(np.append(self.limits, np.inf)[queue])

    def promotion_in(self, served: Floats, ran: Floats, waited: Floats) -> Floats:
        """Return the seconds until each job would be promoted if it waited, (job,)."""
        if math.isinf(self.knob):
            return np.full(len(served), np.inf)
        return np.where(self.of(served) > 0, self.knob * ran - waited, np.inf)


@lru_cache(maxsize=64)
def parse_numbers(value: float | str, parameter: str, what: str) -> Floats:
    """Return a number, or those of a text such as `3250,7200`. Raises ValueError that names the parameter."""
    message = f"{parameter} is {value!r}; it is {what}, such as 3250 or '3250,7200'"
    try:
        numbers = np.array([float(part) for part in str(value).split(",")])
    except ValueError:
        raise ValueError(message) from None
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(message)
    numbers.setflags(write=False)
    return numbers


@lru_cache(maxsize=64)
def parse_limits(value: float | str) -> Floats:
    """Return the limits between queues. Raises ValueError unless they are above 0 and rise."""
    if value == ONE_QUEUE:
        return np.zeros(0)
    what = f"accelerator-seconds above 0 that rise from queue to queue, or {ONE_QUEUE!r} for one queue"
    limits = parse_numbers(value, "limits", what)
    if (np.diff(limits) <= 0).any():
        raise ValueError(f"limits is {value!r}; it is {what}, such as 3250 or '3250,7200'")
    return limits
