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

from eunomia.model.arrays import Bools, Floats, Ints

RHO_MAX = 1e6


def cluster_time(app: Ints, apps: int, total: Floats, size: Ints, service: Floats, devices: int) -> Floats:
    """Return T_cluster, (app,), above 0. app, total, size (job,); service (app,) that its ended jobs attained."""
    longest = np.zeros(apps)
    np.maximum.at(longest, app, total)
    work = np.bincount(app, weights=total * size, minlength=apps) + service
    width = np.minimum(np.bincount(app, weights=size, minlength=apps), devices)
    return np.maximum(np.maximum(longest, work / np.maximum(width, 1)), 1e-9)


def finish_time_fairness(
    app: Ints, elapsed: Floats, ideal: Floats, seated: Bools, time: Floats, work: Floats, size: Ints
) -> Floats:
    """Return ρ, (app,). elapsed, ideal (app,) seconds; seated, time, work, size (job,), time where it sits."""
    apps = len(elapsed)
    longest = np.zeros(apps)
    np.maximum.at(longest, app, np.where(seated, time, 0.0))
    left = np.bincount(app, weights=np.where(seated, time * size, work), minlength=apps)
    held = np.bincount(app, weights=np.where(seated, size, 0), minlength=apps)
    finish = elapsed + np.maximum(longest, left / np.maximum(held, 1))
    return np.where(held > 0, np.minimum(finish / ideal, RHO_MAX), RHO_MAX)
