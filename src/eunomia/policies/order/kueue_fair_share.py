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
from collections.abc import Sequence
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
MOST_KEYS = 2**62


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
        can = runnable(view)
        waiting = np.flatnonzero((view.on_type < 0) & can.any(axis=1))
        heads = QueueHeads(self._lines(view, cohort, waiting), cohort)
        fastest = np.argsort(-view.throughput, axis=1, kind="stable")
        preference = np.where(np.take_along_axis(can, fastest, axis=1), fastest, -1)
        kinds = _Kinds(view.jobs, waiting, (cohort.queue, cohort.size, *preference.T))
        available = cohort.has_available()
        while available and kinds.untried and (m := heads.pop()) >= 0:
            if not kinds.take(m):
                continue
            type, victims = self._find_type(cohort, m, [j for j in preference[m].tolist() if j >= 0])
            if type < 0:
                kinds.fail(m)
                continue
            for victim in victims:
                cohort.stop(victim)
            cohort.admit(m, type)
            heads.update({int(cohort.queue[n]) for n in (m, *victims)})
            admitted.append(m)
            stopped |= set(victims)
            kinds.retry()
            available = cohort.has_available()
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
        line = line[np.argsort(cohort.queue[line], kind="stable")]
        queues, first = np.unique(cohort.queue[line], return_index=True)
        return {u: deque(jobs.tolist()) for u, jobs in zip(queues.tolist(), np.split(line, first)[1:], strict=True)}


class _Kinds:
    """Kinds of waiting jobs, alike in queue, size and types: where one does not fit, none of its kind does.

    So most of a long line is never looked at.
    """

    def __init__(self, jobs: int, waiting: Ints, columns: Sequence[Ints]) -> None:
        kind, span = np.zeros(len(waiting), dtype=np.int64), 1
        for column in columns:
            values = column[waiting] + 1
            more = int(values.max(initial=0)) + 1
            if span * more > MOST_KEYS:
                kind, span = np.unique(kind, return_inverse=True)[1], len(waiting)
            kind, span = kind * more + values, span * more
        kind = np.unique(kind, return_inverse=True)[1]
        of = np.full(jobs, -1)
        of[waiting] = kind
        self._kind: list[int] = of.tolist()  # (job,)
        self._left: list[int] = np.bincount(kind).tolist()  # (kind,) jobs that were not taken yet
        self._failed = set[int]()  # since the last change
        self.untried = len(self._left)  # kinds of which jobs are left and that have not failed

    def take(self, job: int) -> bool:
        """Count a job as looked at; return whether its kind has not failed."""
        kind = self._kind[job]
        self._left[kind] -= 1
        if kind in self._failed:
            return False
        self.untried -= not self._left[kind]
        return True

    def fail(self, job: int) -> None:
        """Note that a job that was taken does not fit."""
        self._failed.add(kind := self._kind[job])
        self.untried -= self._left[kind] > 0

    def retry(self) -> None:
        """After a change all kinds may fit again."""
        self.untried += sum(self._left[kind] > 0 for kind in self._failed)
        self._failed.clear()


def _refusal(quota: float) -> str:
    return f"its queue's quota of {quota:g} is too small for it, and it may not borrow; raise it, or ask for fewer"
