"""The time of an app on a private part of the cluster: T_id of Themis' finish-time fairness ρ = T_sh / T_id.

    share     T_id = max( longest, work / min(demand, C / N) )     alone on a private C / N, as the paper says in words
    work      T_id = N · work / min(demand, C)                     the printed formula, with the app as its unit
    longest   T_id = N · max( longest, work / min(demand, C) )     N times the time alone on the whole cluster

longest: seconds of the longest job of the app; work: accelerator-seconds of all of them; demand: accelerators that they
can use together; C: accelerators of the cluster; N: mean number of apps present during the app's life, at least 1. By
`share` the longest job counts once: it runs on an Nth of the cluster as fast as on all of it, if it fits there. A gang
wider than C / N gets the part of the time that its accelerator-seconds are worth.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 3.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from eunomia.model.arrays import Floats

IdealTime = Literal["share", "work", "longest"]
IDEAL_TIMES: tuple[IdealTime, ...] = ("share", "work", "longest")
SHARE: IdealTime = "share"
_SHORTEST_S = 1e-9  # so that ρ of an app without work is finite


def ideal_time(
    longest: Floats, work: Floats, demand: Floats, rivals: Floats, devices: float, ideal: IdealTime
) -> Floats:
    """Return T_id, seconds, (app,), above 0.

    longest, work, demand, rivals are (app,): seconds, accelerator-seconds, accelerators and N; `devices` is C.
    """
    N = np.maximum(rivals, 1.0)
    if ideal == "share":
        part = np.maximum(np.minimum(demand, devices / N), _SHORTEST_S)
        return np.maximum(np.maximum(longest, work / part), _SHORTEST_S)
    busy = work / np.maximum(np.minimum(demand, devices), 1.0)
    alone = np.maximum(longest, busy) if ideal == "longest" else busy
    return N * np.maximum(alone, _SHORTEST_S)
