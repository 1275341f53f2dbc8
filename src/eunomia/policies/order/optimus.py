"""Optimus: one more accelerator goes to the gang whose completion time falls most by it.

    gain of job m from n to n' accelerators  =  (Q[m] / f_m(n) − Q[m] / f_m(n')) / (n' − n)

Q remaining steps (job,), f throughput of the gang in steps/s. Each round every job gets its narrowest shape, in order
of submission and on its fastest type with free accelerators; then the step to the next wider shape with the largest
gain is taken, again and again while a gain and free accelerators remain. Gains of jobs that have done less than a tenth
of their steps are multiplied by `young`. The paper adds one worker or one parameter server at a time; here a step leads
from one shape of the job to the next. Rounds last 10 minutes; a job that changes its shape stops and starts again.

With `curves=oracle` Q is the true number. With `curves=fitted` it is the authors' prediction, if that is less: the
steps to the end of the first epoch at which the curve 1 / (b k + c) + d, fitted to the losses of the job, has fallen by
no more than `flat` over the last 10 epochs (a job has a hundred). It is refitted after each reported loss
(`model.curve_fits`), from the fourth one on. A job with a flat curve gains nothing by a wider shape, but runs to its
end.

Example (examples/two_jobs.json). Both jobs have one shape only, a single accelerator. Text was submitted first and gets
the v100, where it does 2 steps/s; image gets a k80 and does 1. No wider shape exists.

Reference: Y. Peng, Y. Bao, Y. Chen, C. Wu and C. Guo, "Optimus: An Efficient Dynamic Resource Scheduler for Deep
Learning Clusters", EuroSys 2018, sections 3.1 and 4, and the authors' code (github.com/pengyanghua/optimus), which has
10 epochs, 0.05 and losses as they are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Order
from eunomia.model.arrays import Array, Floats
from eunomia.model.curve_fits import until_flat
from eunomia.model.policy import LeaseTerms, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.curve_fits import Curves, declare_curves, fitted_curves
from eunomia.policies.order.marginal_gain import NEEDS, MinimumShapes, order_by_gain

_YOUNG = 0.1  # fraction of its steps up to which a job is young
_EPOCH = 0.01  # fraction of the steps


@dataclass(frozen=True)
class Optimus:
    """Every job gets its narrowest shape, and more accelerators go where completion time falls most.

    Use it when jobs can run in several sizes with known throughputs, remaining work is known, and the mean completion
    time counts.

    The worst-off is a job that hardly gets faster with more accelerators, or can run in one size only: it keeps its
    narrowest shape, and a wide rigid gang gets accelerators only after all jobs submitted before it.

    `flat`: a curve that has fallen by no more over ten epochs is flat, in units of the loss.
    """

    young: Annotated[
        float, Rule(above=0.0, most=1.0, what="the factor of gains of young jobs, above 0 and up to 1")
    ] = 0.95
    curves: Curves = "oracle"
    flat: Annotated[float, Rule(above=0.0, what="a finite fall of the loss, above 0")] = 0.05

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="optimus",
        answer_type="order",
        objective="least mean completion time of elastic jobs",
        technique="greedy by marginal gain in completion time",
        paper="Peng et al., Optimus, EuroSys 2018",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", elastic=True, preemptive=True),
        needs=NEEDS | {"remaining", "total"},
        oracle=True,
        mechanism=LeaseTerms(length_s=600.0, aligned=True),
    )

    def __post_init__(self) -> None:
        check_fields(self)
        declare_curves(self, self.curves)

    def decide(self, view: View) -> Order:
        """Return every job in its shape, in order of submission."""
        speed = view.shape_throughput
        factor = np.where(view.remaining > (1 - _YOUNG) * view.total, self.young, 1.0)
        expected, memory = self._expected(view)
        left = (factor * expected)[:, None, None]
        time = np.divide(left, speed, out=np.zeros(speed.shape), where=speed > 0)
        return replace(order_by_gain(view, np.arange(view.jobs), MinimumShapes.of(view), -time), memory=memory)

    def _expected(self, view: View) -> tuple[Floats, dict[str, Array]]:
        """Return Q, (job,), and the memory."""
        if self.curves == "oracle":
            return view.remaining, {}
        curves, memory = fitted_curves(view, slaq=False)
        ahead = until_flat(curves, _EPOCH * view.total, self.flat) - (view.total - view.remaining)
        return np.where(np.isnan(ahead), view.remaining, np.clip(ahead, 0.0, view.remaining)), memory
