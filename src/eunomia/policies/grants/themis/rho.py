"""Finish-time fairness of apps: how late they will be done, compared with a private 1/N of the cluster.

    ρ = T_sh / T_id,   T_id = T_cluster · N_avg
    T_sh      = elapsed + max( max_j t_j,  Σ_j w_j / min(Σ_j z_j held, Σ_j z_j) )
    T_cluster = max( max_j total_j,  Σ_j z_j total_j / min(Σ_j z_j, devices) )

t_j seconds that job j still needs where it sits, w_j accelerator-seconds that it still needs there, or at its fastest
where it waits, total_j seconds in all on its fastest type, z_j its gang. An app of one job has
ρ = (elapsed + t) / T_id. Who holds nothing is never done: ρ is RHO_MAX, so that logarithms are finite.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3 and its appendix
on apps of many jobs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.model.arrays import Bools, Floats, Ints

RHO_MAX = 1e6


@njit(cache=True)
def cluster_time(app: Ints, apps: int, total: Floats, size: Ints, service: Floats, devices: int) -> Floats:
    """Return T_cluster, (app,), above 0. app, total, size (job,); service (app,) that its ended jobs attained."""
    longest, work, width = np.zeros(apps), service.copy(), np.zeros(apps)
    for m in range(len(app)):
        longest[app[m]] = max(longest[app[m]], total[m])
        work[app[m]] += total[m] * size[m]
        width[app[m]] += size[m]
    return np.maximum(np.maximum(longest, work / np.maximum(np.minimum(width, devices), 1.0)), 1e-9)


@njit(cache=True)
def finish_time_fairness(
    app: Ints, elapsed: Floats, ideal: Floats, seated: Bools, time: Floats, work: Floats, size: Ints
) -> Floats:
    """Return ρ, (app,). elapsed, ideal (app,) seconds; seated, time, work, size (job,), time where it sits."""
    apps = len(elapsed)
    longest, left, held = np.zeros(apps), np.zeros(apps), np.zeros(apps)
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


@njit(cache=True)
def fairness(elapsed: float, ideal: float, longest: float, left: float, held: float) -> float:
    """Return ρ of an app whose seated jobs need `longest` and that has `left` to do on the seats held."""
    if held == 0:
        return RHO_MAX
    return min((elapsed + max(longest, left / held)) / ideal, RHO_MAX)
