"""Lottery scheduling: the order is drawn by tickets, anew in every round.

    tickets[m] = S[u] w[m] / Σ w of the jobs of u;    draw jobs without replacement, each with the
    probability  tickets[m] / Σ tickets of the jobs not drawn yet

m job of tenant u, w weight (job,), S[u] the product of u's parts by weight down the tree of tenants that have jobs. A
gang that does not fit is passed over. The whole order is drawn at once: by E / tickets[m], E exponential draws.

Example (examples/two_jobs.json). Both jobs hold half of the tickets. This seed draws text first: it gets the v100 and
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
    """Probabilities in proportion to tickets; without history no job starves or accumulates credit.

    Use it when shares should hold on average, jobs change all the time, and the scheduler should keep no history.

    The worst-off is a job with bad luck for a while, and the wide gang, for which a draw reserves no seats.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="lottery",
        answer_type="order",
        objective="chances in proportion to tickets",
        technique="weighted random order, drawn anew in every round",
        paper="Waldspurger and Weihl, OSDI 1994",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "job", "long-term"), heterogeneity="partial",
            sharing=("temporal",), preemptive=True,
        ),
        needs=NEEDS | {"weight", "tenant", "tenants"},
        tenant_settings=frozenset({"weight"}),
        mechanism=ROUNDS,
    )  # fmt: skip

    def decide(self, view: View) -> Order:
        """Return all jobs in the order in which they are drawn."""
        draws = drawn(view.rng().exponential(size=view.jobs))
        return Order(by_fastest(view, rising(draws / tickets_by_job(view))))


def tickets_by_job(view: View) -> Floats:
    """Return each job's fraction of all tickets, (job,)."""
    together = np.bincount(view.tenant, view.weight, minlength=len(view.tenants.names))
    return np.asarray(tickets_of(view.tenants, view.tenant)[view.tenant] * view.weight / together[view.tenant])
