"""Max-min fairness over effective throughput, aware of accelerator types or not.

    maximise_X   min_m  (z_m / w_m) · Σ_j T[m,j] X[m,j] / Σ_j T[m,j] E[j]
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

T throughput, z scale factor, w priority weight, C capacity, E[j] = C[j] / Σ C (time split by capacity). The agnostic
twin takes T = 1 wherever a job can run. Of all optima the one with the most Σ_m Σ_j T[m,j] X[m,j] / max_j T[m,j] is
returned, so that what fairness leaves over is not wasted. A gang wider than a type gets no share of it.
Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI 2020, section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.solvers.level import highest_level

_NEEDS = frozenset({"throughput", "scale_factor", "weight", "capacity"})
_PAPER = "Narayanan et al., Gavel, OSDI 2020, section 4.1"


def _raise_worst_off(T: Floats, view: View) -> Shares:
    """Solve the program for throughputs T (job, type)."""
    z, w, C = view.scale_factor.astype(float), view.weight, view.capacity
    T = np.where(z[:, None] <= C, T, 0.0)
    E = C / max(C.sum(), 1.0)
    equal = T @ E
    best = T.max(axis=1, initial=0.0)
    gain = np.divide(T * (z / w)[:, None], equal[:, None], out=np.zeros_like(T), where=equal[:, None] > 0)
    second = np.divide(T, best[:, None], out=np.zeros_like(T), where=best[:, None] > 0)
    return Shares(np.clip(highest_level(gain, z, C, second).x, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class MaxMinFairness:
    """Raise the worst-off job as far as it goes, knowing how fast each job is on each type."""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="max_min_fairness",
        door="shares",
        objective="the worst-off job gets the most effective throughput",
        technique="linear program over distinct jobs",
        paper=_PAPER,
        needs=_NEEDS,
        mechanism=ROUNDS,
    )

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        return _raise_worst_off(view.throughput, view)


@dataclass(frozen=True, slots=True)
class MaxMinFairnessAgnostic:
    """Raise the worst-off job as if all accelerator types were alike."""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="max_min_fairness_agnostic",
        door="shares",
        objective="the worst-off job gets the most accelerator time",
        technique="linear program over distinct jobs",
        paper=_PAPER,
        needs=_NEEDS,
        mechanism=ROUNDS,
    )

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        return _raise_worst_off((view.throughput > 0).astype(float), view)
