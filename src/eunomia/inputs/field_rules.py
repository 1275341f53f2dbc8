"""What a number in an input must be, said once for every format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from eunomia.inputs.bounds import LEAST, MOST, MOST_DEMAND, MOST_S, MOST_STEPS, MOST_WEIGHT
from eunomia.model.arrays import Bools, Floats


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A range of numbers, in words and in bounds. NaN keeps none."""

    what: str  # continues "must be"
    fix: str = ""
    above: float = -inf  # the number must be greater
    least: float = -inf
    below: float = inf  # the number must be less, where there is no `most`
    most: float = inf
    whole: bool = False
    empty: float | None = None  # what an empty cell means; None: it may not be empty
    endless: bool = False  # infinity is allowed, whatever `most` says

    def broken_by(self, number: Floats) -> Bools:
        """Return, shape of `number`, True where the rule does not hold."""
        fits: Bools = number > self.above if self.above >= self.least else number >= self.least
        fits &= number <= self.most if self.most < inf else number < self.below
        if self.whole:
            fits &= np.floor(number) == number
        if self.endless:
            fits |= number == inf
        return ~fits

    def allows(self, number: float) -> bool:
        """Say whether one number keeps the rule."""
        try:
            return not self.broken_by(np.array([float(number)]))[0]
        except OverflowError:  # a whole number beyond every float
            return False


SUBMITTED = Rule(
    what="a number of seconds, at least 0 and at most 1e12",
    least=0.0,
    most=MOST_S,
    fix="write the submission time as seconds since the trace began",
)
STARTED = replace(SUBMITTED, fix="write when it started, counted like submitted_s, or leave it empty")
ENDED = replace(SUBMITTED, fix="write when it ended, counted like submitted_s, or leave it empty")
ELIGIBLE = replace(
    SUBMITTED, fix="write when it could start at the earliest, counted like submitted_s, or leave it empty"
)
SCALE_FACTOR = Rule(
    what="a whole number of accelerators, at least 1",
    least=1,
    most=MOST,
    whole=True,
    fix="write 1 for a job on a single accelerator, or leave the job out",
)
ACCELERATORS = Rule(
    what="a whole number of accelerators, at least 0", least=0, most=MOST, whole=True, fix="write 0 for none"
)
TOTAL_STEPS = Rule(
    what="a number of steps above 0, at least 1e-9 and at most 1e15",
    least=LEAST,
    most=MOST_STEPS,
    fix="write the steps that the job trains, over all its accelerators, or leave the job out",
)
DURATION = Rule(
    what="a number of seconds above 0, at least 1e-9 and at most 1e12",
    least=LEAST,
    most=MOST_S,
    fix="write how long the job runs on the reference type, or leave the job out",
)
WEIGHT = Rule(
    what="a number above 0, from 1e-9 to 1e9", least=LEAST, most=MOST_WEIGHT, empty=1.0,
    fix="leave it empty for a weight of 1",
)  # fmt: skip
DEADLINE = replace(
    SUBMITTED,
    empty=inf,
    fix="write seconds counted like the submission time, or leave it empty for no deadline",
)
DEMAND = Rule(
    what="a number, at least 0 and at most 1e9",
    least=0.0,
    most=MOST_DEMAND,
    empty=0.0,
    fix="write what the whole gang needs, or leave it empty",
)
RETRIES = Rule(
    what="a whole number, at least 0", least=0, most=MOST, whole=True, empty=0, fix="leave it empty for no retries"
)
SPAN = Rule(
    what="a number of seconds, at least 0 and at most 1e12",
    least=0.0,
    most=MOST_S,
    fix="write the seconds between the first start and the last end",
)
FLAG = Rule(what="0 or 1", least=0, most=1, whole=True, fix="write 1 for yes and 0 for no")
