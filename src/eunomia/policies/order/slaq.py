"""SLAQ: accelerators go where the loss falls most.

    maximise  Σ_m Δ_m(n_m)   over the accelerators n_m of each job, together at most what there is
    Δ_m(n) = [l_m(k) − l_m(k + f_m(n) · slot)] / max_{i < k} [l_m(i) − l_m(i + 1)]

l_m(k) loss of job m after k of its steps, f throughput of the gang in steps/s. Losses of different jobs cannot be
compared, so each is in units of the job's largest change in one step so far, the first step's before it has run: of two
jobs that are equally far, the one whose steps are short counts more. Greedy: every job gets its narrowest shape, the
largest decrease per accelerator first; then, while accelerators are free, the step to the next wider shape that adds
most per accelerator.

With `curves=oracle` l is known (`loss_curve`). With `curves=fitted` it is the curve 1 / (a k² + b k + c) + d or μ^(k −
h) + d that is nearest to the reported losses of the job (`model.curve_fits`), refitted after each new loss. Jobs with
too few losses are assumed to follow the median curve.

Example (examples/two_jobs.json). Neither job has run, so both are in units of their first step's change, 1 − 1 / (1 +
20 / 12600) = 0.001585. In a slot on the v100 image does 1440 steps, and its loss falls by 0.696, 439 units; text does
720, 0.533 or 337 units. Image gets the v100 (4 steps/s), text a k80 (1 step/s).

Reference: H. Zhang, L. Stafman, A. Or and M. J. Freedman, "SLAQ: Quality-Driven Scheduling for Distributed Machine
Learning", SoCC 2017, section 4. The paper's text was not to be had: the unit and the weights are from notes on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Order
from eunomia.model.arrays import Array, Floats
from eunomia.model.curve_fits import largest_change, losses_at, to_fitted_form
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.curve_fits import Curves, declare_curves, fitted_curves, median_curves
from eunomia.policies.order.marginal_gain import NEEDS, MinimumShapes, order_by_gain


@dataclass(frozen=True)
class Slaq:
    """Accelerators go to jobs whose loss falls fast; `slot_s` is how far ahead losses are predicted.

    `curves`: `oracle` knows all curves, `fitted` fits them to the losses that running jobs report.

    Use it when nearly converged jobs may wait for others, as in exploration, where an approximate model soon is worth
    more than an exact one late.

    The worst-off is a job near the end of its curve: its loss hardly falls any more, so it runs last and in its
    narrowest shape, and waits while new jobs are submitted.
    """

    slot_s: Annotated[float, Rule(above=0.0, what="a finite number of seconds above 0")] = 360.0
    curves: Curves = "oracle"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="slaq",
        answer_type="order",
        objective="largest decrease of loss per slot",
        technique="greedy by predicted loss decrease",
        paper="Zhang et al., SLAQ, SoCC 2017",
        taxonomy=Taxonomy(objectives=("accuracy",), heterogeneity="partial", elastic=True, preemptive=True),
        needs=NEEDS | {"remaining", "total", "loss_curve"},
        oracle=True,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        declare_curves(self, self.curves)

    def decide(self, view: View) -> Order:
        """Return every job in its shape, the largest decrease of loss first."""
        narrowest = MinimumShapes.of(view)
        curves, memory = self._curves(view)
        worth = self._worth(view, curves)
        first = np.take_along_axis(worth, narrowest.shape[:, None, :], axis=1)[:, 0]  # (job, type)
        per_accelerator = np.where(narrowest.speed > 0, first / narrowest.size, 0.0).max(axis=1, initial=0.0)
        return replace(order_by_gain(view, rising(-per_accelerator), narrowest, worth), memory=memory)

    def _curves(self, view: View) -> tuple[Floats, dict[str, Array]]:
        """Return the believed curve of each job, (job, 5), and the memory."""
        if self.curves == "oracle":
            return to_fitted_form(view.loss_curve, view.total), {}
        curves, memory = fitted_curves(view, slaq=True)
        return np.where(np.isnan(curves), median_curves(view), curves), memory

    def _worth(self, view: View, curves: Floats) -> Floats:
        """Return Δ, (job, shape, type)."""
        done = view.total - view.remaining
        largest = largest_change(curves, done)
        then = losses_at(curves[:, None, None], done[:, None, None] + view.shape_throughput * self.slot_s)
        change = losses_at(curves, done)[:, None, None] - then
        return np.divide(change, largest[:, None, None], out=np.zeros(change.shape), where=largest[:, None, None] > 0)
