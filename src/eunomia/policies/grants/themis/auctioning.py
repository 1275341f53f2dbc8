"""From bid tables to gangs: the auction, and what winners forfeit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.policies.grants.themis.bidding import Tables
from eunomia.policies.grants.themis.book import Book
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import QUICK
from eunomia.solvers.auction.partial import Partial, partial_allocation
from eunomia.solvers.auction.rounding import Treatment, whole

_NONE = np.empty(0, dtype=np.int64)


def bids_of(tables: Tables, free: Ints) -> Bids:
    """Return tables as rows over the units that somebody bids for, each worth ln 1/ρ."""
    book = tables.book
    units = np.flatnonzero(np.bincount(book.unit[: book.used[1]], minlength=len(free)))
    column = np.zeros(len(free), dtype=np.int64)
    column[units] = np.arange(len(units))
    take = _taken(tables.gang, tables.count, book, column, len(units))
    return Bids(tables.bidder, take, -elementary.log(tables.rho), free[units])


@kernel()
def _taken(gang: Ints, count: Ints, book: Book, column: Ints, columns: int) -> Ints:
    take = np.zeros((len(gang), columns), dtype=np.int64)
    for row in range(len(gang)):
        for e in range(book.first[gang[row]], book.first[gang[row] + count[row]]):
            take[row, column[book.unit[e]]] += book.amount[e]
    return take


@dataclass(frozen=True, slots=True)
class Won:
    """What bidders are granted: gangs of the book, each for a part of the lease."""

    gang: Ints
    part: Floats  # of the lease, for each gang
    partial: Partial | None  # None: there was nothing to bid for


def auctioned(tables: Tables, free: Ints, treatment: Treatment, least: float, rng: np.random.Generator) -> Won:
    """Hold the auction. Gangs are what cannot be divided: a bidder keeps the part c of those that it won.

    Who would keep them for a part of the lease below `least` keeps none.
    """
    if not tables.count.any():
        return Won(_NONE, np.empty(0), None)
    found = partial_allocation(bids_of(tables, free), QUICK)
    keeps = whole(tables.count[found.row], found.share, treatment, rng)
    if treatment == "lease":
        keeps[found.share < least] = 0
    within = np.arange(keeps.sum()) - np.repeat(np.cumsum(keeps) - keeps, keeps)
    part = found.share if treatment == "lease" else np.ones(len(keeps))
    return Won(np.repeat(tables.gang[found.row], keeps) + within, np.repeat(part, keeps), found)
