"""Dominant resource fairness: the tenant with the smallest dominant share is served next.

    s[u] = max_r  used[u,r] / (C[r] S[u])        dominant share of tenant u
    repeat:  u = the tenant with the smallest s among those with waiting jobs
             its earliest job gets the fastest type on which its gang fits: used[u] ← used[u] + its demand
             a gang that fits nowhere is passed over; strict: the filling ends

Resources r are the accelerators of each type, of which gang m uses z[m] on one, and the CPUs and GiB of memory of all
machines, where every machine declares them: used (tenant, resource), C totals (resource,), z scale factor (job,). S[u]
is the product of the parts by weight of u and of all tenants above it among their siblings. Running jobs count in
`used` and are not stopped; with `preempt` all jobs are served anew, a tenant's running ones first. CPUs and memory are
limited by their totals, not per machine.

Example (examples/two_jobs.json). No accelerator is used, and speech precedes vision: text gets the v100, which is all
of that type, so s is 1 / 0.5 = 2. Vision is next with 0, and image gets a k80.

Reference: A. Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI 2011,
sections 4.1 and 4.3 (weights).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import ENDLESS, RECALLABLE, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.policies.order.decayed_usage import whole_shares
from eunomia.policies.order.type_choice import NEEDS, by_fastest, runnable
from eunomia.solvers.drf import Tasks, filling


@dataclass(frozen=True)
class Drf:
    """Tenants get equal dominant shares; the jobs of a tenant are served by submission.

    Use it when tenants need different types, or some many CPUs and some much memory, and each should get a part of its
    dominant resource, without prices.

    The worst-off is a late tenant on a full cluster: running jobs are not stopped for it, unless `preempt`. With
    `strict` all jobs wait behind the first wide gang that does not fit; without it that gang waits.
    """

    strict: bool = False
    preempt: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="drf",
        answer_type="order",
        objective="equal dominant shares of tenants",
        technique="progressive filling",
        paper="Ghodsi et al., NSDI 2011",
        taxonomy=Taxonomy(objectives=("fairness",), fairness=("tenant", "instant"), heterogeneity="partial"),
        needs=NEEDS | {"tenant", "tenants", "demand", "host_capacity"},
        tenant_settings=frozenset({"weight"}),
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        if self.preempt:
            object.__setattr__(self, "info", replace(self.info, mechanism=RECALLABLE))

    def decide(self, view: View) -> Order:
        """Return the jobs that keep running, then the served jobs in the order of the filling; no other job may run."""
        runs = view.on_type >= 0
        kept = np.flatnonzero(runs & (not self.preempt))
        line = np.argsort(~runs, kind="stable") if self.preempt else np.flatnonzero(~runs)
        infeasible = np.asarray((view.demand > view.host_capacity).any(axis=1))
        fits: Bools = runnable(view).any(axis=1) & ~infeasible
        served = self._fill(view, line[fits[line]], kept)
        why = WaitReasons.of(view.jobs, infeasible & ~runs, Reason("host_capacity"))
        return Order(by_fastest(view, np.concatenate((kept, served))), why=why)

    def _fill(self, view: View, line: Ints, kept: Ints) -> Ints:
        """Return the served jobs of the line in the order of service; `kept` jobs hold their seats."""
        tenants, on = len(view.tenants.names), np.eye(len(view.types))
        used = np.zeros((tenants, len(view.types) + 2))
        held = view.scale_factor[kept, None] * on[view.on_type[kept]]
        np.add.at(used, view.tenant[kept], np.hstack((held, view.demand[kept])))
        line = line[np.argsort(view.tenant[line], kind="stable")]
        tried, choice = filling(
            Tasks(
                first=np.searchsorted(view.tenant[line], np.arange(tenants + 1)),
                wanted=_demands(view, line),
                choices=(view.throughput[line] > 0).sum(axis=1),
            ),
            total=np.concatenate((view.capacity, view.host_capacity)),
            used=used,
            weight=whole_shares(view.tenants.weight, view.tenants.parent),
            strict=self.strict,
        )
        return line[tried[choice >= 0]]


def _demands(view: View, line: Ints) -> Floats:
    """Return the demand of each gang of the line on each type, fastest first, (gang, type, resource)."""
    fastest = np.argsort(-view.throughput[line], axis=1, kind="stable")
    on = view.scale_factor[line, None, None] * np.eye(len(view.types))[fastest]
    beside = np.broadcast_to(view.demand[line, None, :], (*fastest.shape, view.demand.shape[1]))
    return np.concatenate((on, beside), axis=2)
