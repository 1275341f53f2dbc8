"""How tenants shared the cluster: what each deserved and received, by hour too, loans, payments and envy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.entitlement import OwnedShares
from eunomia.metrics.step_functions import Steps, integral
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_table import job_array
from eunomia.model.products import dot
from eunomia.model.tenants import Tenants
from eunomia.model.tolerance import RELATIVE

HOUR_S = 3600.0
# Where there would be more than either of these, several hours are merged: the first limits time, the second memory.
_MOST_PAIRS = 50_000_000  # hours × tenants²
_MOST_CELLS = 2_000_000  # hours × tenants: 228 years of one tenant
WINDOW_S = 24 * HOUR_S
POINTS = 500  # of a series, at most


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Tenants over a whole run; accelerator-seconds unless the comment says otherwise."""

    names: tuple[str, ...]
    refused: Ints  # (tenant,) count of jobs that the policy refused
    entitled: Floats  # (tenant,) what it owned, asked for or not
    deserved: Floats  # (tenant,) the part of what its jobs asked for within what it owned
    received: Floats  # (tenant,)
    lent: Floats  # (lender, borrower) what the lender did not ask for and the borrower used beyond what it deserved
    paid: Floats  # (payer, gainer) what the payer deserved and did not get, and the gainer used instead
    at_s: Floats  # (point,)
    ltgf: Floats  # (tenant, point) received ÷ deserved in the 24 hours before; nan where nothing was deserved


def sharing_of(names: tuple[str, ...], hours: Hours, refused: Ints) -> Sharing:
    """Return the sums over all hours; `refused` (tenant,) counts jobs."""
    lent, paid = loans(hours)
    at_s, ltgf = ltgf_over_time(hours)
    return Sharing(
        names=names,
        refused=refused,
        entitled=hours.entitled.sum(axis=0),
        deserved=hours.deserved.sum(axis=0),
        received=hours.held.sum(axis=(0, 2)),
        lent=lent,
        paid=paid,
        at_s=at_s,
        ltgf=ltgf,
    )


def loans(hours: Hours) -> tuple[Floats, Floats]:
    """Return what was lent and what was paid, (from, to).

    In each hour, what tenants used beyond what they deserved comes first from tenants that did not ask for all they
    owned, and then from tenants that got less than they deserved; in proportion within each group.
    """
    over = hours.held.sum(axis=2) - hours.deserved
    gained, short = np.maximum(over, 0.0), np.maximum(-over, 0.0)
    spare = np.maximum(hours.entitled - hours.deserved, 0.0)
    free = np.minimum(gained.sum(axis=1), spare.sum(axis=1))
    taken = np.minimum(gained.sum(axis=1) - free, short.sum(axis=1))
    part = _parts(gained)
    others = 1.0 - np.eye(gained.shape[1])  # a tenant may both gain and lack in an hour; it lends nothing to itself
    return dot((_parts(spare) * free[:, None]).T, part) * others, dot((_parts(short) * taken[:, None]).T, part) * others


def _parts(amount: Floats) -> Floats:
    """Return each tenant's part of an hour's sum, (hour, tenant); 0 where the sum is 0."""
    total = amount.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(amount, total, out=np.zeros_like(amount), where=total > 0))


def ltgf_over_time(hours: Hours) -> tuple[Floats, Floats]:
    """Return times, (point,), and received ÷ deserved in the 24 hours before each, (tenant, point).

    Where merged hours are longer than that, they are the window.
    """
    ends = hours.edges[1:]
    kept = np.unique(np.linspace(0, max(len(ends) - 1, 0), min(POINTS, len(ends))).round().astype(int))
    first = np.minimum(np.searchsorted(hours.edges, ends[kept] - WINDOW_S), kept)
    sums = [
        np.concatenate((np.zeros((1, each.shape[1])), np.cumsum(each, axis=0)))
        for each in (hours.held.sum(axis=2), hours.deserved)
    ]
    received, deserved = (total[kept + 1] - total[first] for total in sums)
    least = RELATIVE * sums[1][-1]  # smaller amounts are rounding errors
    ltgf = np.divide(received, deserved, out=np.full_like(received, np.nan), where=deserved > least)
    return ends[kept], ltgf.T


def envy(hours: Hours, quota: Floats, worth: Floats) -> Floats:
    """Return how much more each tenant would have had with another's accelerators, as a part of what it asked for.

        E[u] = max_v (W[u,v] - W[u,u]) / Σ_h asked[h,u]
        W[u,v] = Σ_h min(asked[h,u], Q[u] / Q[v] Σ_j e[u,j] held[h,v,j])

    `worth` e (tenant, type) is an accelerator-second of each type in accelerator-seconds of the fastest type of its
    jobs. Shape (tenant,), at least 0; nan where a tenant asked for nothing or has no quota. v has a quota above 0.
    """
    tenants = len(quota)
    result = np.full(tenants, np.nan)
    total = hours.asked.sum(axis=0)
    for u in np.flatnonzero((quota > 0) & (total > 0)).tolist():
        scale = np.divide(quota[u], quota, out=np.zeros(tenants), where=quota > 0)
        done = np.minimum(hours.asked[:, [u]], dot(hours.held, worth[u]) * scale).sum(axis=0)
        result[u] = max(float(done.max() - done[u]), 0.0) / total[u]
    return result
