"""Finish-time fairness, each definition under a name of its own."""

from __future__ import annotations

import numpy as np

from eunomia.metrics.step_functions import integral, overlap
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot


def rho_themis(
    app: Ints, begin: Floats, finished: Floats, left: Floats, size: Floats, needed_s: Floats, devices: int
) -> Floats:
    """Return ρ = T_sh / (T_cluster · N_avg) of each app, (app,); nan where it did not finish.

    T_sh is the time from an app's first submission, `begin`, to its end, T_cluster its time on the whole cluster with
    nobody around, N_avg the mean number of apps present meanwhile. `app` says whose each job is, `size` and `needed_s`
    (job,) are its accelerators and its run time on its fastest type; `left` (app,) is when an app was gone.
    Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3.2.
    """
    apps = len(begin)
    longest = np.zeros(apps)
    np.maximum.at(longest, app, needed_s)
    work = np.bincount(app, weights=needed_s * size, minlength=apps)
    gangs = np.bincount(app, weights=size, minlength=apps)
    T_sh = finished - begin
    with np.errstate(divide="ignore", invalid="ignore"):
        T_cluster = np.maximum(longest, work / np.minimum(gangs, devices))
        N_avg = (overlap(np.sort(begin), begin, finished) - overlap(np.sort(left), begin, finished)) / T_sh
        return np.asarray(T_sh / (T_cluster * np.maximum(N_avg, 1.0)))


def rho_isolated(
    submitted: Floats,
    finished: Floats,
    size: Floats,
    steps: Floats,
    rate: Floats,
    capacity: Floats,
    present: tuple[Floats, Floats],
) -> Floats:
    """Return ρ = JCT / time on an nth of the cluster, (job,), n the jobs present; nan for one that did not finish.

    An nth is C[j] / (n z) of the time on each type j, or less where that would be more than all of it. As n changes,
    the speed there is averaged over the job's life, so ρ is the steps that it would have done meanwhile over those it
    did. `present` is a step function of time: times, and how many jobs there were from each on.
    Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
    OSDI 2020, section 4.2.
    """
    done = ~np.isnan(finished)
    share = np.full(len(size), np.nan)  # ∫ 1 / max(n, C / z) dt
    for z in np.unique(size[done]):
        mine = done & (size == z)
        part = present[0], 1.0 / np.maximum(present[1], capacity.sum() / z)
        share[mine] = _within(part, submitted[mine], finished[mine])
    return np.asarray(dot(rate, capacity) / size * share / steps)


def _within(steps: tuple[Floats, Floats], begin: Floats, end: Floats) -> Floats:
    """Return ∫ of a step function over each [begin, end]."""
    edges, place = np.unique(np.concatenate((steps[0][:1], begin, end)), return_inverse=True)
    total = integral(steps, edges)[place.reshape(-1)[1:]]
    return np.asarray(total[len(begin) :] - total[: len(begin)])


def rho_astraea(jct: Floats, run_s: Floats, ltgf: Floats) -> Floats:
    """Return ρ = life / (run · LTGF + life - run) of each finished job, (job,); 1 where nothing was deserved.

    What ASTRAEA's public artifact orders by as finish-time fairness, at the job's end: life is JCT, run the time on
    accelerators. Reference: Z. Ye et al., "ASTRAEA", TPDS 2022, and its artifact.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = jct / (run_s * ltgf + jct - run_s)
    return np.asarray(np.where(np.isnan(ltgf) & ~np.isnan(jct), 1.0, rho))


def jain(values: Floats) -> float:
    """Return (Σ x)² / (n Σ x²): 1 when all are alike, 1/n when one has it all; nan of nothing.

    Reference: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
    """
    square = float(np.square(values).sum())
    return float(values.sum()) ** 2 / (len(values) * square) if square > 0 else np.nan
