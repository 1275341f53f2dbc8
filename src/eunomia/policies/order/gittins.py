"""The Gittins index: how soon a job is likely to end, estimated from the service of finished jobs.

    within     G(a, Δ) = P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]
    textbook   G(a) = max_Δ  G(a, Δ)
    authors    G(a) = (d − i) / (Σ_{i ≤ l < d} s_l + Δ (n − d)),   i = #{s ≤ b},  d = min(#{s ≤ b + Δ}, n − 1),
               b = the least sample above a, less 1

S is the total service of a job, drawn from the samples s_0 ≤ … ≤ s_{n-1}, and a its attained service. `within` has a Δ
for each job; with Δ = ∞ it is 1 / E[S − a | S > a]. Of the textbook's only the Δ that reach a sample matter. The last
is the formula of Tiresias' public simulator, with a fixed Δ: it does not subtract a, it is looked up per sample, so
that it is constant between two of them, and it excludes the last sample, so that a job beyond the last but one has
index 0. All are 0 where no sample is above a.

Reference: J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", J. R. Stat. Soc. B 41(2), 1979; J. Gu et
al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3.2.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.tolerance import RELATIVE

MOST_SAMPLES = 1000  # more samples are replaced by as many quantiles
_BLOCK = 1024  # jobs


def to_quantiles(samples: Floats) -> Floats:
    """Return the samples in rising order, (sample,), or MOST_SAMPLES quantiles of more samples."""
    ordered = np.sort(samples)
    if len(ordered) <= MOST_SAMPLES:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, MOST_SAMPLES).round().astype(np.int64)])


def textbook(samples: Floats, attained: Floats) -> Floats:
    """Return G, (job,), of jobs by attained service (job,); samples (sample,) in rising order."""
    parts = [_textbook(samples, attained[m : m + _BLOCK]) for m in range(0, len(attained), _BLOCK)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _textbook(s: Floats, a: Floats) -> Floats:
    n, below = len(s), np.searchsorted(s, a, side="right")
    if n == 0:
        return np.zeros(len(a))
    total = np.cumsum(s)
    over = np.concatenate(([0.0], total))[below]  # sum of the samples up to a
    upto = np.arange(1, n + 1)
    ends = upto - below[:, None]  # (job, sample) samples above a and up to this one
    spent = total + (n - upto) * s - (over + (n - below) * a)[:, None]
    index = np.divide(ends, spent, out=np.zeros(ends.shape), where=(ends > 0) & (spent > 0))
    return np.asarray(index.max(axis=1))


def within(samples: Floats, attained: Floats, delta: Floats) -> Floats:
    """Return G, (job,), of jobs by attained service and Δ, (job,) each, inf = to the end; samples in rising order."""
    n, sums = len(samples), np.concatenate(([0.0], np.cumsum(samples)))
    below = np.searchsorted(samples, attained, side="right")
    reached = np.searchsorted(samples, (attained + delta) * (1 + RELATIVE), side="right")
    spent = sums[reached] - sums[below] - (reached - below) * attained
    beyond = n - reached
    spent += np.where(beyond > 0, delta, 0.0) * beyond
    index = np.divide(reached - below, spent, out=np.zeros(len(attained)), where=(reached > below) & (spent > 0))
    return np.asarray(index)


def authors(samples: Floats, attained: Floats, delta: float) -> Floats:
    """Return G, (job,), by the formula of the public simulator with a fixed Δ; samples in rising order."""
    n, sums = len(samples), np.concatenate(([0.0], np.cumsum(samples)))
    below = np.searchsorted(samples, samples - 1, side="right")
    reached = np.minimum(np.searchsorted(samples, samples - 1 + delta, side="right"), n - 1)
    spent = sums[reached] - sums[below] + delta * (n - reached)
    index = np.divide(reached - below, spent, out=np.zeros(n), where=(reached > below) & (spent > 0))
    return np.asarray(np.append(index, 0.0)[np.searchsorted(samples, attained, side="right")])
