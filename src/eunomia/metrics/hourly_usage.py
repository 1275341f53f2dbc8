"""What tenants asked for, were owed and held, hour by hour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.step_functions import Steps, combined, integral
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.tenants import Tenants

HOUR_S = 3600.0
# Where there would be more than either of these, several hours are taken together: the one is time, the other memory.
_MOST_PAIRS = 50_000_000  # hours × tenants²
_MOST_CELLS = 2_000_000  # hours × tenants: 228 years of one tenant


class Hours(NamedTuple):
    """Accelerator-seconds in each stretch of time."""

    edges: Floats  # (hour + 1,) seconds
    asked: Floats  # (hour, tenant) by jobs that waited or ran
    deserved: Floats  # (hour, tenant) of what was asked, what was the tenant's own
    entitled: Floats  # (hour, tenant) its own, asked for or not
    held: Floats  # (hour, tenant, type)


def hours_of(
    heard: MetricsCollector,
    tree: Tenants,
    demand: Sequence[Steps],
    owned: Sequence[Steps],
    quota: tuple[Floats, Floats],
) -> Hours:
    """Return the hours of a run that is over; `demand` and `owned` (tenant) are of `metrics.owned`.

    `quota` is a step function: times, and the accelerators that each tenant owns from then on, (step, tenant).
    """
    edges = _edges(heard, len(tree.names))
    asked, own = (_by_hour(every, edges) for every in (demand, [(quota[0], column) for column in quota[1].T]))
    owed = _by_hour([combined(fair_share.of_tenants, *pair) for pair in zip(demand, owned, strict=True)], edges)
    held = np.zeros((*owed.shape, len(heard.topology.types)))
    row_of = {name: u for u, name in enumerate(tree.names)}
    for name, type, curve in heard.held():
        held[:, row_of[name], type] = np.diff(integral(curve, edges))
    return Hours(edges, asked, owed, entitled(tree.parent, own, owed), held)


def _by_hour(every: Sequence[Steps], edges: Floats) -> Floats:
    """Return the integral of each step function in each hour, (hour, step function)."""
    return np.array([np.diff(integral(steps, edges)) for steps in every]).reshape(len(every), len(edges) - 1).T.copy()


def entitled(parent: Ints, own: Floats, owed: Floats) -> Floats:
    """Return what was owed to each tenant or was left to lend, (hour, tenant), each accelerator once.

    `own` (hour, tenant) are quotas, those of children within their parent's. Of what children did not ask for, in
    proportion, their parent's jobs were owed what they asked for beyond the part that is no child's.
    """
    spare = np.maximum(own - owed, 0.0)
    for u, below in fair_share.rows_below(parent).items():
        alone = fair_share.left(own[:, u], own[:, parent == u].sum(axis=1))
        taken, idle = np.maximum(owed[:, u] - alone, 0.0), spare[:, below].sum(axis=1)
        part = np.divide(taken, idle, out=np.zeros_like(idle), where=idle > 0)
        spare[:, below] *= 1.0 - np.minimum(part, 1.0)[:, None]
        spare[:, u] = np.maximum(alone - owed[:, u], 0.0)
    return np.asarray(owed + spare)


def _edges(heard: MetricsCollector, tenants: int) -> Floats:
    """Return whole hours from the first submission, and the end of the run; several at once where they are many."""
    begin = min((job.submitted for job in heard.jobs), default=0.0)
    end = max(heard.end_s, begin)
    first, last = math.floor(begin / HOUR_S), math.ceil(end / HOUR_S)
    cells = (last - first) * tenants
    together = max(math.ceil(cells * tenants / _MOST_PAIRS), math.ceil(cells / _MOST_CELLS), 1)
    inside = (first + together * np.arange(1.0, -(-(last - first) // together))) * HOUR_S
    return np.unique(np.concatenate(([begin], inside[inside < end], [end])))
