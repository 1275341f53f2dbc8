"""Philly's scheduler: a queue per virtual cluster, gang scheduling with retry and back-off, locality relaxed in steps.

    first            pending jobs with  used[v] + z[m] ≤ quota[v], by submission
    then             those of virtual clusters that may borrow, by submission; jobs that fit overtake those that do not
    place            level 0: one rack, on the fewest machines that an empty rack would need; 1: one rack; 2: anywhere;
                     level = ⌊tries / relax_after⌋, and 2 for a gang that no rack could hold even if it were empty; the
                     rack of which the smallest part is allocated comes first
    no place         a job within its quota holds the free accelerators of its best place; after hold_s it releases
                     them, tries ← tries + 1, and pauses for backoff_s
    used ≥ 90 %      for a job within its quota that has no place, jobs of virtual clusters over theirs are preempted,
                     the youngest first, until it has one; those whose accelerators it does not get keep running
    a job waits for  fair share      while  used[v] + z[m] > quota[v]; the reason says so where enough accelerators
                                     are idle for it to borrow, but scattered
                     fragmentation   while  used[v] + z[m] ≤ quota[v]

v virtual cluster of job m (its tenant at the top of the tree), z scale factor (job,). Quotas are the tenants'; without
one it is a part of the cluster by weight. The paper's guidelines (section 5):

    relax_after=0    locality is never given up: tries raise no level. A gang that no rack could hold still runs
    isolate=true     gangs look for idle machines first, single accelerators for machines without a gang
    defragment=k     up to k small gangs at a time move to other machines where that makes a whole one for a gang
    prerun_s=300     gangs first run for so long on one accelerator of a pool, `pool` of each type set apart, and wait
                     for their own when they have not failed by then; only those with a shape of one accelerator do
                     (`[workload] elastic = "halves"`). A wait for the pool is of neither cause
    prerun=all       so do jobs of one accelerator

The others are no policy's: `[world] retry` says which failures are tried again, and only users end jobs that hardly
learn any more, as the searches of `[apps]` do.

Example (examples/two_jobs.json). Each of the two virtual clusters owns 1 of 3 accelerators, its part rounded down, so
both jobs are within their quotas. Text came first and takes its fastest type, the v100. Image gets a k80.

Reference: M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC
2019, sections 2 and 3. Three tries a level, which job stops first, and that only jobs within their quota hold seats are
this project's choice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Grants
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs, set_promises
from eunomia.model.promises import Promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.placement.grants_builder import FREE, LOST, held_by
from eunomia.policies.grants.philly.free_devices import FreeDevices
from eunomia.policies.grants.philly.prerun import NEEDS, PreRun
from eunomia.policies.grants.philly.queue_pass import UNMARKED, QueuePass, VirtualClusters

TICK_S = 30.0
NO_END = -1.0  # of a turn that did not begin; runs begin at 0
REMEMBERS = {"tries": 0.0, "holding": 0.0, "phase_end": NO_END, "ticket": -1.0}
FAIR_SHARE, FRAGMENTATION, PRE_RUN, SCATTERED = map(Reason, ("cluster_quota", "not_close", "prerun", "scattered"))
_CAUSES = (FAIR_SHARE, FRAGMENTATION, PRE_RUN, SCATTERED)
NEVER = "it is wider than the quota of its virtual cluster, which may not borrow"

_Seconds = Annotated[float, Rule(above=0.0, what="a number of seconds above 0")]
_Count = Annotated[int, Rule(least=0, what="a whole number, 0 = never")]


@dataclass(frozen=True)
class Philly:
    """Quotas that can be borrowed, and gangs that would rather wait than sit apart.

    A gang collects seats for `hold_s`, pauses for `backoff_s`, and accepts a worse place after `relax_after` tries.

    Use it when teams own parts of a cluster, idle parts shall be lent, and gangs slow down when they are spread.

    The worst-off is a wide gang: narrow ones overtake it, and what it collects it has to let go of when others do not
    leave in time. Jobs that borrowed are stopped when the cluster is nearly full.
    """

    hold_s: _Seconds = 150.0
    backoff_s: _Seconds = 120.0
    relax_after: _Count = 3
    preempt_above: Annotated[float, Rule(least=0.0, endless=True, what="a part of the cluster, above 1 = never")] = 0.9
    defragment: _Count = 0
    isolate: bool = False
    prerun_s: Annotated[float, Rule(least=0.0, what="a number of seconds, 0 = gangs start as they are")] = 0.0
    prerun: Literal["gangs", "all"] = "gangs"
    pool: Annotated[
        float, Rule(above=0.0, below=1.0, what="a part of the cluster above 0 and below 1, for example 0.02")
    ] = 0.02

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="philly",
        answer_type="grants",
        objective="quotas for virtual clusters, gangs close together",
        technique="queues with borrowing, held seats, relaxed locality and preemption",
        paper="Jeon et al., Philly, USENIX ATC 2019",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True, preemptive=True),
        needs=frozenset(
            {"scale_factor", "throughput", "on_type", "started", "first_started", "tenant", "tenants"}
            | {"capacity", "topology", "holder", "lease_end"}
        ),
        tenant_settings=frozenset({"may_borrow", "quota", "weight"}),
        memory_columns={**REMEMBERS, "passed": 0.0},
        mechanism=ENDLESS,
        explains_waits=True,
        reads_nested_quotas=False,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.prerun == "all" and not self.prerun_s:
            raise ValueError("prerun=all needs prerun_s above 0, such as prerun_s=300: else nothing runs in the pool")
        also_needs(self, NEEDS if self.prerun_s else ())
        set_promises(self, Promises(renews_leases=not self.prerun_s))

    def decide(self, view: View) -> Grants:
        """Return seats for gangs that start or move, the jobs to stop, and why the others wait."""
        if not self.prerun_s:
            return self._decide(view, np.zeros(view.jobs, dtype=bool))
        before = PreRun.split(view, self.pool, all_jobs=self.prerun == "all")
        answer = self._decide(before.rest, before.first)
        return before.add(answer, view.at + self.prerun_s)

    def _decide(self, view: View, aside: Bools) -> Grants:
        """Decide about all jobs but those that are `aside`, (job,), for now."""
        waiting = view.on_type < 0
        clusters = VirtualClusters.seen(view)
        held = view.memory.get("marks", np.full(view.topology.devices, UNMARKED))
        retry = RetryState.at(view.at, waiting & ~aside, view.memory, held, self.backoff_s)
        marks = _marks(view, held, retry)
        gangs = held_by(view.holder, clusters.size > 1) if self.isolate else None
        free = FreeDevices(view.topology, (view.holder == FREE) & (marks == UNMARKED), view.holder != LOST, gangs)
        one_pass = QueuePass(view, clusters, free, marks, self.defragment)
        due = np.flatnonzero(retry.due(view.at, waiting & ~aside))
        if len(due):
            self._serve(one_pass, retry, due)
            placed = np.zeros(view.jobs, dtype=bool)
            placed[list(one_pass.placed)] = True
            retry.begin(due[~placed[due]], view.at, self.hold_s, self.backoff_s)
        return self._answer(view, retry, one_pass, aside)

    def _serve(self, one_pass: QueuePass, retry: RetryState, due: Ints) -> None:
        """Place what it can of these jobs, ascending: first those within their quotas, then those that may borrow."""
        clusters, levels = one_pass.clusters, retry.levels(self.relax_after)
        within = clusters.all_within()[due]
        for m in due[within].tolist():
            level, ticket = int(levels[m]), float(retry.ticket[m])
            if clusters.within(m):
                placed = one_pass.serve_within(m, level, ticket, self.preempt_above)
                if not placed and clusters.size[m] > 1:
                    one_pass.hold(m, level, retry.take_ticket(m))
            elif clusters.borrows[clusters.of[m]]:
                one_pass.place(m, level, ticket)
        borrowing = due[~within]
        borrowing = borrowing[clusters.borrows[clusters.of[borrowing]]]
        if len(borrowing):
            one_pass.place_all(borrowing, levels[borrowing], retry.ticket[borrowing])

    def _answer(self, view: View, retry: RetryState, one_pass: QueuePass, aside: Bools) -> Grants:
        clusters = one_pass.clusters
        waits = view.on_type < 0
        waits[list(one_pass.placed)] = False
        waits[one_pass.stopped] = True
        never = waits & clusters.never() & np.isinf(view.first_started)
        refuse = dict.fromkeys(np.flatnonzero(never).tolist(), NEVER)
        runs = (view.on_type >= 0) & (view.on_type < len(view.types))  # not in the pool
        one_pass.renew(np.flatnonzero(runs & (view.lease_end <= view.at)))
        soon = tick(view.at + TICK_S) if one_pass.stopped else np.inf  # what was freed and not needed may fit others
        cause = np.where(aside, 3, np.where(clusters.all_within(), 2, np.where(one_pass.could_borrow(), 4, 1)))
        return one_pass.grants(
            again_at=min(retry.next(view.at, waits & ~aside), soon),
            memory={**retry.memory(waits & ~aside), "marks": one_pass.marks},
            refuse=refuse,
            why=WaitReasons(np.where(waits & ~never, cause, 0).astype(np.uint8), _CAUSES),
        )


@dataclass(slots=True)
class RetryState:
    """Retry and back-off of pending jobs, (job,) each: a job collects devices, releases them, pauses, and tries again.

    Times are rounded up to whole `TICK_S`, so that jobs of about the same time try together and the policy is seldom
    asked.
    """

    tries: Floats  # that failed since it last became pending
    holding: Bools  # it collects devices
    end: Floats  # of collecting or of the pause
    ticket: Floats  # the mark of the devices that it collected; -1 = none

    @classmethod
    def at(cls, now: float, waiting: Bools, memory: Mapping[str, Array], held: Floats, backoff_s: float) -> RetryState:
        """Read the memory: a running job has no turn; a job whose time is over pauses, if it has anything to release.

        `held` are the tickets that devices are marked with.
        """
        tries = np.where(waiting, memory["tries"], 0.0)
        holding = waiting & (memory["holding"] > 0)
        end = np.where(waiting, memory["phase_end"], NO_END)
        late = holding & (end <= now)
        pause = np.full(len(late), NO_END)
        if late.any():
            pause[np.isin(memory["ticket"], held[held >= 0])] = tick(now + backoff_s)
        state = cls(tries + late, holding & ~late, np.where(late, pause, end), memory["ticket"].copy())
        state.ticket[~state.holding] = -1
        return state

    def due(self, now: float, waiting: Bools) -> Bools:
        """Return the jobs that may start now, (job,)."""
        return waiting & (self.holding | (self.end <= now))

    def levels(self, relax_after: int) -> Ints:
        """Return the level of locality that each job asks for, (job,)."""
        tries = self.tries // relax_after if relax_after else np.zeros(len(self.tries))
        return np.minimum(tries, 2).astype(np.int64)

    def begin(self, jobs: Ints, now: float, hold_s: float, backoff_s: float) -> None:
        """Start the turns of these jobs, which found no place; jobs whose turn has begun continue collecting.

        A job that may hold nothing has no reason to pause, so its turn takes as long as both.
        """
        fresh = jobs[~self.holding[jobs]]
        long = np.where(self.ticket[fresh] >= 0, tick(now + hold_s), tick(now + hold_s + backoff_s))
        self.holding[fresh], self.end[fresh] = True, long

    def next(self, now: float, waiting: Bools) -> float:
        """Return when the next turn ends; inf if none does."""
        coming = self.end[waiting & (self.end > now)]
        return float(coming.min()) if len(coming) else math.inf

    def take_ticket(self, job: int) -> float:
        """Return the number by which devices are marked for a job."""
        if self.ticket[job] < 0:
            self.ticket[job] = self.ticket.max(initial=-1.0) + 1
        return float(self.ticket[job])

    def memory(self, waits: Bools) -> dict[str, Array]:
        """Return the columns to keep; jobs that wait no more begin anew."""
        self.tries[~waits], self.holding[~waits], self.end[~waits], self.ticket[~waits] = 0.0, False, NO_END, -1.0
        return {
            "tries": self.tries,
            "holding": self.holding.astype(float),
            "phase_end": self.end,
            "ticket": self.ticket,
        }


def tick(at: float) -> float:
    """Return the next whole tick."""
    return math.ceil(at / TICK_S) * TICK_S


def _marks(view: View, held: Floats, retry: RetryState) -> Floats:
    """Return the ticket that each free device is marked with, (device,): what was held, as far as it still is."""
    still = (view.holder == FREE) & (held >= 0)
    if still.any():  # seldom; the rest takes a sort
        still &= np.isin(held, retry.ticket[retry.holding])
    return np.where(still, held, UNMARKED)
