"""Shrinking: a job that does not fit as a whole runs on as many accelerators as are left for it.

    for each row of the inner policy's order, job m on type j:  the rows (m, j, s) of its sizes s, the widest first

The first size that fits is taken, of those no wider than the job's scale factor, so that a job early in the order has
its whole gang and the last one runs on what is left. A job that was given less has its whole gang again, if there is
room, when its lease ends. Rows in which the inner policy chose a size stay as they are.

Example (examples/two_jobs.json). Both jobs have one size only, a single accelerator, so that this is the order of
`fifo`: text was submitted first and gets the v100, image a k80.

Reference: K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 8, where rivals
give accelerators one by one to jobs that run on any number of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order, Rows
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.wrappers.inner import ask, inherit, inner_policy


@dataclass(frozen=True)
class Shrinking:
    """Elastic jobs in the order of another policy, each in the widest size that fits.

    `inner` is any policy that answers with an order.

    Use it when jobs can run on fewer accelerators than they ask for and the order that you want is that of a policy
    that knows one size only.

    The worst-off is the job at the cut: it starts on what is left, and keeps that until its lease ends, while the job
    after it may get nothing.
    """

    inner: str = "fifo"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="shrinking",
        answer_type="order",
        objective="that of the inner policy, on as many accelerators as fit",
        technique="every size of a job as a preference, the widest first",
        paper="Mahajan et al., Themis, NSDI 2020, section 8 (its rivals)",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", elastic=True, preemptive=True),
        needs=frozenset({"shapes", "shape_throughput", "scale_factor", "capacity"}),
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        inherit(self, inner_policy(self.inner, "order"))

    def decide(self, view: View) -> Order:
        """Return the inner policy's rows, each followed by those of the job's smaller sizes."""
        answer = ask(inner_policy(self.inner, "order"), view, Order)
        rows = answer.rows
        if view.shapes.shape[1] == 1 or not len(rows.job):
            return answer
        partner, chosen, within = rows.filled()
        wide = view.shapes[rows.job]  # (row, shape)
        speed = view.shape_throughput[rows.job, :, rows.type]
        runs = (wide > 0) & (wide <= view.scale_factor[rows.job, None]) & (wide <= view.capacity[rows.type, None])
        runs &= (speed > 0) & (partner < 0)[:, None] & (chosen == 0)[:, None]
        size = np.where(runs, wide, 0)
        size[~runs.any(axis=1), 0] = 1  # the row as it is
        shapes = np.argsort(-size, axis=1, kind="stable")
        row, place = np.nonzero(np.take_along_axis(size, shapes, axis=1) > 0)
        shape = np.where(runs[row].any(axis=1), shapes[row, place], chosen[row])
        return replace(
            answer,
            rows=Rows(rows.job[row], rows.type[row], partner=partner[row], shape=shape, within=within[row]),
        )
