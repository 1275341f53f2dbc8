"""Quotas: each tenant's jobs are served within its quota first; idle quota is lent and reclaimed.

    within    jobs of a tenant u, in the order of the inner policy, while their z add up to no more than Q[u]
    borrowed  all others of tenants that may borrow
    order     within, by the inner policy; running borrowed jobs, the first to preempt last; waiting borrowed jobs

so that a tenant that needs its quota gets it from borrowed jobs. `reclaim` chooses the borrowed job that is preempted
first: newest, the last started, or youngest, the last submitted. z scale factor (job,), Q quota in accelerators
(tenant,), of the tenants at the top of the tree; without a declared quota it is a part of the cluster by weight. With
an inner policy without preemption, running jobs precede waiting ones and stay on their type.

Example (examples/two_jobs.json). Each of the two tenants has a quota of 1 of 3 accelerators, its part rounded down, so
both jobs are within their quotas, and in the order of the inner policy: text gets the v100, image a k80.

Reference: folklore; V. K. Vavilapalli et al., "Apache Hadoop YARN", SoCC 2013 (its capacity scheduler).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.kernels import kernel
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.policies.order.decayed_usage import top_of
from eunomia.policies.wrappers.inner import ask, inherit, inner_policy

_WHY = Reason("tenant_quota")


@dataclass(frozen=True)
class Quotas:
    """A tenant's quota is available whenever it needs it; an inner policy orders jobs within and beyond quotas.

    `inner` is any policy that answers with an order. With `borrowing=false` no tenant gets more than its quota. A gang
    wider than that is refused where the quota is declared; a quota by weight changes with the tenants, so there the
    gang runs when its tenant runs nothing else.

    Use it when tenants own parts of a cluster, idle accelerators should be used, and you know the order you want within
    a tenant.

    The worst-off is a job that borrows: it is preempted whenever an owner needs its quota, and starts again from its
    last checkpoint when accelerators are idle.
    """

    inner: str = "fifo?backfill=skip"
    borrowing: bool = True
    reclaim: Literal["newest", "youngest"] = "newest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="quotas",
        answer_type="order",
        objective="a tenant's own quota at any time, idle quota for whoever wants it",
        technique="static quotas with borrowing around another policy",
        paper="folklore; Vavilapalli et al., YARN, SoCC 2013",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "instant"), heterogeneity="partial", preemptive=True
        ),
        needs=frozenset({"scale_factor", "capacity", "on_type", "tenant", "tenants", "started"}),
        tenant_settings=frozenset({"may_borrow", "quota", "weight"}),
        mechanism=RECALLABLE,
        reads_nested_quotas=False,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        inherit(self, inner_policy(self.inner, "order"))
        if math.isinf(self.info.mechanism.length_s):
            object.__setattr__(self, "info", replace(self.info, mechanism=RECALLABLE))

    def decide(self, view: View) -> Order:
        """Return the inner policy's rows, those of jobs within their quotas first."""
        inner = inner_policy(self.inner, "order")
        answer, top = ask(inner, view, Order), top_of(view.tenants)[view.tenant]
        runs, quota = view.on_type >= 0, view.tenants.quota(float(view.capacity.sum()))
        terms = inner.info.mechanism
        stays = runs if math.isinf(terms.length_s) and not terms.recall else np.zeros_like(runs)
        first = np.unique(answer.rows.job, return_index=True)[1]
        line = answer.rows.job[np.sort(first)]
        borrows, declared = (view.tenants.borrows & self.borrowing)[top], ~np.isnan(view.tenants.said_quota)[top]
        in_line = line[np.argsort(~stays[line], kind="stable")]
        within = _fill_quotas(in_line, top, view.scale_factor, quota, ~borrows & ~declared)
        refused = ~borrows & declared & (view.scale_factor > quota[top]) & ~runs
        order = self._order(view, line[within[line] | borrows[line]], within, runs)
        waits = np.flatnonzero(~within & ~borrows & ~runs & ~refused)
        return replace(
            answer,
            rows=select_rows(answer.rows, order, view.on_type, stays),
            why=WaitReasons.at(view.jobs, answer.why, WaitReasons.of(view.jobs, waits, _WHY)) or {},
            refuse={**answer.refuse, **{m: _refusal(quota[top[m]]) for m in np.flatnonzero(refused).tolist()}},
        )

    def _order(self, view: View, line: Ints, within: Bools, runs: Bools) -> Ints:
        """Return the jobs of the line: within quotas, running borrowed jobs, waiting borrowed jobs."""
        borrowed = line[~within[line] & runs[line]]
        since = view.started if self.reclaim == "newest" else np.arange(view.jobs)  # rows are in order of submission
        oldest_first = borrowed[np.argsort(since[borrowed], kind="stable")]
        return np.concatenate((line[within[line]], oldest_first, line[~within[line] & ~runs[line]]))


@kernel()
def _fill_quotas(line: Ints, top: Ints, size: Ints, quota: Floats, alone: Bools) -> Bools:
    """Return whether each job is within its tenant's quota, (job,), in order of `line`; misfits are skipped.

    A job that may exceed the quota `alone` (job,) is within it if its tenant has no earlier job in it.
    """
    within, left = np.zeros(len(top), dtype=np.bool_), quota.copy()
    for m in line:
        if size[m] <= left[top[m]] or (alone[m] and left[top[m]] == quota[top[m]]):
            left[top[m]] = left[top[m]] - size[m] if size[m] <= left[top[m]] else -1.0
            within[m] = True
    return within


def select_rows(rows: Rows, order: Ints, on_type: Ints, stays: Bools) -> Rows:
    """Return the rows of the jobs `order` in that order; a job that stays only has the row of its present type."""
    place = np.full(len(on_type), -1)
    place[order] = np.arange(len(order))
    selected = np.flatnonzero((place[rows.job] >= 0) & (~stays[rows.job] | (rows.type == on_type[rows.job])))
    chosen = selected[np.argsort(place[rows.job[selected]], kind="stable")]
    optional = {name: getattr(rows, name) for name in ("partner", "shape", "within")}
    return Rows(
        rows.job[chosen],
        rows.type[chosen],
        **{name: None if column is None else column[chosen] for name, column in optional.items()},
    )


def _refusal(quota: float) -> str:
    return f"its tenant's quota of {quota:g} is too small for it, and it may not borrow; raise it, or ask for fewer"
