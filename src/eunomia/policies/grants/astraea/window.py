"""Long-term fairness: what somebody used over what was due, tenants' over a window that slides by hours.

ρ[m] = U[m] / D[m]            job: used over deserved accelerator-seconds, over all of its life
σ[u] = Σ U[u] / Σ W[u]        tenant: used over entitled (quota × time) in the last hours; 1 where there is none
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.model.arrays import Floats

HOUR_S = 3600.0


def ratio(used: Floats, due: Floats, unknown: float) -> Floats:
    """Return used over due; `unknown` where nothing is due yet."""
    rho: Floats = np.divide(used, due, out=np.full(np.shape(due), unknown), where=due > 0)
    return rho


def last_hours(hourly: Floats, at: float, hours: int) -> Floats:
    """Return the sums of the last `hours`, (tenant, column), of sums by hour whose last one is the present hour.

    Of the hour in which the window begins only the part counts that lies within it.
    """
    part = math.fmod(at, HOUR_S) / HOUR_S
    recent = hourly[-(hours + 1) :]
    whole = recent[1:] if len(recent) > hours else recent
    begun = recent[0] * (1.0 - part) if len(recent) > hours else 0.0
    return np.asarray(whole.sum(axis=0) + begun)
