"""Earliest deadline first.

    order jobs by  d[m],  then by submission

d deadline (job,), seconds; jobs without one are last. A job is late when t ≥ d[m], t now; the answer names it. With
`late=last` it goes behind all others.

Example (examples/two_jobs.json). Image is due in 4200 s, text in 12600 s. Image is first and takes the v100, where it
ends after 12600 / 4 = 3150 s; text takes a k80, where it ends after 12600 / 1 s, just in time.

Reference: C. L. Liu and J. W. Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment",
JACM 20(1), 1973; on one machine with arrivals M. L. Dertouzos, "Control Robotics: The Procedural Control of Physical
Processes", IFIP Congress 1974. It is the baseline of the papers on deadlines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order, Rows
from eunomia.model.policy import RECALLABLE, PolicyInfo, promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.deadline_order import Late, check_late, in_line, told
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates, check_types, types_if_replanned


@dataclass(frozen=True)
class Edf:
    """Who is due first runs first; an earlier deadline interrupts a later one.

    If any schedule of one machine meets all deadlines, this one does; on several machines, or with gangs, that does not
    hold. `late=last` puts jobs whose deadline has passed behind all others, so that one miss does not lead to the next.

    Use it when jobs have deadlines that can mostly be met, stopping a job is cheap, and nobody knows how much work is
    left.

    The worst-off is a job without a deadline: it runs only on what the others leave. Where too much is promised,
    `late=first` serves jobs that are late already before those that could still be in time.
    """

    late: Late = "first"
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="edf",
        door="order",
        objective="meet deadlines",
        technique="preemptive priority by deadline",
        paper="Liu and Layland, JACM 1973",
        taxonomy=Taxonomy(objectives=("deadline",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"deadline"},
        remembers=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_late(self.late)
        check_types(self.types)
        promises(self, complete=self.types == "fastest", separable=True)

    def decide(self, view: View) -> Order:
        """Return all jobs, the earliest deadline first."""
        is_late = view.deadline <= view.at
        order = in_line(view.deadline, is_late, self.late)
        rows, memory = candidates(view, order, self.types)
        late, why = told(is_late, view.deadline, "late: its deadline, {}, has passed")
        again_at = self._next_miss(view, rows) if self.late == "last" else math.inf
        return Order(rows, again_at=again_at, memory=memory, late=late, why=why)

    def _next_miss(self, view: View, rows: Rows) -> float:
        """Return when the first deadline passes, if anybody waits: then others may go before that job."""
        if (types_if_replanned(view, rows) >= 0).all():
            return math.inf
        return float(np.min(view.deadline[view.deadline > view.at], initial=np.inf))
