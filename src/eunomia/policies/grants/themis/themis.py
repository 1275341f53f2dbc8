"""Finish-time fairness by auctions among the apps that are worst off.

    whenever accelerators are free:   F = the ⌈(1 − f)·n⌉ apps with the largest ρ, of the n that want some
    bid table              each app of F bids  V_i(G) = 1 / ρ_i(G)  for at most 64 sets of accelerators G
    partial allocation     pf = argmax Π_i V_i(G_i)
    hidden payment         i keeps the part c_i = Π_{j≠i} V_j(pf_j) / max Π_{j≠i} V_j(G_j) of pf_i
    leftover               to apps outside F, then to those of F, both drawn by seed

ρ = T_sh / T_id: when the app will finish, counted from its submission, over how long it would take on a private part
1/N of the cluster, N the average number of apps during its life; paused jobs count with all that they have left. With
`ideal=share` T_id is max(longest job, work / min(demand, C / N)), C the accelerators of the cluster; with `ideal=work`
it is the printed formula, N · work / min(demand, C); with `ideal=longest` N times the time alone on the whole cluster.
The metric `rho_themis` of a run has the same T_id. At most 1 is fair.

Every grant is a lease; a winner of its own accelerators continues without a restart. What cannot be divided is a gang:
`randomized` keeps each of the gangs won on average c times, `floor` rounds down, `lease` keeps all for the part c of
`lease_s`, or none for less than a minute. An elastic job, one that declares smaller sizes, bids for each of them, and
keeps the part c of the accelerators that it won. An app that holds nothing has, with `empty=finite`, the ρ of starting
when the leases that begin now are over; with `empty=infinite`, as in the text of the paper, ρ is 10⁶, so that two such
apps that want one gang forfeit nearly all of it. An app places its jobs by weight, of equals the one that has done
least first. Leases are granted to apps: what a job leaves before its lease ends goes to another job of its app until
then, if one fits (`app_leases`). The next auction is held `batch_s` later at the soonest: what comes free meanwhile is
offered together, and leases that end continue. An app that has held nothing for `patience_s` has one gang placed before
the auction, the longest wait first; while too little is free for it, what is free of its fastest type is kept.

Example (examples/two_jobs.json). Both apps of one job want the v100: text has 12600 / 2 = 6300 s left there, image
12600 / 4 = 3150 s, and half of three accelerators holds either job all the time, so that is T_id too. Neither holds
seats, so what tells them apart is ρ if they had all they want: (7560 + 6300) / 6300 = 2.2 for text, which waited 7560
s, and 3150 / 3150 = 1 for image. With f = 0.8 only text bids. It harms no other bid, keeps what it wins, and starts on
the v100. Image gets what is left, a k80.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, sections 3 to 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Grants
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.finish_time import SHARE, IdealTime
from eunomia.model.policy import LeaseTerms, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.grants.themis.agents import HOLDS, AuctionState, ended_leases, no_contention, offers, read_state
from eunomia.policies.grants.themis.app_leases import leases_after, remaining_leases
from eunomia.policies.grants.themis.assignment import Assignment, nothing_offered, postponed, renewed
from eunomia.policies.grants.themis.bidding import ROWS, BidTables, bid_tables, hold_auction, misjudged, misreported
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.partial import Partial, Treatment, partial_allocation

Empty = Literal["finite", "infinite"]

SHORTEST_S = 60.0  # a part of a lease that is worth the restart
LEAST_S, MOST_S = 10.0, 365 * 86400.0  # whole leases
_LEASE = f"a number of seconds: a lease lasts from {LEAST_S:.0f} s to {MOST_S:.0f} s, a year"


@dataclass(frozen=True)
class Themis:
    """Apps that would finish latest, compared with a private share of the cluster, win seats at an auction.

    `f` is fairness against efficiency: 1 offers all to the worst-off app alone, 0 lets everybody bid. `indivisible` is
    what becomes of the part of a gang that a winner forfeits. `bid_error` lets apps misjudge each ρ by up to that part;
    the app `liar` says that its ρ would be `lie` times better with what it wins than it would be.

    Use it when users own whole searches or gangs that suffer from being spread, and no app should finish later than on
    a private share. Where bids cannot be trusted take `empty=infinite` and `indivisible=lease`: there an app gains
    little by saying more or less than it knows, while with `empty=finite` payments are small, and a lie may pay.

    The worst-off are apps that are ahead: they get seats only when none of the worse-off can use them. A narrow auction
    of equals wastes most: each forfeits up to 1 - 1/e of what it won, of whole gangs even more, until leftovers use it.
    """

    f: Annotated[float, Rule(least=0.0, most=1.0, what="between 0 (everybody bids) and 1 (only the worst-off app)")] = (
        0.8
    )
    indivisible: Treatment = "randomized"
    rows: Annotated[int, Rule(least=2, what="at least 2: the rows of a bid table")] = ROWS
    bid_error: Annotated[float, Rule(least=0.0, below=1.0, what="at least 0 and below 1")] = 0.0
    lease_s: Annotated[float, Rule(least=LEAST_S, most=MOST_S, what=_LEASE)] = 1200.0
    patience_s: Annotated[float, Rule(least=0.0, endless=True, what="a number of seconds, at least 0")] = 3600.0
    batch_s: Annotated[float, Rule(least=0.0, what="a number of seconds from 0 to below lease_s")] = 1.0
    app_leases: bool = True
    ideal: IdealTime = SHARE
    empty: Empty = "finite"
    liar: str = ""
    lie: Annotated[float, Rule(above=0.0, what="a finite factor above 0, and 1 is the truth")] = 1.0

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="themis",
        answer_type="grants",
        objective="least worst finish-time fairness",
        technique="partial-allocation auctions among the worst-off, with leases",
        paper="Mahajan et al., Themis, NSDI 2020",
        measure="rho_themis_max",
        taxonomy=Taxonomy(
            objectives=("fairness",),
            fairness=("app", "long-term"),
            heterogeneity="partial",
            placement=True,
            preemptive=True,
        ),
        needs=frozenset(
            {"app", "apps", "capacity", "holder", "on_type", "remaining", "scale_factor", "slowdown", "throughput",
             "topology", "total", "lease_end", "waiting_time", "weight", "shapes", "shape_throughput"}
        ),
        oracle=True,
        memory_columns={"held_until": -HOLDS},
        mechanism=LeaseTerms(length_s=1200.0),
        names={"liar": "app"},
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_fields(self)
        if self.lie != 1 and not self.liar:
            raise ValueError(f"lie is {self.lie}, and no app tells it; name the app as liar")
        if self.batch_s >= self.lease_s:
            raise ValueError(f"batch_s is {self.batch_s}; it is a number of seconds from 0 to below lease_s")
        info = replace(self.info, mechanism=LeaseTerms(length_s=self.lease_s), ideal=self.ideal)
        object.__setattr__(self, "info", info)

    def auction(self, bids: Bids) -> Partial:
        """Return the winning rows of given bids, and the part of them that each bidder keeps."""
        return partial_allocation(bids)

    def decide(self, view: View) -> Grants:
        """Return leases for winners and leftovers; jobs that lose devices of ended leases stop."""
        ended = ended_leases(view)
        offered = offers(view, ended)
        if not offered.any():
            return nothing_offered(view)
        due = float(view.memory.get("auctioned", -math.inf)) + self.batch_s
        if view.at < due:
            return postponed(view, ended, due)
        if self.bid_error == 0 and no_contention(view, ended):
            answer = renewed(view, ended)
        else:
            answer = self.hold_auction(view, ended, offered)
        if not self.app_leases:
            return answer
        return replace(answer, memory={**answer.memory, **leases_after(view, answer, self.lease_s)})

    def hold_auction(self, view: View, ended: Bools, offered: Bools) -> Grants:
        """Return what comes of an auction of the devices `offered`, (device,); `ended` (job,) leases are over."""
        state = read_state(view, ended, offered, self.ideal)
        lease_s = self.lease_s if self.indivisible == "lease" else math.nan
        assignment = Assignment(state, offered.copy(), lease_s)
        if self.app_leases:
            assignment.place_within_apps(*remaining_leases(view))
        kept_for = assignment.place_overdue(self.patience_s)
        free, proof, bidders = assignment.by_unit(), None, NO_INTS
        if free.any():
            line = state.worst_first()
            bidders = line[: max(1, math.ceil((1 - self.f) * len(line) - 1e-9))]
        if len(bidders):
            rng = view.rng()
            tables = self.bids(state, bidders, free, rng)
            least = min(SHORTEST_S / self.lease_s, 1.0)
            awards = hold_auction(tables, free, state.gangs.sizes, self.indivisible, least, rng)
            assignment.place_winners(tables.gangs, awards)
            proof = awards.partial
            assignment.place_leftovers(bidders, rng)
        auctioned = view.at if len(bidders) else float(view.memory.get("auctioned", -math.inf))
        return assignment.answer(auctioned, bidders, kept_for, proof)

    def bids(self, state: AuctionState, bidders: Ints, free: Ints, rng: np.random.Generator) -> BidTables:
        """Return what apps bid for what is free, (unit,)."""
        starts_in_s = self.lease_s if self.empty == "finite" else math.inf
        tables = bid_tables(state, bidders, free, self.rows, starts_in_s)
        names = state.view.apps.names
        if self.liar and self.liar in (line := [names[app] for app in bidders.tolist()]):
            tables = misreported(tables, line.index(self.liar), self.lie)
        return misjudged(tables, self.bid_error, rng) if self.bid_error > 0 else tables
