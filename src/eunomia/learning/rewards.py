"""Rewards by name: what an environment pays for the time between two asks.

    jct             − Σ_t (jobs in the system) dt: its sum is minus the total completion time
    progress        Σ_m Δ c[m] / e[m]: fractions of the jobs done (Harmony, INFOCOM 2019)
    loss_reduction  Σ_m of the decrease of the loss, by the job's learning curve (Metis)
    makespan        − Δt while jobs are in the system
    fairness        − max ρ of the jobs that ended, when the run ends (finish-time fairness of Themis)
    goodput         Σ_m z[m] Δ c[m] / max_j T[m, j]: accelerator-seconds of progress

c steps done and e steps in all (job,), z scale factor (job,), T throughput (job, type). Steps are those that the core
believes in, which are exact where belief is an oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model.curves import curve_of, losses
from eunomia.model.decisions import Decision
from eunomia.model.events import JobCancelled, JobFinished, JobSubmitted, Moment
from eunomia.model.job_lifecycle import Stage

REWARDS = ("jct", "progress", "loss_reduction", "makespan", "fairness", "goodput")


class RewardMeter:
    """An observer that measures one reward of a run."""

    def __init__(self, name: str, scheduler: Scheduler, seed: int) -> None:
        self._name, self._scheduler, self._seed = name, scheduler, seed
        self._at, self._jobs = 0.0, 0
        self._sum = 0.0  # of what is counted by time
        self._paid = 0.0
        self._curves: list[tuple[float, float, float]] = []

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Count the time up to this moment, then its jobs."""
        span, self._at = moment.at - self._at, moment.at
        self._sum -= span * (self._jobs if self._name == "jct" else self._jobs > 0)
        for event in moment.events:
            if isinstance(event, JobSubmitted):
                self._jobs += 1
            elif isinstance(event, JobFinished | JobCancelled):
                self._jobs -= 1

    def pay(self) -> float:
        """Return the reward since the last call."""
        total = self._sum if self._name in ("jct", "makespan") else 0.0 if self._name == "fairness" else self._level()
        paid, self._paid = total - self._paid, total
        return float(paid)

    def _level(self) -> float:
        """Return what all jobs have earned so far."""
        state, belief = self._scheduler.state, self._scheduler.belief
        rows = np.arange(len(state.jobs))
        left = belief.remaining_at(self._at, rows) / belief.total[rows]
        done = np.where(state.jobs.stage[rows] == Stage.FINISHED, 1.0, 1.0 - np.minimum(left, 1.0))
        if self._name == "progress":
            return float(done.sum())
        if self._name == "goodput":
            fastest = belief.throughput[rows].max(axis=1, initial=0.0)
            time = np.divide(belief.total[rows], fastest, out=np.zeros(len(rows)), where=fastest > 0)
            return float((done * time * state.jobs.scale_factor[rows]).sum())
        for job in state.submitted[len(self._curves) :]:
            self._curves.append(job.loss or curve_of(self._seed, job.job_id))
        curves = np.array(self._curves).reshape(-1, 3)
        return float((curves[:, 0] - losses(curves, done)).sum())


def last_reward(name: str, summary: Any) -> float:
    """Return what is paid at the end of a run, besides `RewardMeter.pay`."""
    return -float(summary["rho_themis_max"] or 0.0) if name == "fairness" else 0.0
