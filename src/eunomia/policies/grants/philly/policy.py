"""Philly's scheduler: a queue for each virtual cluster, gangs that collect their seats, locality given up bit by bit.

    first            waiting jobs with  used[v] + z[m] ≤ quota[v], by submission
    then             those of virtual clusters that may borrow, by submission; who fits overtakes who does not
    place            level 0: one rack, on the fewest machines that an empty rack would need; 1: one rack; 2: anywhere;
                     level = ⌊tries / relax_after⌋; the rack of which the smallest part is allocated comes first
    no place         a job within its quota holds the free seats of its best place; after hold_s it lets go of them,
                     tries ← tries + 1, and pauses for backoff_s
    used ≥ 90 %      for a job within its quota that has no place, jobs of virtual clusters over theirs stop, the
                     youngest first, until it has one; those whose seats it does not get go on
    a job waits for  fair share      while  used[v] + z[m] > quota[v]
                     fragmentation   while  used[v] + z[m] ≤ quota[v]

v virtual cluster of job m (its tenant at the top of the tree), z scale factor (job,). Quotas are the tenants'; without
one it is a part of the cluster by weight. The paper's guidelines (section 5):

    relax_after=0    locality is never given up
    isolate=true     gangs look for idle machines first, single accelerators for machines without a gang
    defragment=k     up to k small gangs at a time move to other machines where that makes a whole one for a gang
    prerun_s=300     gangs first run for so long on one accelerator of a pool, `pool` of each type set apart, and wait
                     for their own when they have not failed by then; only those with a shape of one accelerator do
                     (`[workload] elastic = "halves"`). A wait for the pool is of neither cause

The others are no policy's: `[world] retry` says which failures are tried again, and only users end jobs that hardly
learn any more, as the searches of `[apps]` do.

Example (examples/two_jobs.json). Each of the two virtual clusters owns 1 of 3 accelerators, its part rounded down, so
both jobs are within their quotas. Text came first and takes its fastest type, the v100. Image gets a k80.

Reference: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC
2019, sections 2 and 3. Three tries a level, who stops first, and that only jobs within their quota hold seats are this
project's choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import Bools, Floats
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs, promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.grants.philly.clusters import Clusters, seats_of
from eunomia.policies.grants.philly.deciding import NOBODY, Deciding
from eunomia.policies.grants.philly.prerun import NEEDS, PreRun
from eunomia.policies.grants.philly.room import Room
from eunomia.policies.grants.philly.serving import Serving
from eunomia.policies.grants.philly.turns import REMEMBERS, TICK_S, Turns, tick

FAIR_SHARE = "fair share: its virtual cluster has used up its quota"
FRAGMENTATION = "fragmentation: it is within its quota, but no place holds it as close together as it asks"
PRE_RUN = "pre-run: it first runs on one accelerator of the pool, and those are in use"
CAUSES = (FAIR_SHARE, FRAGMENTATION, PRE_RUN)
NEVER = "it is wider than the quota of its virtual cluster, which may not borrow"


@dataclass(frozen=True)
class Philly:
    """Quotas that can be borrowed, and gangs that would rather wait than sit apart.

    A gang collects seats for `hold_s`, pauses for `backoff_s`, and accepts a worse place after `relax_after` tries.

    Use it when teams own parts of a cluster, idle parts shall be lent, and gangs slow down when they are spread.

    The worst-off is a wide gang: narrow ones overtake it, and what it collects it has to let go of when others do not
    leave in time. Who has borrowed is stopped when the cluster is nearly full.
    """

    hold_s: float = 150.0
    backoff_s: float = 120.0
    relax_after: int = 3
    preempt_above: float = 0.9
    defragment: int = 0
    isolate: bool = False
    prerun_s: float = 0.0
    pool: float = 0.02

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="philly",
        door="grants",
        objective="quotas for virtual clusters, gangs close together",
        technique="queues with borrowing, held seats, relaxed locality and preemption",
        paper="Jeon et al., Philly, USENIX ATC 2019",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True, preemptive=True),
        needs=frozenset(
            {"scale_factor", "throughput", "on_type", "started", "first_started", "tenant", "tenants"}
            | {"capacity", "topology", "holder", "until"}
        ),
        remembers={**REMEMBERS, "passed": 0.0},
        mechanism=ENDLESS,
        tells_waits=True,
        reads_nested_quotas=False,
    )

    def __post_init__(self) -> None:
        for name in ("hold_s", "backoff_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is {getattr(self, name)}; it is a number of seconds above 0")
        if not self.preempt_above >= 0:
            raise ValueError(f"preempt_above is {self.preempt_above}; it is a part of the cluster, above 1 = never")
        for name in ("relax_after", "defragment"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a whole number, 0 = never")
        if not 0 <= self.prerun_s < float("inf"):
            raise ValueError(f"prerun_s is {self.prerun_s}; it is a number of seconds, 0 = gangs start as they are")
        if not 0 < self.pool < 1:
            raise ValueError(f"pool is {self.pool}; it is a part of the cluster above 0 and below 1, for example 0.02")
        also_needs(self, NEEDS if self.prerun_s else ())
        promises(self, renews=not self.prerun_s)

    def decide(self, view: View) -> Grants:
        """Return seats for gangs that start or move, who stops, and why the others wait."""
        if not self.prerun_s:
            return self._decide(view, np.zeros(view.jobs, dtype=bool))
        before = PreRun.split(view, self.pool)
        answer = self._decide(before.rest, before.first)
        return before.add(answer, view.at + self.prerun_s)

    def _decide(self, view: View, aside: Bools) -> Grants:
        """Decide about everybody but those who are `aside`, (job,), for now."""
        waiting = view.on_type < 0
        clusters = Clusters.seen(view)
        held = view.memory.get("marks", np.full(view.topology.devices, NOBODY))
        turns = Turns.at(view.at, waiting & ~aside, view.memory, held, self.backoff_s)
        marks = _marks(view, held, turns)
        deciding = Deciding(view, clusters, self._room(view, clusters, marks), marks, self.defragment)
        due = np.flatnonzero(turns.due(view.at, waiting & ~aside))
        if len(due):
            Serving(deciding, turns, self.relax_after, self.preempt_above).serve(due)
            seated = np.zeros(view.jobs, dtype=bool)
            seated[list(deciding.seated)] = True
            turns.begin(due[~seated[due]], view.at, self.hold_s, self.backoff_s)
        return self._answer(view, turns, deciding, aside)

    def _room(self, view: View, clusters: Clusters, marks: Floats) -> Room:
        gangs = seats_of(clusters.size > 1, view.holder) if self.isolate else None
        return Room(view.topology, (view.holder == -1) & (marks == NOBODY), view.holder != -2, gangs)

    def _answer(self, view: View, turns: Turns, deciding: Deciding, aside: Bools) -> Grants:
        clusters = deciding.clusters
        waits = view.on_type < 0
        waits[list(deciding.seated)] = False
        waits[deciding.stopped] = True
        never = waits & clusters.never() & np.isinf(view.first_started)
        refuse = dict.fromkeys(np.flatnonzero(never).tolist(), NEVER)
        sits = (view.on_type >= 0) & (view.on_type < len(view.types))  # not in the pool
        deciding.renew(np.flatnonzero(sits & (view.until <= view.at)))
        rows, row, device = deciding.grants()
        soon = tick(view.at + TICK_S) if deciding.stopped else np.inf  # what was freed and not needed may fit somebody
        wait = np.flatnonzero(waits)
        cause = np.where(aside, 2, clusters.all_within())[wait].tolist()
        return Grants(
            rows,
            row,
            device,
            np.full(len(rows), np.nan),
            stop=np.array(sorted(deciding.stopped), dtype=np.int64),
            again_at=min(turns.next(view.at, waits & ~aside), soon),
            memory={**turns.memory(waits & ~aside), "marks": deciding.marks},
            refuse=refuse,
            why={m: CAUSES[one] for m, one in zip(wait.tolist(), cause, strict=True) if m not in refuse},
        )


def _marks(view: View, held: Floats, turns: Turns) -> Floats:
    """Return whose each free seat is, (device,): what was held, as far as it still is."""
    still = (view.holder == -1) & (held >= 0)
    if still.any():  # seldom; the rest takes a sort
        still &= np.isin(held, turns.ticket[turns.holding])
    return np.where(still, held, NOBODY)
