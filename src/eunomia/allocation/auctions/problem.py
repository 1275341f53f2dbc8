"""The input of one auction: the offered accelerators and the bids."""

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
LEAST_S, MOST_S = 10.0, 365 * 86400.0  # of a plausible lease


class AuctionPolicy(Protocol):
    """A policy that runs auctions."""

    def auction(self, bids: Bids) -> Partial:
        """Return what each bidder wins, and the part of it that it keeps."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuctionProblem:
    """A validated auction. The worth of a row is the logarithm of its value; rows that take more are worth no less."""

    classes: tuple[str, ...]
    bidders: tuple[str, ...]
    bids: Bids
    plain: bool = False  # one class, given as a number: results are numbers too
    indivisible: Indivisible = "none"
    seed: int = 0
    lease_s: float = LEASE_S

    def rng(self) -> np.random.Generator:
        """Return the generator of this auction's random draws, seeded by the problem."""
        return np.random.default_rng(self.seed)
