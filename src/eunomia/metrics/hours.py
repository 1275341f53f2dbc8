"""What tenants asked for, were owed and held, hour by hour."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eunomia.metrics.heard import Heard
from eunomia.metrics.steps import integral
from eunomia.model import deserved
from eunomia.model.arrays import Floats, Ints
from eunomia.model.tenants import Tenants

HOUR_S = 3600.0
_MOST = 50_000_000  # hours × tenants²; where there would be more, several hours are taken together


class Hours(NamedTuple):
    """Accelerator-seconds in each stretch of time."""

    edges: Floats  # (hour + 1,) seconds
    asked: Floats  # (hour, tenant) by jobs that waited or ran
    deserved: Floats  # (hour, tenant) of what was asked, what was the tenant's own
    entitled: Floats  # (hour, tenant) its own, asked for or not
    held: Floats  # (hour, tenant, type)


def hours_of(heard: Heard, tree: Tenants, owner: Ints, ended: Floats, quota: tuple[Floats, Floats]) -> Hours:
    """Return the hours of a run that is over; `owner` and `ended` (job,) say whose a job is and until when it was.

    `quota` is a step function: times, and the accelerators that each tenant owns from then on, (step, tenant).
    """
    edges = _edges(heard, len(tree.names))
    submitted = np.array([job.submitted for job in heard.jobs], dtype=float)
    size = np.array([job.scale_factor for job in heard.jobs], dtype=float)
    hours, tenants, types = len(edges) - 1, len(tree.names), len(heard.topology.types)
    asked, owed, entitled = (np.zeros((hours, tenants)) for _ in range(3))
    held = np.zeros((hours, tenants, types))
    rests = heard.pauses.rests(heard.end_s)  # in which less was asked for
    submitted, ended = np.concatenate((submitted, rests.begin)), np.concatenate((ended, rests.end))
    size, owner = np.concatenate((size, -size[rests.job])), np.concatenate((owner, owner[rests.job]))
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(tenants + 1))
    for u in range(tenants):
        mine = order[bounds[u] : bounds[u + 1]]
        times, demand = _demand(submitted[mine], ended[mine], size[mine], np.append(quota[0], edges[0]))
        own = quota[1][np.maximum(np.searchsorted(quota[0], times, side="right") - 1, 0), u]
        asked[:, u], owed[:, u], entitled[:, u] = (
            np.diff(integral((times, rate), edges)) for rate in (demand, deserved.of_tenants(demand, own), own)
        )
    row_of = {name: u for u, name in enumerate(tree.names)}
    for name, type, curve in heard.held():
        held[:, row_of[name], type] = np.diff(integral(curve, edges))
    return Hours(edges, asked, owed, entitled, held)


def _edges(heard: Heard, tenants: int) -> Floats:
    """Return whole hours from the first submission, and the end of the run."""
    begin = min((job.submitted for job in heard.jobs), default=0.0)
    end = max(heard.end_s, begin)
    first, last = math.floor(begin / HOUR_S), math.ceil(end / HOUR_S)
    together = math.ceil((last - first) * tenants**2 / _MOST) or 1
    inside = np.arange(first + together, last, together) * HOUR_S
    return np.unique(np.concatenate(([begin], inside, [end])))


def _demand(submitted: Floats, ended: Floats, size: Floats, more: Floats) -> tuple[Floats, Floats]:
    """Return the accelerators asked for as a step function that has these further times too."""
    times, place = np.unique(np.concatenate((submitted, ended, more)), return_inverse=True)
    change = np.bincount(place.reshape(-1), np.concatenate((size, -size, np.zeros(len(more)))), len(times))
    return times, np.cumsum(change)
