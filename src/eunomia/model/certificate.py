"""Optimality certificate of an answer: objective, bound on every feasible answer, and prices of the types."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints

BOUGHT, OWN_TIME, UNBOUND, NO_SHARE = 0, 1, 2, 3
BINDINGS = (
    "its share is bought at the prices: every accelerator that it uses is scarce",
    "its own time binds: it runs all the time on the fastest type it can use",
    "nothing binds: what it needs costs the others nothing",
    "it has no share: no type can run it, or none is left for it",
)
IN_TREE = "lexicographic in the tree of tenants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Objective and bound are in the policy's unit; no feasible answer is better than `bound`.

    Where tenants come before jobs (`point` is IN_TREE) both are the lowest level of the lexicographic optimum: another
    answer may raise it only by lowering a tenant below its entitlement.
    """

    objective: float
    bound: float
    price: Floats | None = None  # (type,) worth of one accelerator for all time; the priced cluster is worth 1
    binding: Ints | None = None  # (job,) which of BINDINGS sets its share
    point: str = ""  # which of the optima this is
    scale: float = 0.0  # size of the terms of which the objective is the sum, for an objective near 0
    tolerance: float = 1e-9  # largest gap at which the solver stops

    @property
    def gap(self) -> float:
        """Return |bound - objective|, relative to the larger of the two or to `scale`."""
        size = max(abs(self.bound), abs(self.objective), self.scale)
        return abs(self.bound - self.objective) / size if size > 0 else 0.0

    def exchange_rates(self, types: tuple[str, ...]) -> str:
        """Describe the prices of the types in units of the cheapest scarce type."""
        scarce = [] if self.price is None else [j for j in range(len(types)) if self.price[j] > 0]
        if self.price is None or not scarce:
            return "no type is scarce"
        price = self.price
        unit = min(scarce, key=lambda j: price[j])
        parts = [f"one {types[j]} is worth {price[j] / price[unit]:.3g} {types[unit]}" for j in scarce if j != unit]
        parts = parts or [f"only {types[unit]} is scarce"]
        free = [types[j] for j in range(len(types)) if j not in scarce]
        if free and len(scarce) > 1:
            parts.append(f"{', '.join(free)} {'is' if len(free) == 1 else 'are'} not scarce")
        return "; ".join(parts)

    def explain_share(self, job: int, types: tuple[str, ...]) -> str:
        """Describe the constraint that sets this job's share."""
        reason = BINDINGS[int(self.binding[job])] if self.binding is not None else "its share is part of the optimum"
        return f"{reason} ({self.exchange_rates(types)})"


def find_bindings(price: Floats, used: Bools, full: Bools) -> Ints:
    """Return which of BINDINGS sets each share, (job,): price (type,), used (job, type), full = all its time (job,)."""
    pays = (used & (price > 0)).any(axis=1)
    return np.where(used.any(axis=1), np.where(pays, BOUGHT, np.where(full, OWN_TIME, UNBOUND)), NO_SHARE)
