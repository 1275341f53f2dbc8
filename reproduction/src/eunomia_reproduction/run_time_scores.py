"""Judges estimated run times by a causal replay of a trace: only what had ended by then is known."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.throughputs.durations.run_time_history import RunTimeEstimate, RunTimeHistory

PAIRS = 400_000  # drawn for the concordance


@dataclass(frozen=True, slots=True)
class RunTimeScores:
    """How good estimates of run times were, over the last two thirds of the jobs."""

    concordance: float  # share of pairs of jobs in the right order; 0.5 = by chance
    censored_concordance: float  # of pairs whose shorter job completed: a failed or killed one might have run longer
    median_factor: float  # of estimate over truth or truth over estimate
    coverage80: float
    median_decades: float  # width of the interval
    jobs: int


def replay(
    submitted_s: Floats,
    run_s: Floats,
    tenant: Sequence[str],
    size: Sequence[int],
    name: Sequence[str],
    outcome: Sequence[str] = (),
) -> list[RunTimeEstimate]:
    """Return the estimate of each job at its submission; jobs in order of submission, all starting at once.

    Without `outcome` all jobs completed.
    """
    history, running = RunTimeHistory(), list[tuple[float, int]]()
    found = []
    for m, at in enumerate(submitted_s.tolist()):
        while running and running[0][0] <= at:
            end, job = heapq.heappop(running)
            history.end(str(job), float(run_s[job]), end, outcome[job] if outcome else "completed")
        found.append(history.submit(str(m), tenant[m], int(size[m]), name[m], at))
        heapq.heappush(running, (at + float(run_s[m]), m))
    return found


def score(found: Sequence[RunTimeEstimate], run_s: Floats, outcome: Sequence[str] = (), seed: int = 0) -> RunTimeScores:
    """Compare estimates with the truth over the last two thirds.

    The second concordance is that of survival analysis: F. Harrell et al., "Evaluating the Yield of Medical Tests",
    JAMA 247(18), 1982.
    """
    first = len(found) // 3
    truth = np.maximum(run_s[first:], 1.0)
    median, low, high = np.array([(each.median_s, each.low_s, each.high_s) for each in found[first:]]).T
    one, other = np.random.default_rng(seed).integers(0, len(truth), (2, PAIRS))
    differ = truth[one] != truth[other]
    before, expected = truth[one] < truth[other], np.sign(median[other] - median[one])
    right = np.where(expected == 0, 0.5, (expected > 0) == before)
    completed = np.array([not outcome or outcome[first + m] == "completed" for m in range(len(truth))])
    comparable = differ & completed[np.where(before, one, other)]
    off = np.abs(elementary.log(median) - elementary.log(truth))
    return RunTimeScores(
        concordance=round(float(right[differ].mean()), 4),
        censored_concordance=round(float(right[comparable].mean()), 4),
        median_factor=round(float(elementary.exp(float(np.median(off)))), 3),
        coverage80=round(float(((low <= truth) & (truth <= high)).mean()), 4),
        median_decades=round(float(np.median(elementary.log10(high) - elementary.log10(low))), 3),
        jobs=len(truth),
    )
