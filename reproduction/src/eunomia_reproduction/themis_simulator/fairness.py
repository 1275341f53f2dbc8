"""Finish-time fairness of jobs: time ÷ (time alone at full width × mean contention), under three contentions.

Contention at a moment is the accelerators asked for over those that there are, at least 1. The authors' code adds up
the widths of all jobs that ever arrived and takes nothing off when jobs end; it divides by the accelerators, rounded
down, when a job arrives, and stores the undivided sum when one ends.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia_reproduction.themis_simulator.world import Jobs


def rho_as_reported(jobs: Jobs, ended: Floats, accelerators: int) -> Floats:
    """Return ρ of each job as the authors' code reports it, (job,)."""
    asked = np.cumsum(jobs.width)
    stored = dict(zip(jobs.arrival.tolist(), np.maximum(asked // accelerators, 1).tolist(), strict=True))
    arrived = np.searchsorted(jobs.arrival, ended, side="right")
    stored |= dict(zip(ended.tolist(), asked[arrived - 1].tolist(), strict=True))
    at = np.array(sorted(stored))
    return _rho(jobs, ended, at, np.array([stored[moment] for moment in at.tolist()], dtype=float))


def rho_by_arrivals(jobs: Jobs, ended: Floats, accelerators: int) -> Floats:
    """Return the same without that error: jobs that have ended still count, but the sum is divided, (job,)."""
    return _rho(jobs, ended, *_contention(jobs, np.full(len(ended), np.inf), accelerators))


def rho_by_present(jobs: Jobs, ended: Floats, accelerators: int) -> Floats:
    """Return ρ with the contention among the jobs that are present at each moment, (job,)."""
    return _rho(jobs, ended, *_contention(jobs, ended, accelerators))


def jain(rho: Floats) -> float:
    """Return Jain's index of these values: 1 where all are equal, 1 ÷ their number where one has all."""
    return float(rho.sum() ** 2 / (len(rho) * np.square(rho).sum()))


def _contention(jobs: Jobs, leaves: Floats, accelerators: int) -> tuple[Floats, Floats]:
    """Return the moments at which contention changes, ascending, and its value from each on."""
    when = np.concatenate((jobs.arrival, leaves))
    change = np.concatenate((jobs.width, -jobs.width))
    order = np.argsort(when, kind="stable")
    finite = order[np.isfinite(when[order])]
    return when[finite], np.maximum(np.cumsum(change[finite]) / accelerators, 1.0)


def _rho(jobs: Jobs, ended: Floats, at: Floats, contention: Floats) -> Floats:
    """Return ρ under a contention that changes at these moments, ascending, the first of them the first arrival."""
    total = np.concatenate(([0.0], np.cumsum(contention[:-1] * np.diff(at))))

    def up_to(moment: Floats) -> Floats:
        last = np.searchsorted(at, moment, side="right") - 1
        return np.asarray(total[last] + contention[last] * (moment - at[last]))

    life = ended - jobs.arrival
    mean = (up_to(ended) - up_to(jobs.arrival)) / life
    return np.asarray(life / (jobs.minutes * jobs.iterations / jobs.width * mean))
