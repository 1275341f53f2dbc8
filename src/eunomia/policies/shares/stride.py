"""Stride scheduling: time in proportion to tickets, tenants first, then the jobs of each.

    A[u,j]   accelerators of tenant u: of every type in proportion to tickets S[u]; nobody more than its jobs can hold,
             and of what it could have it keeps the fastest; what is left over goes round again
    X[m,j]   the jobs of u share A[u,j] by their weights, each at most all of its time

X share of time (job, type), S[u] the product of tenant u's parts by weight down the tree of those that have jobs. A
job's pass is the time that it received over its share; who lags behind most is next. That is the share owed against the
share received, by which leases turn every answer of shares into an order, so the policy says the shares and no more.

Example (examples/two_jobs.json). Two tenants of one ticket could each have half of the v100 and one k80, more than one
job can hold. They keep half of the v100 and half of a k80: text does (2 + 1) / 2 = 3/2, image (4 + 1) / 2 = 5/2.

Reference: C. A. Waldspurger and W. E. Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource Management",
MIT/LCS/TM-528, 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.model.answers import Shares
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import tickets


@dataclass(frozen=True, slots=True)
class Stride:
    """Everybody's time is as its tickets, in every stretch of time and not only on average.

    Use it when tenants hold agreed parts of the cluster and should see them hour by hour, whatever their jobs are.

    The worst-off is a job of a tenant with many jobs: its tickets are shared by them all. Nobody gets more of a fast
    type because it makes more of it.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="stride",
        door="shares",
        objective="time in proportion to tickets",
        technique="filling by tickets; the mechanism keeps the passes",
        paper="Waldspurger and Weihl, MIT/LCS/TM-528, 1995",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "job"), heterogeneity="partial", sharing=("temporal",),
            preemptive=True,
        ),
        needs=tickets.NEEDS,
        mechanism=ROUNDS,
    )  # fmt: skip

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        wants = tickets.TicketDemand(view)
        return Shares(tickets.spread(tickets.entitled(wants, view.capacity), view, wants))
