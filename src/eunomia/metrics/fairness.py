"""Finish-time fairness, each definition under a name of its own."""

from __future__ import annotations

import numpy as np

from eunomia.metrics.steps import overlap
from eunomia.model.arrays import Floats, Ints


def rho_themis(
    app: Ints, submitted: Floats, finished: Floats, size: Floats, alone_s: Floats, devices: int, end_s: float
) -> Floats:
    """Return ρ = T_sh / (T_cluster · N_avg) of each job's app, (job,); nan until all of the app finished.

    T_sh is the time from an app's first submission to its last finish, T_cluster its time on the whole cluster with
    nobody around, N_avg the mean number of apps present meanwhile. `app` numbers the apps from 0, `alone_s` is each
    job's run time on its fastest type, `end_s` the end of the run, until which unfinished apps are present.
    Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3.2.
    """
    if len(app) == 0:
        return np.empty(0)
    apps = int(app.max()) + 1
    begin, end = np.full(apps, np.inf), np.full(apps, -np.inf)
    np.minimum.at(begin, app, submitted)
    with np.errstate(invalid="ignore"):
        np.maximum.at(end, app, finished)  # nan spreads: the app has not finished
    longest = np.zeros(apps)
    np.maximum.at(longest, app, alone_s)
    work = np.bincount(app, weights=alone_s * size, minlength=apps)
    gangs = np.bincount(app, weights=size, minlength=apps)
    T_cluster = np.maximum(longest, work / np.minimum(gangs, devices))
    arrives, leaves = np.sort(begin), np.sort(np.where(np.isnan(end), end_s, end))
    T_sh = end - begin
    with np.errstate(divide="ignore", invalid="ignore"):
        N_avg = (overlap(arrives, begin, end) - overlap(leaves, begin, end)) / T_sh
        rho = T_sh / (T_cluster * np.maximum(N_avg, 1.0))
    return np.asarray(rho[app])
