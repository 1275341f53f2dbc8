"""The result of an auction for each bidder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eunomia.allocation.auctions.problem import AuctionProblem
from eunomia.model import elementary
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.auction.partial import Partial, cut, whole


@dataclass(frozen=True, kw_only=True, eq=False)
class AuctionResult:
    """One auction. Bidder rows and class columns are those of the problem."""

    policy: str
    problem: AuctionProblem
    partial: Partial
    seconds: float
    compile_seconds: float = 0.0  # before that, to compile or load its code

    @property
    def status(self) -> str:
        """optimal: the proportionally fair allocation and every c are proven; feasible: they are not."""
        return "optimal" if self.partial.proven else "feasible"

    @property
    def pf(self) -> Ints:
        """(bidder, class) the proportionally fair allocation."""
        return self.partial.take

    @property
    def c(self) -> Floats:
        """(bidder,) the part of it that each keeps."""
        return self.partial.share

    @cached_property
    def grants(self) -> Floats:
        """(bidder, class) what each is granted: c·pf, or whole accelerators as `indivisible` says."""
        mode = self.problem.indivisible
        if mode == "none":
            return self.c[:, None] * self.pf
        return cut(self.pf, whole(self.pf.sum(axis=1), self.c, mode, self.problem.rng())).astype(float)

    @property
    def leftover(self) -> Floats:
        """(class,) accelerators that no bidder is granted."""
        return np.asarray(self.problem.bids.capacity - self.grants.sum(axis=0))

    @property
    def leases_s(self) -> Floats:
        """(bidder,) how long grants last."""
        lease = self.problem.lease_s
        return self.c * lease if self.problem.indivisible == "lease" else np.full(len(self.c), lease)

    @property
    def gap(self) -> float:
        """Relative bound on how much larger any product of values, with or without a bidder, may be."""
        unproven = max(
            self.partial.bound - self.partial.objective, float(elementary.log(self.c / self.partial.least).max())
        )
        return elementary.expm1(unproven) if unproven > 1e-12 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return what `eunomia solve --json` prints. Unknown values are None, never nan."""
        problem, whole_numbers = self.problem, self.problem.indivisible != "none"
        grants, leftover = (x.astype(np.int64) if whole_numbers else x for x in (self.grants, self.leftover))
        return {
            "status": self.status,
            "policy": self.policy,
            "objective": self.partial.objective,
            "bound": self.partial.bound,
            "gap": self.gap,
            "product": _number(self.partial.objective),
            "bidders": list(problem.bidders),
            "classes": list(problem.classes),
            "pf": self._by_class(self.pf),
            "c": self.c.tolist(),
            "payments": (1 - self.c).tolist(),
            "grants": self._by_class(grants),
            "leftover": leftover.tolist()[0] if problem.plain else leftover.tolist(),
            "indivisible": problem.indivisible,
            "leases_s": self.leases_s.tolist(),
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
        }

    def _by_class(self, counts: Array) -> list[Any]:
        columns: list[Any] = (counts[:, 0] if self.problem.plain else counts).tolist()
        return columns


def _number(logarithm: float) -> float | None:
    return elementary.exp(logarithm) if abs(logarithm) < 700 else None
