"""SLAQ: accelerators go where the loss falls most.

    maximise  Σ_m Δ_m(n_m)   over the accelerators n_m of each job, together at most what there is
    Δ_m(n) = [l_m(p) − l_m(p + f_m(n) · slot / S)] / [l_m(0) − l_m(f_m(1) · slot / S)]

l_m(p) loss of job m when the part p of its S steps is done (`loss_curve`), f speed of the whole gang in steps/s, n = 1
its narrowest shape. Losses of different jobs cannot be compared, so each is told in units of the largest change that
the job has ever seen in a slot: the first one, since curves flatten. Greedy: every job gets its narrowest shape, the
largest decrease per accelerator first; then the step to the next wider shape that adds most per accelerator is taken,
as long as there is room. A job that tells no losses is believed to follow the median curve.

Example (examples/two_jobs.json). Both jobs are about to begin, so a slot on its fastest type is worth 1 to each; text
came first and takes the v100 (2 steps/s), image is left a k80 (1 step/s).

Reference: H. Zhang, L. Stafman, A. Or and M. J. Freedman, "SLAQ: Quality-Driven Scheduling for Distributed Machine
Learning", SoCC 2017, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Floats
from eunomia.model.curves import losses
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.elastic import NEEDS, Narrowest, by_gain


@dataclass(frozen=True, slots=True)
class Slaq:
    """Whoever still learns fast gets the accelerators; `slot_s` is how far ahead losses are predicted.

    Use it when models that are nearly as good as they will get may wait for others that are not, as in exploration
    where a roughly right model soon is worth more than a fine one late.

    The worst-off is a job near the end of its curve: its loss hardly falls any more, so it runs last and narrow, and
    waits while young jobs keep coming.
    """

    slot_s: float = 360.0

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="slaq",
        door="order",
        objective="largest decrease of loss per slot",
        technique="greedy by predicted loss decrease",
        paper="Zhang et al., SLAQ, SoCC 2017",
        taxonomy=Taxonomy(objectives=("accuracy",), heterogeneity="partial", elastic=True, preemptive=True),
        needs=NEEDS | {"remaining", "total", "loss_curve"},
        oracle=True,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        if not 0 < self.slot_s < math.inf:
            raise ValueError(f"slot_s is {self.slot_s}; it is a finite number of seconds above 0")

    def decide(self, view: View) -> Order:
        """Return every job in the shape that it is to run in, the largest decrease of loss first."""
        narrowest = Narrowest.of(view)
        worth = self._worth(view, narrowest.speed.max(axis=1, initial=0.0))
        first = np.take_along_axis(worth, narrowest.shape[:, None, :], axis=1)[:, 0]  # (job, type)
        each = np.where(narrowest.speed > 0, first / narrowest.size, 0.0).max(axis=1, initial=0.0)
        return by_gain(view, np.argsort(-each, kind="stable"), narrowest, worth)

    def _worth(self, view: View, narrow: Floats) -> Floats:
        """Return Δ, (job, shape, type); narrow (job,) is the speed in the narrowest shape."""
        curve, done = view.loss_curve, 1.0 - view.remaining / view.total
        slot = self.slot_s / view.total
        largest = curve[:, 0] - losses(curve, narrow * slot)
        then = losses(curve[:, None, None], done[:, None, None] + view.shape_throughput * slot[:, None, None])
        change = losses(curve, done)[:, None, None] - then
        return np.divide(change, largest[:, None, None], out=np.zeros(change.shape), where=largest[:, None, None] > 0)
