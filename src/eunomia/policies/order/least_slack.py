"""Least slack first: the job that can wait least before it misses its deadline.

    s[m] = d[m] - t - min_j remaining[m] / T[m, j]      order jobs by  s[m] - q · (m runs),  then by submission

over the types j that can hold the gang. d deadline (job,), t now, T throughput (job, type), remaining steps (job,),
which only an oracle knows, q quantum. The slack of a waiting job falls by a second each second, that of a job on its
fastest type is constant: the next ask is when the first waiting job overtakes a running one. Without the quantum two
jobs of equal slack would take turns without end. A job is late when its slack is below zero: it misses its deadline
even if it runs from now on; the answer lists late jobs. Jobs without a deadline are last.

Example (examples/two_jobs.json). The deadline of image is in 4200 s and its remaining time 12600 / 4 = 3150 s: its
slack is 1050 s. That of text is 12600 - 12600 / 2 = 6300 s. Image is first and gets the v100, text a k80.

Reference: A. K. Mok, "Fundamental Design Problems of Distributed Systems for the Hard-Real-Time Environment", PhD
thesis, MIT, 1983 (least laxity). The quantum is this project's choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Order
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo, set_promises
from eunomia.model.promises import Promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import is_at_most
from eunomia.model.view import View
from eunomia.policies.order.deadline_order import Late, late_jobs, next_behind, order_by_deadline
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates, runnable, types_if_replanned

_LEAST_LEAD_S = 1e-6  # by which a waiting job must be ahead of another


@dataclass(frozen=True)
class LeastSlack:
    """Jobs run by slack, least first, in steps of `quantum` seconds.

    Remaining work counts, so that a long job with a late deadline may precede a short one with an earlier deadline.
    `late=last` puts jobs that can no longer be in time behind all others.

    Use it when jobs have deadlines, remaining work is known, there are several machines, and preemption is cheap.

    The worst-off is a job without a deadline: it gets only accelerators that the others leave. When not all deadlines
    can be met, `late=first` serves jobs that cannot be in time before those that can.
    """

    quantum: Annotated[float, Rule(above=0.0, what="a number of seconds above 0")] = 60.0
    late: Late = "first"
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="least_slack",
        answer_type="order",
        objective="meet deadlines, knowing how much work is left",
        technique="preemptive priority by slack",
        paper="Mok, PhD thesis, MIT 1983",
        taxonomy=Taxonomy(objectives=("deadline",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"deadline", "remaining"},
        oracle=True,
        memory_columns=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        covers = self.types == "fastest"
        set_promises(self, Promises(covers_all_jobs=covers, jobs_independent=covers))

    def decide(self, view: View) -> Order:
        """Return all jobs, the least slack first."""
        done_at = view.at + self._time_left(view)
        slack, is_late = view.deadline - done_at, ~is_at_most(done_at, view.deadline)
        key = slack - np.where(view.on_type >= 0, self.quantum, _LEAST_LEAD_S)
        order = order_by_deadline(key, is_late, self.late)
        rows, memory = candidates(view, order, self.types)
        late, why = late_jobs(is_late, view.deadline, "deadline_out_of_reach")
        soonest = self._next_crossing(slack, is_late, order, types_if_replanned(view, rows) >= 0)
        again_at = max(view.at + soonest, math.nextafter(view.at, math.inf))
        return Order(rows, again_at=again_at, memory=memory, late=late, why=why)

    def _time_left(self, view: View) -> Floats:
        """Return how long each job still takes on its fastest type, (job,) seconds."""
        best = np.where(runnable(view), view.throughput, 0.0).max(axis=1, initial=0.0)
        return np.asarray(np.divide(view.remaining, best, out=np.zeros(view.jobs), where=best > 0))

    def _next_crossing(self, slack: Floats, is_late: Bools, order: Ints, running: Bools) -> float:
        """Return the seconds until a waiting job overtakes a running one if no job starts or stops before."""
        job, rival = next_behind(order, running)
        never = np.isinf(slack[rival])
        if self.late == "last":
            never |= is_late[rival] & ~is_late[job]
        left = slack[rival[~never]] - slack[job[~never]] + self.quantum
        return float(left.min(initial=np.inf))
