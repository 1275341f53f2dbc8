"""Kueue's fair sharing: queues borrow idle quota; the queue that borrows least for its weight is next.

    D[u] = max(used[u] - Q[u], 0) / (C w[u])            share of queue u: what it borrows, over the capacity
    next job: the head of the queue whose D with that job is the smallest, then the earliest submission
      it fits                                           it runs, within Q[u] or borrowing
      it fits nowhere                                   jobs of borrowing queues are preempted, the largest D first:
        final      those of v with  D[u] with it ≤ D[v] without the preempted job     (LessThanOrEqualToFinalShare)
        initial    those of v while  D[u] with it < D[v]                              (LessThanInitialShare)
        both       final; if it does not fit yet, initial on those passed over, at most one of each queue
      it still does not fit                             it waits, and the next job of its queue is tried

A ClusterQueue is a tenant at the top of the tree, with its quota Q (accelerators), weight w and whether it borrows; all
are one cohort. C is the capacity: accelerators outside all quotas can be borrowed too. Types are flavors of one
resource, tried the fastest first. The last started job is preempted first; of queues that borrow equally, that whose
next candidate started last gives way. Jobs have no priorities, so `withinClusterQueue` has no effect. `admission=usage`
orders the jobs of a queue as AdmissionFairSharing does: the tenants below it are its LocalQueues, the one with the
least usage for its weight is first, and usage of any age halves in every half-life.

Example (examples/two_jobs.json). Each of the two queues has a quota of 1 of 3 accelerators, its part rounded down.
Neither job borrows, and text was submitted first: it gets the v100. Image gets a k80.

Reference: Kubernetes SIGs, Kueue's documentation, kueue.sigs.k8s.io/docs/concepts: "Cluster Queue", "Preemption" and
"Admission Fair Sharing".
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo, also_needs, set_usage_half_life
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.policies.order.borrowing_group import BorrowingGroup, QueueHeads
from eunomia.policies.order.decayed_usage import HalfLife
from eunomia.policies.order.type_choice import NEEDS, runnable

_STRATEGIES = {"both": (True, True), "final": (True, False), "initial": (False, True), "never": (False, False)}
_WHY = Reason("queue_quota")


@dataclass(frozen=True)
class KueueFairShare:
    """Queues use their quotas and borrow idle quota, evenly by weight; lent quota is reclaimed by preemption.

    `preemption` chooses the rules by which borrowing jobs are preempted; with `never` they run to their ends.

    Use it when users know Kueue, or teams own parts of a cluster and idle quota should be lent fairly instead of first
    come, first served.

    The worst-off is a job of a queue that borrows: it is preempted when an owner needs its quota, or when another queue
    borrows less, the last started first.
    """

    preemption: Literal["both", "final", "initial", "never"] = "both"
    admission: Literal["submission", "usage"] = "submission"
    half_life_s: HalfLife = 7 * 86400.0

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="kueue_fair_share",
        answer_type="order",
        objective="idle quota borrowed in proportion to weights, and given back",
        technique="quotas with borrowing, preemption by dominant resource share",
        paper="Kueue's documentation: fair sharing",
        taxonomy=Taxonomy(
            objectives=("fairness",), fairness=("tenant", "instant"), heterogeneity="partial", preemptive=True
        ),
        needs=NEEDS | {"tenant", "tenants", "started"},
        tenant_settings=frozenset({"may_borrow", "quota", "weight"}),
        mechanism=RECALLABLE,
        reads_nested_quotas=False,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        set_usage_half_life(self, self.half_life_s)
        also_needs(self, {"tenant_usage"} if self.admission == "usage" else ())

    def decide(self, view: View) -> Order:
        """Return the running jobs that are not preempted, then the admitted jobs; other jobs have no row."""
        cohort, running = BorrowingGroup.of(view), np.flatnonzero(view.on_type >= 0)
        admitted, stopped = self._admit(view, cohort)
        line = np.array([m for m in running.tolist() if m not in stopped] + admitted, dtype=np.int64)
        waits = np.setdiff1d(np.arange(view.jobs), line)
        refused = {m: _refusal(cohort.quota[cohort.queue[m]]) for m in cohort.infeasible_jobs()}
        return Order(Rows(line, cohort.on_type[line]), why=WaitReasons.of(view.jobs, waits, _WHY), refuse=refused)

    def _admit(self, view: View, cohort: BorrowingGroup) -> tuple[list[int], set[int]]:
        """Return the admitted jobs in order, and the jobs preempted for them."""
        admitted: list[int] = []
        stopped: set[int] = set()
        can, failed = (
            runnable(view),
            set(),
        )  # failed: queue, size and types of jobs that did not fit since the last change
        heads = QueueHeads(self._lines(view, cohort, np.flatnonzero((view.on_type < 0) & can.any(axis=1))), cohort)
        fastest = np.argsort(-view.throughput, axis=1, kind="stable")
        preference = np.where(np.take_along_axis(can, fastest, axis=1), fastest, -1).tolist()
        while cohort.has_available() and (m := heads.pop()) >= 0:
            types = [j for j in preference[m] if j >= 0]
            kind = (int(cohort.queue[m]), int(cohort.size[m]), *types)
            if kind in failed:
                continue
            type, victims = self._find_type(cohort, m, types)
            if type < 0:
                failed.add(kind)
                continue
            for victim in victims:
                cohort.stop(victim)
            cohort.admit(m, type)
            heads.update({int(cohort.queue[n]) for n in (m, *victims)})
            admitted.append(m)
            stopped |= set(victims)
            failed.clear()
        return admitted, stopped

    def _find_type(self, cohort: BorrowingGroup, job: int, types: list[int]) -> tuple[int, list[int]]:
        """Return the type on which a job may run, -1 = none, and the jobs to preempt for it."""
        if not cohort.may_use(job):
            return -1, []
        fits = next((j for j in types if cohort.free[j] >= cohort.size[job]), -1)
        if fits >= 0:
            return fits, []
        final, initial = _STRATEGIES[self.preemption]
        for j in types:
            if victims := cohort.victims(job, j, final=final, initial=initial):
                return j, victims
        return -1, []

    def _lines(self, view: View, cohort: BorrowingGroup, waiting: Ints) -> dict[int, deque[int]]:
        """Return the waiting jobs of each queue, its head first."""
        line = waiting
        if self.admission == "usage":
            usage = view.tenant_usage / view.tenants.weight
            line = waiting[rising(usage[view.tenant[waiting]])]
        lines: dict[int, deque[int]] = {}
        for m in line.tolist():
            lines.setdefault(int(cohort.queue[m]), deque()).append(m)
        return lines


def _refusal(quota: float) -> str:
    return f"its queue's quota of {quota:g} is too small for it, and it may not borrow; raise it, or ask for fewer"
