"""What tenants asked for, deserved and held in each hour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.owned_shares import OwnedShares
from eunomia.metrics.step_functions import Steps, integral
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
    entitled: Floats  # (hour, tenant) what the tenant owned: its quota, asked for or not, or its share while it asked
    held: Floats  # (hour, tenant, type)


def hours_of(collector: MetricsCollector, tree: Tenants, demand: Sequence[Steps], owned: OwnedShares) -> Hours:
    """Return the hours of a run that is over; `demand` (tenant) is of `metrics.entitlement`."""
    edges, rows = _edges(collector, len(tree.names)), range(len(tree.names))
    own, deserved = (_by_hour(map(of, rows), edges, len(rows)) for of in (owned.share, owned.deserved))
    asked = _by_hour(demand, edges, len(rows))
    held = np.zeros((*deserved.shape, len(collector.topology.types)))
    row_of = {name: u for u, name in enumerate(tree.names)}
    for name, type, curve in collector.held():
        held[:, row_of[name], type] = np.diff(integral(curve, edges))
    return Hours(edges, asked, deserved, entitled(tree.parent, own, deserved), held)


def _by_hour(every: Iterable[Steps], edges: Floats, count: int) -> Floats:
    """Return the integral of each of `count` step functions in each hour, (hour, step function)."""
    return np.array([np.diff(integral(steps, edges)) for steps in every]).reshape(count, len(edges) - 1).T.copy()


def entitled(parent: Ints, own: Floats, deserved: Floats) -> Floats:
    """Return what each tenant deserved or could lend, (hour, tenant), each accelerator once.

    `own` (hour, tenant) are shares; a parent's includes its children's. What a parent's jobs deserve beyond its own
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
