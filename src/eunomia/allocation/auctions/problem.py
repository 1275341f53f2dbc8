"""One auction: what is offered, and what every bidder would give for parts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.partial import Partial

Indivisible = Literal["none", "floor", "randomized", "lease"]
INDIVISIBLE: tuple[Indivisible, ...] = get_args(Indivisible)
FIELDS = (
    "capacity", "classes", "bids", "values", "bidders", "bidder", "take", "rho", "value", "indivisible", "seed",
    "lease_s",
)  # fmt: skip
TABLES = ("bids", "values", "bidder", "take")  # a problem with one of these is an auction
LEASE_S = 1200.0
LEAST_S, MOST_S = 10.0, 365 * 86400.0  # leases that somebody may mean


class AuctionPolicy(Protocol):
    """A policy that holds auctions."""

    def auction(self, bids: Bids) -> Partial:
        """Return who wins what, and which part of it they keep."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuctionProblem:
    """An auction, checked: rows have a worth, the logarithm of a value, that does not fall when they take more."""

    classes: tuple[str, ...]
    bidders: tuple[str, ...]
    bids: Bids
    plain: bool = False  # one class, said as a number: answers are numbers too
    indivisible: Indivisible = "none"
    seed: int = 0
    lease_s: float = LEASE_S

    def rng(self) -> np.random.Generator:
        """Return the draws of this auction: the same problem draws the same."""
        return np.random.default_rng(self.seed)
