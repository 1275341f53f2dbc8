"""What the jobs of each tenant asked for, and what was theirs to have, as time went by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.step_functions import Steps, combined, summed
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints


def demand_of(heard: MetricsCollector, owner: Ints, ended: Floats, tenants: int) -> list[Steps]:
    """Return the accelerators that jobs of each tenant asked for while they waited or ran, one step function each.

    `owner` and `ended` (job,) say whose a job is and until when it was there; one that rests asks for nothing.
    """
    submitted = np.array([job.submitted for job in heard.jobs], dtype=float)
    size = np.array([job.scale_factor for job in heard.jobs], dtype=float)
    rests = heard.pauses.rests(heard.end_s)
    submitted, ended = np.concatenate((submitted, rests.begin)), np.concatenate((ended, rests.end))
    size, owner = np.concatenate((size, -size[rests.job])), np.concatenate((owner, owner[rests.job]))
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(tenants + 1))
    every = (order[bounds[u] : bounds[u + 1]] for u in range(tenants))
    return [_together(submitted[mine], ended[mine], size[mine]) for mine in every]


def _together(begin: Floats, end: Floats, size: Floats) -> Steps:
    """Return the sum of sizes that are there from `begin` to `end`, 0 from the start of time."""
    times, place = np.unique(np.concatenate(([0.0], begin, end)), return_inverse=True)
    change = np.bincount(place.reshape(-1), np.concatenate(([0.0], size, -size)), len(times))
    return times, np.cumsum(change)


def owned_by(parent: Ints, quota: tuple[Floats, Floats], demand: Sequence[Steps]) -> list[Steps]:
    """Return the accelerators that each tenant's own jobs owned, one step function each (`model.deserved`).

    `quota` is a step function of time: times, and the quotas from then on, (step, tenant).
    """
    owned: list[Steps] = [(quota[0], column) for column in quota[1].T]
    for u, rows in fair_share.rows_below(parent).items():
        owed = summed([combined(fair_share.of_tenants, demand[v], owned[v]) for v in rows.tolist()])
        owned[u] = combined(fair_share.left, owned[u], owed)
    return owned
