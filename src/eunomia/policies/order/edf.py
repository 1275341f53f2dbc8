"""Earliest deadline first.

    order jobs by  d[m],  then by submission

d deadline (job,), seconds; jobs without one are last. A job is late when t ≥ d[m], t now, a running one when t > d[m]
by more than rounding; the answer lists late jobs. With `late=last` they are behind all others.

Example (examples/two_jobs.json). The deadline of image is in 4200 s, that of text in 12600 s. Image is first and gets
the v100, where it ends after 12600 / 4 = 3150 s; text gets a k80, where it ends after 12600 / 1 s, just in time.

Reference: C. L. Liu and J. W. Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment",
JACM 20(1), 1973; on one machine with arrivals M. L. Dertouzos, "Control Robotics: The Procedural Control of Physical
Processes", IFIP Congress 1974. The usual baseline for deadlines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Floats
from eunomia.model.policy import RECALLABLE, PolicyInfo, set_promises
from eunomia.model.promises import Promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import RELATIVE
from eunomia.model.view import View
from eunomia.policies.order.deadline_order import Late, late_jobs, order_by_deadline
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates, types_if_replanned


@dataclass(frozen=True)
class Edf:
    """Jobs run by deadline; an earlier deadline preempts a later one.

    If any schedule of one machine meets all deadlines, this one does; for several machines or gangs it need not.
    `late=last` puts jobs whose deadline has passed behind all others, so that one miss does not cause the next.

    Use it when jobs have deadlines that can mostly be met, preemption is cheap, and remaining work is unknown.

    The worst-off is a job without a deadline: it gets only accelerators that the others leave. When not all deadlines
    can be met, `late=first` serves late jobs before those that could still be in time.
    """

    late: Late = "first"
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="edf",
        answer_type="order",
        objective="meet deadlines",
        technique="preemptive priority by deadline",
        paper="Liu and Layland, JACM 1973",
        taxonomy=Taxonomy(objectives=("deadline",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"deadline"},
        memory_columns=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        covers = self.types == "fastest"
        set_promises(self, Promises(covers_all_jobs=covers, jobs_independent=covers))

    def decide(self, view: View) -> Order:
        """Return all jobs, the earliest deadline first."""
        is_late = _late_from(view) <= view.at
        order = order_by_deadline(view.deadline, is_late, self.late)
        rows, memory = candidates(view, order, self.types)
        late, why = late_jobs(is_late, view.deadline, "deadline_passed")
        again_at = self._next_miss(view, rows) if self.late == "last" else math.inf
        return Order(rows, again_at=again_at, memory=memory, late=late, why=why)

    def _next_miss(self, view: View, rows: Rows) -> float:
        """Return when the first deadline passes, if a job waits: then others may go before that job."""
        if (types_if_replanned(view, rows) >= 0).all():
            return math.inf
        late_from = _late_from(view)
        return float(np.min(late_from[late_from > view.at], initial=np.inf))


def _late_from(view: View) -> Floats:
    """Return when each job is late, (job,): a running one may end at its deadline, which rounding does not change."""
    deadline = view.deadline
    return np.where(view.on_type >= 0, np.nextafter(deadline + RELATIVE * np.abs(deadline), np.inf), deadline)
