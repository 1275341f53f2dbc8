"""Least slack first: who can least afford to wait.

    s[m] = d[m] - t - min_j remaining[m] / T[m, j]      order jobs by  s[m] - q · (m runs),  then by submission

over the types j that can hold the gang. d deadline (job,), t now, T throughput (job, type), remaining steps (job,),
which only an oracle knows, q quantum. The slack of a job that waits falls by a second each second, that of one on its
fastest type stays: the policy wants to be asked again when the first waiting job overtakes a running one. Without the
quantum two jobs of equal slack would take turns without end. A job is late when its slack is below zero: it cannot be
in time even if it runs from now on; the answer names it. Jobs without a deadline are last.

Example (examples/two_jobs.json). Image is due in 4200 s and has 12600 / 4 = 3150 s left: its slack is 1050 s. That of
text is 12600 - 12600 / 2 = 6300 s. Image is first and takes the v100, text a k80.

Reference: A. K. Mok, "Fundamental Design Problems of Distributed Systems for the Hard-Real-Time Environment", PhD
thesis, MIT, 1983 (least laxity). The quantum is this project's choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo, promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.deadline_order import Late, check_late, in_line, told
from eunomia.policies.order.preemption_horizon import next_behind
from eunomia.policies.order.type_choice import (
    NEEDS,
    REMEMBERS,
    Types,
    candidates,
    check_types,
    runnable,
    types_if_replanned,
)

_ROUNDING_S = 1e-6  # times are sums


@dataclass(frozen=True)
class LeastSlack:
    """Who can least afford to wait runs first, in steps of `quantum` seconds.

    It looks at how much work is left, so that a long job with a late deadline may go before a short one with an earlier
    deadline. `late=last` puts jobs that can no longer be in time behind all others.

    Use it when jobs have deadlines, it is known how much work is left, there are several machines, and stopping a job
    is cheap.

    The worst-off is a job without a deadline: it runs only on what the others leave. Where too much is promised,
    `late=first` serves jobs that cannot be in time before those that can.
    """

    quantum: float = 60.0
    late: Late = "first"
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="least_slack",
        door="order",
        objective="meet deadlines, knowing how much work is left",
        technique="preemptive priority by slack",
        paper="Mok, PhD thesis, MIT 1983",
        taxonomy=Taxonomy(objectives=("deadline",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"deadline", "remaining"},
        oracle=True,
        remembers=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_late(self.late)
        check_types(self.types)
        if not 0 < self.quantum < math.inf:
            raise ValueError(f"quantum is {self.quantum}; it is a number of seconds above 0")
        promises(self, complete=self.types == "fastest", separable=True)

    def decide(self, view: View) -> Order:
        """Return all jobs, the least slack first."""
        slack = self._slack(view)
        is_late = slack < -_ROUNDING_S
        key = slack - np.where(view.on_type >= 0, self.quantum, _ROUNDING_S)
        order = in_line(key, is_late, self.late)
        rows, memory = candidates(view, order, self.types)
        running = types_if_replanned(view, rows) >= 0
        reason = "late: it cannot be done by its deadline, {}, even if it runs from now on"
        late, why = told(is_late, view.deadline, reason)
        soonest = self._next_crossing(slack, is_late, order, running)
        again_at = max(view.at + soonest, math.nextafter(view.at, math.inf))
        return Order(rows, again_at=again_at, memory=memory, late=late, why=why)

    def _slack(self, view: View) -> Floats:
        """Return how long each job can wait and be in time, (job,)."""
        best = np.where(runnable(view), view.throughput, 0.0).max(axis=1, initial=0.0)
        left = np.divide(view.remaining, best, out=np.zeros(view.jobs), where=best > 0)
        return np.asarray(view.deadline - view.at - left)

    def _next_crossing(self, slack: Floats, is_late: Bools, order: Ints, running: Bools) -> float:
        """Return in how many seconds the first waiting job overtakes a running one, if all go on as they are."""
        job, rival = next_behind(order, running)
        never = np.isinf(slack[rival])
        if self.late == "last":
            never |= is_late[rival] & ~is_late[job]
        left = slack[rival[~never]] - slack[job[~never]] + self.quantum
        return float(left.min(initial=np.inf))
