"""Finish-time fairness, each definition under its own name; how fast jobs run alone; and Jain's index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.metrics.step_functions import Steps, integral, overlap
from eunomia.model.arrays import Floats, Ints
from eunomia.model.equal_share import usable_throughput
from eunomia.model.finish_time import SHARE, IdealTime, ideal_time
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.model.products import dot
from eunomia.model.speeds import Speeds


def rho_themis(
    app: Ints,
    begin: Floats,
    finished: Floats,
    left: Floats,
    size: Floats,
    needed_s: Floats,
    devices: int,
    ideal: IdealTime = SHARE,
) -> Floats:
    """Return ρ = T_sh / T_id of each app, (app,); nan where it did not finish.

    T_sh is the time from an app's first submission, `begin`, to its end, T_id that of `model.finish_time` by the
    reading `ideal`, with the mean number of apps present meanwhile. `app`, `size` and `needed_s` (job,) are a job's
    app, accelerators and run time on its fastest type; `left` (app,) is when the last job of an app left.
    Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3.2.
    """
    apps = len(begin)
    longest = np.zeros(apps)
    np.maximum.at(longest, app, needed_s)
    work, gangs = (np.bincount(app, each, minlength=apps).astype(float) for each in (needed_s * size, size))
    T_sh = finished - begin
    with np.errstate(divide="ignore", invalid="ignore"):
        N_avg = (overlap(np.sort(begin), begin, finished) - overlap(np.sort(left), begin, finished)) / T_sh
        return np.asarray(T_sh / ideal_time(longest, work, gangs, N_avg, devices, ideal))


def rho_isolated(
    submitted: Floats, finished: Floats, size: Floats, steps: Floats, rate: Floats, capacity: Floats, present: Steps
) -> Floats:
    """Return ρ = JCT / time on 1/n of the cluster, (job,), n the jobs present; nan for a job that did not finish.

    1/n is C[j] / (n z) of the time on each type j, capped where that would be more than all of it. `rate` (job, type)
    is 0 where a type has fewer accelerators than the gang: that part of the time is lost. As n changes, the
    speed is averaged from submission to finish: ρ is the steps possible in that time over the steps done.
    `present` is a step function: times, and the number of jobs present from each on.
    Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
    OSDI 2020, section 4.2.
    """
    done = ~np.isnan(finished)
    share = np.full(len(size), np.nan)  # ∫ 1 / max(n, C / z) dt
    for z in np.unique(size[done]):
        rows = done & (size == z)
        part = present[0], 1.0 / np.maximum(present[1], capacity.sum() / z)
        share[rows] = _within(part, submitted[rows], finished[rows])
    return np.asarray(dot(rate, capacity) / size * share / steps)


def _within(steps: Steps, begin: Floats, end: Floats) -> Floats:
    """Return ∫ of a step function over each [begin, end]."""
    until_begin, until_end = (integral(steps, np.concatenate((steps[0][:1], at)))[1:] for at in (begin, end))
    return np.asarray(until_end - until_begin)


def rho_astraea(jct: Floats, run_s: Floats, ltgf: Floats) -> Floats:
    """Return ρ = JCT / (run · LTGF + JCT - run) of each finished job, (job,); 1 where nothing was deserved.

    `run_s` is the time on accelerators. Reference: Z. Ye et al., "ASTRAEA", TPDS 2022; the formula is that of its
    public artifact at a job's end.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = jct / (run_s * ltgf + jct - run_s)
    return np.asarray(np.where(np.isnan(ltgf) & ~np.isnan(jct), 1.0, rho))


def jain(values: Floats) -> float:
    """Return (Σ x)² / (n Σ x²): 1 when all are equal, 1/n when all but one are 0; nan without values.

    Reference: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
    """
    square = float(np.square(values).sum())
    return float(values.sum()) ** 2 / (len(values) * square) if square > 0 else np.nan


@dataclass(frozen=True, slots=True)
class StandaloneSpeeds:
    """Speeds of jobs that run alone on the whole cluster."""

    rate: Floats  # (job, type) steps/s of the whole gang; 0 where it is wider than the type
    best: Floats  # (job,) steps/s on the fastest type that can hold the gang
    steps: Floats  # (job,)

    @classmethod
    def of(cls, jobs: Sequence[Job], speeds: Speeds, capacity: Floats) -> StandaloneSpeeds:
        """Look up jobs on a cluster of `capacity` (type,) accelerators."""
        kinds: dict[tuple[str, int], int] = {}
        each = zip(job_values(jobs, "job_type"), job_values(jobs, "scale_factor"), strict=True)
        kind = np.array([kinds.setdefault(key, len(kinds)) for key in each], dtype=int)
        table = np.array([speeds.solo_throughput(*key) for key in kinds], dtype=float).reshape(
            len(kinds), len(capacity)
        )
        table = usable_throughput(table, np.array([size for _, size in kinds], dtype=float), capacity)
        best = table.max(axis=1, initial=0.0)
        return cls(table[kind], best[kind], job_array(jobs, "total_steps", float))

    @property
    def seconds(self) -> Floats:
        """Return the run time of each job on its fastest type, (job,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.steps / self.best)

    @property
    def worth(self) -> Floats:
        """Return the seconds on the fastest type that a second on each type is worth, (job, type)."""
        return np.divide(self.rate, self.best[:, None], out=np.zeros_like(self.rate), where=self.best[:, None] > 0)
