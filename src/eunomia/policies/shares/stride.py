"""Stride scheduling: time in proportion to tickets, tenants first, then the jobs of each.

    A[u,j]   accelerators of tenant u: of every type in proportion to tickets S[u], at most what its jobs can hold, the
             fastest types first; what is left over is divided again
    X[m,j]   the jobs of u share A[u,j] by their weights, each at most all of its time

X share of time (job, type), S[u] the product of tenant u's parts by weight down the tree of those that have jobs. A
job's pass is the time that it received over its share; the job with the least pass is next. Leases compute that for
every answer of shares, so the policy only returns the shares.

Example (examples/two_jobs.json). Each of two tenants of one ticket is entitled to half of the v100 and one k80, more
than one job can hold. It gets half of the v100 and half of a k80: text does (2 + 1) / 2 = 3/2, image (4 + 1) / 2 = 5/2.

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
    """Time in proportion to tickets, in every interval and not only on average.

    Use it when tenants hold agreed parts of the cluster and should get them hour by hour, whatever their jobs are.

    The worst-off is a job of a tenant with many jobs, which share its tickets. No tenant gets more of a fast type
    because it gains more from it.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="stride",
        answer_type="shares",
        objective="time in proportion to tickets",
        technique="filling by tickets; the mechanism keeps the passes",
        paper="Waldspurger and Weihl, MIT/LCS/TM-528, 1995",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "job"), heterogeneity="partial", sharing=("temporal",),
            preemptive=True,
        ),
        needs=tickets.NEEDS,
        tenant_settings=frozenset({"weight"}),
        mechanism=ROUNDS,
    )  # fmt: skip

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        demand = tickets.TicketDemand(view)
        return Shares(tickets.split_among_jobs(tickets.allocate(demand, view.capacity), view, demand))
