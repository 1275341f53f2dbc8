"""Lottery scheduling: who is next is drawn by tickets, anew in every round.

    tickets[m] = S[u] w[m] / Σ w of the jobs of u;    draw jobs one after another without putting them back, each with
    the chance  tickets[m] / Σ tickets of those that are left

m job of tenant u, w weight (job,), S[u] the product of u's parts by weight down the tree of tenants that have jobs. A
gang that does not fit is passed over. All is drawn at once: order by E / tickets[m], E exponential draws of the seed.

Example (examples/two_jobs.json). Both jobs hold half of the tickets. This seed draws text first: it takes the v100 and
image a k80. Another seed may draw image first.

References: C. A. Waldspurger and W. E. Weihl, "Lottery Scheduling: Flexible Proportional-Share Resource Management",
OSDI 1994; the draw at once: P. S. Efraimidis and P. G. Spirakis, "Weighted random sampling with a reservoir",
Information Processing Letters 97, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.rounding import drawn, rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.type_choice import NEEDS, by_fastest
from eunomia.policies.shares.tickets import tickets_of


@dataclass(frozen=True, slots=True)
class Lottery:
    """Chances as tickets; no history, and so nobody can be starved or save up.

    Use it when parts should be kept on average, jobs come and go all the time, and nothing may have to be remembered.

    The worst-off is whoever is unlucky for a while, and the wide gang, for which a draw does not keep seats.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="lottery",
        door="order",
        objective="chances in proportion to tickets",
        technique="weighted random order, drawn anew in every round",
        paper="Waldspurger and Weihl, OSDI 1994",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "job", "long-term"), heterogeneity="partial",
            sharing=("temporal",), preemptive=True,
        ),
        needs=NEEDS | {"weight", "tenant", "tenants"},
        mechanism=ROUNDS,
    )  # fmt: skip

    def decide(self, view: View) -> Order:
        """Return all jobs in the order in which they are drawn."""
        when = drawn(view.rng().exponential(size=view.jobs))
        return Order(by_fastest(view, rising(when / tickets_by_job(view))))


def tickets_by_job(view: View) -> Floats:
    """Return each job's part of all tickets, (job,)."""
    together = np.bincount(view.tenant, view.weight, minlength=len(view.tenants.names))
    return np.asarray(tickets_of(view.tenants, view.tenant)[view.tenant] * view.weight / together[view.tenant])
