"""Gandiva_fair: tenants get each type in proportion to tickets, and trade fast accelerators for slow ones.

    A[u,j]        accelerators of tenant u by tickets, as in `stride`
    v[u,j]        mean of T[m,j] / max_j T[m,j] over its jobs, by scale factor; s[u] = v[u,i] / v[u,k] its speed-up
    repeat for each pair of types i, k:
        buyer b has the largest s, seller a the smallest
        b gives p of type k for 1 of type i,   price = middle   p = √(s[a] s[b])
                                               price = second   p = the largest s of the other buyers, at least s[a]
        up to what a has of i, b has of k, and both can use
    X[m,j]        the jobs of u share A[u,j] by their weights, each at most all of its time

X share of time (job, type), T throughput (job, type). With s[a] ≤ p ≤ s[b] no tenant does less work by a trade than
before it, in units of v, and with s[a] < p < s[b] both do more; the accelerators held of each type stay the same.

Example (examples/two_jobs.json). Speech and vision each have half of the v100 and half of the k80. To speech, which has
texts, a v100 is worth 2 k80s, to vision 4. At p = √8 vision buys √2/8 of a v100 for its half of the k80. Speech then
does 2 · (1/2 - √2/8) + 1 = 2 - √2/4 instead of 3/2, and vision 4 · (1/2 + √2/8) = 2 + √2/2 instead of 5/2; each of
their two jobs half of that.

Reference: S. Chaudhary, R. Ramjee, M. Sivathanu, N. Kwatra and S. Viswanatha, "Balancing Efficiency and Fairness in
Heterogeneous GPU Clusters for Deep Learning", EuroSys 2020, section 3. Trades in fractions of accelerators, and
price=middle, are this project's choice.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Shares
from eunomia.model.arrays import Bools, Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import tickets

Price = Literal["middle", "second"]
_LEAST = 1e-9  # least accelerators of a trade, and least relative difference of speed-ups


@dataclass(frozen=True, slots=True)
class GandivaFair:
    """Shares by tickets, then trades that make no tenant worse off.

    Use it when tenants own parts of a cluster of several types and some gain far more from the fast ones than others.

    The worst-off tenant keeps the share of its tickets: it makes no trade, or trades at a price without loss. Within a
    tenant the worst-off is the job that would have gained most from the sold accelerators.
    """

    price: Price = "middle"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="gandiva_fair",
        answer_type="shares",
        objective="parts by tickets, traded where both sides gain",
        technique="filling by tickets, then trades of types at a price between two speed-ups",
        paper="Chaudhary et al., EuroSys 2020",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant",), heterogeneity="yes", sharing=("temporal",), preemptive=True
        ),
        needs=tickets.NEEDS,
        tenant_settings=frozenset({"weight"}),
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        demand = tickets.TicketDemand(view)
        A = tickets.allocate(demand, view.capacity)
        A = trade(A, demand.worth, demand.on_type, demand.total, price=self.price)
        return Shares(tickets.split_among_jobs(A, view, demand))


def trade(A: Floats, worth: Floats, on_type: Floats, total: Floats, *, price: Price = "middle") -> Floats:
    """Return A (tenant, type) after all trades; tenants hold at most on_type (tenant, type) and total (tenant,)."""
    A = A.copy()
    for i, k in itertools.combinations(range(A.shape[1]), 2):
        both = (worth[:, i] > 0) & (worth[:, k] > 0)
        s = np.divide(worth[:, i], worth[:, k], out=np.ones(len(A)), where=both)
        buyers, sellers = both.copy(), both.copy()
        while True:
            buyers &= A[:, k] > _LEAST
            sellers &= A[:, i] > _LEAST
            if not (buyers.any() and sellers.any()):
                break
            b, a = int(np.argmax(np.where(buyers, s, -np.inf))), int(np.argmin(np.where(sellers, s, np.inf)))
            if s[b] <= s[a] * (1 + _LEAST):
                break
            p = _price(s, buyers, a, b, price)
            limits = _limits(A, on_type, total, a, b, i, k, p)
            q = max(min(limits.values()), 0.0)
            A[a, i], A[b, i] = A[a, i] - q, A[b, i] + q
            A[a, k], A[b, k] = A[a, k] + p * q, A[b, k] - p * q
            tight = min(limits, key=lambda name: limits[name])
            (sellers if tight.startswith("seller") else buyers)[a if tight.startswith("seller") else b] = False
    return np.asarray(np.maximum(A, 0.0))


def _price(s: Floats, buyers: Bools, a: int, b: int, price: Price) -> float:
    """Return the price of one accelerator of the fast type in those of the slow type."""
    if price == "middle":
        return math.sqrt(s[a] * s[b])
    others = np.flatnonzero(buyers & (np.arange(len(s)) != b))
    return float(max(s[others].max(initial=0.0), s[a]))


def _limits(A: Floats, on_type: Floats, total: Floats, a: int, b: int, i: int, k: int, p: float) -> dict[str, float]:
    """Return the limits of the traded accelerators of type i, by reason."""
    room_a, room_b = total[a] - A[a].sum(), total[b] - A[b].sum()
    return {
        "seller has": float(A[a, i]),
        "seller can use": float((on_type[a, k] - A[a, k]) / p),
        "seller holds": float(room_a / (p - 1)) if p > 1 else math.inf,
        "buyer has": float(A[b, k] / p),
        "buyer can use": float(on_type[b, i] - A[b, i]),
        "buyer holds": float(room_b / (1 - p)) if p < 1 else math.inf,
    }
