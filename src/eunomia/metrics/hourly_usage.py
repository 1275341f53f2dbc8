"""What tenants asked for, deserved and held in each hour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.step_functions import Steps, combined, integral
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_table import job_array
from eunomia.model.tenants import Tenants

HOUR_S = 3600.0
# Where there would be more than either of these, several hours are merged: the first limits time, the second memory.
_MOST_PAIRS = 50_000_000  # hours × tenants²
_MOST_CELLS = 2_000_000  # hours × tenants: 228 years of one tenant


class Hours(NamedTuple):
    """Accelerator-seconds in each hour."""

    edges: Floats  # (hour + 1,) seconds
    asked: Floats  # (hour, tenant) by jobs that waited or ran
    deserved: Floats  # (hour, tenant) the part of `asked` within what the tenant owned
    entitled: Floats  # (hour, tenant) what the tenant owned, asked for or not
    held: Floats  # (hour, tenant, type)


def hours_of(
    collector: MetricsCollector,
    tree: Tenants,
    demand: Sequence[Steps],
    owned: Sequence[Steps],
    quota: tuple[Floats, Floats],
) -> Hours:
    """Return the hours of a run that is over; `demand` and `owned` (tenant) are of `metrics.entitlement`.

    `quota` is a step function: times, and the accelerators that each tenant owns from then on, (step, tenant).
    """
    edges = _edges(collector, len(tree.names))
    asked, own = (_by_hour(every, edges) for every in (demand, [(quota[0], column) for column in quota[1].T]))
    deserved = _by_hour([combined(fair_share.of_tenants, *pair) for pair in zip(demand, owned, strict=True)], edges)
    held = np.zeros((*deserved.shape, len(collector.topology.types)))
    row_of = {name: u for u, name in enumerate(tree.names)}
    for name, type, curve in collector.held():
        held[:, row_of[name], type] = np.diff(integral(curve, edges))
    return Hours(edges, asked, deserved, entitled(tree.parent, own, deserved), held)


def _by_hour(every: Sequence[Steps], edges: Floats) -> Floats:
    """Return the integral of each step function in each hour, (hour, step function)."""
    return np.array([np.diff(integral(steps, edges)) for steps in every]).reshape(len(every), len(edges) - 1).T.copy()


def entitled(parent: Ints, own: Floats, deserved: Floats) -> Floats:
    """Return what each tenant deserved or could lend, (hour, tenant), each accelerator once.

    `own` (hour, tenant) are quotas; a parent's includes its children's. What a parent's jobs deserve beyond its own
    part comes from what its children do not ask for, in proportion.
    """
    spare = np.maximum(own - deserved, 0.0)
    for u, below in fair_share.rows_below(parent).items():
        alone = fair_share.left(own[:, u], own[:, parent == u].sum(axis=1))
        taken, idle = np.maximum(deserved[:, u] - alone, 0.0), spare[:, below].sum(axis=1)
        part = np.divide(taken, idle, out=np.zeros_like(idle), where=idle > 0)
        spare[:, below] *= 1.0 - np.minimum(part, 1.0)[:, None]
        spare[:, u] = np.maximum(alone - deserved[:, u], 0.0)
    return np.asarray(deserved + spare)


def _edges(collector: MetricsCollector, tenants: int) -> Floats:
    """Return the full hours from the first submission to the end of the run, and both ends; merged where too many."""
    begin = float(job_array(collector.jobs, "submitted").min()) if collector.jobs else 0.0
    end = max(collector.end_s, begin)
    first, last = math.floor(begin / HOUR_S), math.ceil(end / HOUR_S)
    cells = (last - first) * tenants
    together = max(math.ceil(cells * tenants / _MOST_PAIRS), math.ceil(cells / _MOST_CELLS), 1)
    inside = (first + together * np.arange(1.0, -(-(last - first) // together))) * HOUR_S
    return np.unique(np.concatenate(([begin], inside[inside < end], [end])))
