"""Quotas: each tenant's jobs are served within what is its own first; what is idle is lent, and taken back.

    within    jobs of a tenant u, in the order of the inner policy, while their z add up to no more than Q[u]
    borrowed  all others of tenants that may borrow
    order     within, as the inner policy has them; borrowed that run, who is to go first last; borrowed that wait

so that an owner who wants its quota gets it from who borrows. `reclaim` says who of them is stopped first: newest, who
sat down last, or youngest, who was submitted last. z scale factor (job,), Q quota in accelerators (tenant,), of the
tenants at the top of the tree; where none is said it is a part of the cluster by weight. Around an inner policy that
stops nobody, jobs that run count before those that wait and stay on their type.

Example (examples/two_jobs.json). Each of the two tenants owns 1 of 3 accelerators, its part rounded down, so both jobs
are within their quotas, and in the order of the inner policy: text takes the v100, image a k80.

Reference: folklore; V. K. Vavilapalli et al., "Apache Hadoop YARN", SoCC 2013 (its capacity scheduler).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.decayed_usage import top_of
from eunomia.policies.wrappers.inner import order_of, order_policy, takes_over

_WHY = "its tenant's quota is used up, and it may not borrow"


@dataclass(frozen=True)
class Quotas:
    """What is a tenant's own is there when it wants it; inside, and among who borrows, another policy decides.

    `inner` is any policy that answers with an order. With `borrowing=false` nobody gets more than its quota. A gang
    wider than that is refused where the scenario says the quota; a part by weight changes as tenants come, so there it
    runs when its tenant has nothing else.

    Use it when tenants own parts of a cluster, what is idle should be used, and you know what order you want inside.

    The worst-off is a job that borrows: it is stopped whenever an owner comes back, and starts again from its last
    checkpoint when something is idle.
    """

    inner: str = "fifo?backfill=skip"
    borrowing: bool = True
    reclaim: Literal["newest", "youngest"] = "newest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="quotas",
        door="order",
        objective="a tenant's own quota at any time, idle quota for whoever wants it",
        technique="static quotas with borrowing around another policy",
        paper="folklore; Vavilapalli et al., YARN, SoCC 2013",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "instant"), heterogeneity="partial", preemptive=True
        ),
        needs=frozenset({"scale_factor", "capacity", "on_type", "tenant", "tenants", "started"}),
        mechanism=RECALLABLE,
        reads_nested_quotas=False,
    )

    def __post_init__(self) -> None:
        if self.reclaim not in ("newest", "youngest"):
            raise ValueError(f"reclaim is {self.reclaim!r}; it is 'newest' or 'youngest'")
        takes_over(self, order_policy(self.inner))
        if math.isinf(self.info.mechanism.length_s):
            object.__setattr__(self, "info", replace(self.info, mechanism=RECALLABLE))

    def decide(self, view: View) -> Order:
        """Return the inner policy's rows, those of jobs within their quotas first."""
        inner = order_policy(self.inner)
        answer, top = order_of(inner, view), top_of(view.tenants)[view.tenant]
        runs, quota = view.on_type >= 0, view.tenants.quota(float(view.capacity.sum()))
        terms = inner.info.mechanism
        stays = runs if math.isinf(terms.length_s) and not terms.recall else np.zeros_like(runs)
        first = np.unique(answer.rows.job, return_index=True)[1]
        line = answer.rows.job[np.sort(first)]
        lends, said = (view.tenants.borrows & self.borrowing)[top], ~np.isnan(view.tenants.said_quota)[top]
        in_line = line[np.argsort(~stays[line], kind="stable")]
        within = _within(in_line, top, view.scale_factor, quota, ~lends & ~said)
        never = ~lends & said & (view.scale_factor > quota[top]) & ~runs
        order = self._order(view, line[within[line] | lends[line]], within, runs)
        waits = np.flatnonzero(~within & ~lends & ~runs & ~never)
        return replace(
            answer,
            rows=_picked(answer.rows, order, view.on_type, stays),
            why={**answer.why, **dict.fromkeys(waits.tolist(), _WHY)},
            refuse={**answer.refuse, **{m: _refusal(quota[top[m]]) for m in np.flatnonzero(never).tolist()}},
        )

    def _order(self, view: View, line: Ints, within: Bools, runs: Bools) -> Ints:
        """Return the jobs of the line: within, borrowed that run, borrowed that wait."""
        borrows = line[~within[line] & runs[line]]
        since = view.started if self.reclaim == "newest" else np.arange(view.jobs)  # rows stand by submission
        kept = borrows[np.argsort(since[borrows], kind="stable")]
        return np.concatenate((line[within[line]], kept, line[~within[line] & ~runs[line]]))


@kernel()
def _within(line: Ints, top: Ints, size: Ints, quota: Floats, alone: Bools) -> Bools:
    """Return whom the quotas hold, (job,): each tenant's jobs in line, who does not fit any more is passed over.

    Who may be `alone` (job,) is held too where its tenant has nothing before it.
    """
    within, left = np.zeros(len(top), dtype=np.bool_), quota.copy()
    for m in line:
        if size[m] <= left[top[m]] or (alone[m] and left[top[m]] == quota[top[m]]):
            left[top[m]] = left[top[m]] - size[m] if size[m] <= left[top[m]] else -1.0
            within[m] = True
    return within


def _picked(rows: Rows, order: Ints, on_type: Ints, stays: Bools) -> Rows:
    """Return the rows of these jobs in this order; who stays is named where it is only."""
    place = np.full(len(on_type), -1)
    place[order] = np.arange(len(order))
    named = np.flatnonzero((place[rows.job] >= 0) & (~stays[rows.job] | (rows.type == on_type[rows.job])))
    chosen = named[np.argsort(place[rows.job[named]], kind="stable")]
    some = {name: getattr(rows, name) for name in ("partner", "shape", "within")}
    return Rows(
        rows.job[chosen],
        rows.type[chosen],
        **{name: None if column is None else column[chosen] for name, column in some.items()},
    )


def _refusal(quota: float) -> str:
    return f"its tenant's quota of {quota:g} is too small for it, and it may not borrow; raise it, or ask for fewer"
