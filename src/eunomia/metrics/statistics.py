"""Averages over seeds, and differences paired by seed, with confidence intervals.

Two policies are compared by their ratio under each seed: durations differ much between seeds, the ratio of two policies
little. Intervals are Student's t, of ratios on a log scale. Seeds are few, three to ten: bootstrap intervals, BCa
included, would resample those few values and be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.rounding import rounded

NEGLIGIBLE = 0.01  # relative difference that does not matter


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An average over seeds, and its confidence interval."""

    mean: float
    half: float | None  # half the width of the interval; None with one seed
    seeds: int

    @property
    def low(self) -> float | None:
        """The lower end of the interval."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        return None if self.half is None else self.mean + self.half


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The difference between two settings on the same seeds."""

    change: Estimate  # this less the other
    log_ratio: Estimate | None  # ln(this ÷ the other); None unless all values are above 0

    @property
    def alike(self) -> bool:
        """Whether the two differ by less than 1 %, with an interval that excludes 0 or lies within 1 %.

        Without a ratio: whether they are equal under every seed. False with one seed.
        """
        ratio = self.log_ratio
        if ratio is None:
            return self.change.mean == 0 == self.change.half
        if ratio.half is None:
            return False
        return abs(ratio.mean) <= NEGLIGIBLE and (bool(self.real) or abs(ratio.mean) + ratio.half <= NEGLIGIBLE)

    @property
    def agrees(self) -> bool:
        """Whether the averages differ in the same direction as a typical ratio under one seed."""
        return self.log_ratio is None or self.change.mean * self.log_ratio.mean >= 0

    @property
    def real(self) -> bool | None:
        """Whether the interval excludes 0, and the averages differ in its direction; None with one seed."""
        judged = self.log_ratio or self.change
        return None if judged.half is None else self.agrees and abs(judged.mean) > judged.half


def estimate(values: Floats, confidence: float = 0.95) -> Estimate | None:
    """Return average and interval of `values` (seed,); None without values."""
    n = len(values)
    if n == 0:
        return None
    mean = float(np.mean(values))
    if n == 1:
        return Estimate(mean=mean, half=None, seeds=1)
    half = student_t(confidence, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Estimate(mean=mean, half=half, seeds=n)


def paired(this: Mapping[int, float], other: Mapping[int, float], confidence: float = 0.95) -> PairedDifference | None:
    """Return this less the other over the seeds that both have; None without such seeds.

    Under one seed both run the same jobs, so the effect of the jobs on both cancels out.
    """
    seeds = sorted(this.keys() & other.keys())
    one, two = (np.array([values[seed] for seed in seeds]) for values in (this, other))
    change = estimate(one - two, confidence)
    if change is None:
        return None
    above = bool((one > 0).all() and (two > 0).all())
    return PairedDifference(change=change, log_ratio=estimate(elementary.log(one / two), confidence) if above else None)


def one_run(values: Mapping[str, Mapping[int, float]], runs: int | None = None) -> bool:
    """Return whether several seeds gave identical numbers, name by name: nothing is random, so they are one run.

    `values` are the known values by name and seed; `runs` is the number of seeds where some may have no value at all.
    """
    seeds = {seed for by_seed in values.values() for seed in by_seed}
    same = all(by_seed.keys() == seeds and len(set(by_seed.values())) == 1 for by_seed in values.values())
    return len(seeds) > 1 and len(seeds) == (runs or len(seeds)) and same


@lru_cache
def student_t(confidence: float, degrees: int) -> float:
    """Return t such that Student's distribution with `degrees` degrees of freedom has `confidence` within ± t."""
    low, high = 0.0, 1.0
    while _within(high, degrees) < confidence:
        low, high = high, 2 * high
    return float(rounded(_root(lambda t: _within(t, degrees) - confidence, low, high), bits=40))  # of libm's arctangent


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of an increasing function, by bisection down to neighbouring floats."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if function(middle) < 0 else (low, middle)


def _within(t: float, degrees: int) -> float:
    """Return the probability of ± t under Student's distribution, in closed form for whole degrees of freedom.

    M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 1964, formulas 26.7.3 and 26.7.4.
    """
    theta = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.sqrt(degrees / (degrees + t * t)), t / math.sqrt(degrees + t * t)
    term = cosine if degrees % 2 else 1.0
    total = 0.0
    for k in range(degrees % 2 + 1, degrees, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    return 2 / math.pi * (theta + sine * total) if degrees % 2 else sine * total
