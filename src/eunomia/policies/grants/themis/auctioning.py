"""From bid tables to seats: the auction, what winners forfeit, and what is left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.policies.grants.themis.bidding import Bid, Gang, placements
from eunomia.policies.grants.themis.seen import Seen
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import QUICK
from eunomia.solvers.auction.partial import Partial, partial_allocation
from eunomia.solvers.auction.rounding import Treatment, whole


def bids_of(tables: list[list[Bid]], free: Ints) -> Bids:
    """Return tables as rows over the nodes that somebody bids for, each worth ln 1/ρ."""
    nodes = np.unique(np.concatenate([gang.nodes for table in tables for bid in table for gang in bid.gangs]))
    rows = [bid for table in tables for bid in table]
    take = np.zeros((len(rows), len(nodes)), dtype=np.int64)
    for row, bid in enumerate(rows):
        for gang in bid.gangs:
            take[row, np.searchsorted(nodes, gang.nodes)] += gang.count
    bidder = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    return Bids(bidder, take, -np.log([bid.rho for bid in rows]), free[nodes])


@dataclass(frozen=True, slots=True)
class Won:
    """What bidders are granted: gangs, each for a part of the lease."""

    gangs: list[Gang]
    part: list[float]  # of the lease, for each gang
    partial: Partial | None  # None: there was nothing to bid for


def auctioned(tables: list[list[Bid]], free: Ints, treatment: Treatment, least: float, rng: np.random.Generator) -> Won:
    """Hold the auction. Gangs are what cannot be divided: a bidder keeps the part c of those that it won.

    Who would keep them for a part of the lease below `least` keeps none.
    """
    if not any(bid.gangs for table in tables for bid in table):
        return Won([], [], None)
    bids = bids_of(tables, free)
    found = partial_allocation(bids, QUICK)
    won = [table[row] for table, row in zip(tables, (found.row - bids.begin()[:-1]).tolist(), strict=True)]
    keeps = whole(np.array([len(bid.gangs) for bid in won]), found.share, treatment, rng)
    if treatment == "lease":
        keeps[found.share < least] = 0
    gangs = [gang for bid, n in zip(won, keeps.tolist(), strict=True) for gang in bid.gangs[:n]]
    parts: Floats = np.repeat(found.share if treatment == "lease" else np.ones(len(won)), keeps)
    return Won(gangs, parts.tolist(), found)


@dataclass(slots=True)
class Seats:
    """Devices as they are given away, gang by gang."""

    seen: Seen
    free: Bools  # (device,)
    given: list[tuple[Gang, Ints, float]] = field(default_factory=list)  # gang, devices, part of the lease

    def give(self, gang: Gang, part: float = 1.0) -> None:
        """Give a gang its seats: those that it has, or the first free ones on its nodes. It wants no more."""
        devices = np.flatnonzero(self.seen.view.holder == gang.job)
        if not (gang.own and self.free[devices].all()):
            first, size = self.seen.view.topology.first, self.seen.view.topology.size
            spans = [first[n] + np.flatnonzero(self.free[first[n] : first[n] + size[n]]) for n in gang.nodes]
            devices = np.concatenate([span[:k] for span, k in zip(spans, gang.count.tolist(), strict=True)])
        self.free[devices] = False
        self.seen.wants[gang.job] = False
        self.given.append((gang, devices, part))

    def by_node(self, without: Bools | None = None) -> Ints:
        """Return how many are free on each node, (node,), those of `without` (device,) not counted."""
        free = self.free if without is None else self.free & ~without
        return np.bincount(self.seen.view.topology.node[free], minlength=self.seen.view.topology.nodes)

    def serve(self, line: list[int]) -> None:
        """Give what is left to jobs in line, each where it is done soonest, first where nobody behind it sits."""
        holder, size = self.seen.view.holder, self.seen.view.scale_factor
        leaves = np.zeros(self.seen.view.jobs, dtype=bool)  # sits on seats whose lease has ended, and stands behind
        leaves[line] = self.seen.ended[line]
        types = np.isfinite(self.seen.time)
        left, stuck = int(self.free.sum()), set[tuple[int, bytes]]()  # kinds of gangs that found no place just now
        for m in line:
            leaves[m] = False
            own = bool(self.seen.ended[m] and self.free[holder == m].all())
            kind = int(size[m]), types[m].tobytes()
            if left == 0:
                return
            if kind[0] > left or (kind in stuck and not own):
                continue
            sitting = (holder >= 0) & leaves[holder]
            for free in (self.by_node(sitting), self.by_node()):
                found = placements(self.seen, m, free, 0, 1, own=own)
                if found:
                    self.give(found[0])
                    left, stuck = left - kind[0], set()
                    break
            else:
                stuck.add(kind)
