"""Finish-time fairness of apps: how late they will be done, compared with a private 1/N of the cluster.

    ρ = T_sh / T_id,   T_id = T_cluster · N_avg
    T_sh      = elapsed + max( max_j t_j,  Σ_j z_j t_j / Σ_j z_j held )
    T_cluster = max( max_j total_j,  (ended + Σ_j z_j total_j) / min(Σ_j z_j, devices) )

j are the jobs that have not ended: they sit, wait, or are paused by their user. t_j seconds that job j still needs
where it sits, on its fastest type where it does not sit; total_j seconds in all on its fastest type, z_j its gang,
`ended` the accelerator-seconds attained by jobs that have ended. All steps that were declared count, also of trials
that will be given up, whether they sit, wait or are paused: a pause changes nothing of T_cluster, and of T_sh only the
seats held. The paper's first term has no value for a job without seats, which is not done sooner than at its best: with
that an app never looks worse because one more of its jobs sits on its fastest type. An app of one job has
ρ = (elapsed + t) / T_id. Who holds nothing is never done: ρ is RHO_MAX, so that logarithms are finite.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3 and its appendix
on apps of many jobs.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints

RHO_MAX = 1e6


@kernel()
def cluster_time(app: Ints, apps: int, total: Floats, size: Ints, service: Floats, devices: int) -> Floats:
    """Return T_cluster, (app,), above 0. app, total, size (job,), service (app,) that its ended jobs attained."""
    longest, work, width = np.zeros(apps), service.copy(), np.zeros(apps)
    for m in range(len(app)):
        longest[app[m]] = max(longest[app[m]], total[m])
        work[app[m]] += total[m] * size[m]
        width[app[m]] += size[m]
    return np.maximum(np.maximum(longest, work / np.maximum(np.minimum(width, devices), 1.0)), 1e-9)


@kernel()
def finish_time_fairness(
    app: Ints,
    elapsed: Floats,
    ideal: Floats,
    least: Floats,
    paused: Floats,
    seated: Bools,
    time: Floats,
    work: Floats,
    size: Ints,
) -> Floats:
    """Return ρ, (app,). elapsed, ideal, least (app,) seconds; seated, time, work, size (job,), time where it sits.

    least is what the longest job needs at its best, paused (app,) accelerator-seconds that paused jobs need.
    """
    apps = len(elapsed)
    longest, left, held = least.copy(), paused.copy(), np.zeros(apps)
    for m in range(len(app)):
        a = app[m]
        if seated[m]:
            longest[a] = max(longest[a], time[m])
            held[a] += size[m]
        left[a] += time[m] * size[m] if seated[m] else work[m]
    rho = np.empty(apps)
    for a in range(apps):
        rho[a] = fairness(elapsed[a], ideal[a], longest[a], left[a], held[a])
    return rho


@kernel()
def fairness(elapsed: float, ideal: float, longest: float, left: float, held: float) -> float:
    """Return ρ of an app whose longest job needs `longest` and that has `left` to do on the seats held."""
    if held == 0:
        return RHO_MAX
    return min((elapsed + max(longest, left / held)) / ideal, RHO_MAX)
