"""Optimus: gangs grow where one accelerator more saves most time.

    gain of job m from n to n' accelerators  =  (Q[m] / f_m(n) − Q[m] / f_m(n')) / (n' − n)

Q remaining steps (job,), f speed of the whole gang in steps/s. Each round every job gets its narrowest shape, in order
of arrival and on its fastest type with room; then, one by one, the step to the next wider shape with the largest gain
is taken, as long as there is a gain and room. Jobs that have done less than a tenth of their steps are not yet well
known: their gains count `young`. The paper adds one worker or one parameter server at a time; here a step leads from
one shape of the job to the next. Time is cut into rounds of 10 minutes; who changes its shape stops and starts again.

With `curves=oracle` Q is what is left. With `curves=fitted` it is what the paper predicts, if that is less: the steps
until the curve 1 / (b k + c) + d through the losses that the job has told falls by less than `flat` of its first loss
in a tenth of the job's steps (the paper: in 10 epochs; here a job has a hundred). It is fitted anew whenever the job
tells a loss (`model.curve_fits`), from the fourth one on. A job whose curve is flat gains nothing by a wider shape, but
runs to its end.

Example (examples/two_jobs.json). Both jobs have one shape only, a single accelerator. Text came first and takes the
v100, where it does 2 steps/s; image takes a k80 and does 1. Nothing is left to be gained.

Reference: Y. Peng, Y. Bao, Y. Chen, C. Wu and C. Guo, "Optimus: An Efficient Dynamic Resource Scheduler for Deep
Learning Clusters", EuroSys 2018, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Array, Floats
from eunomia.model.curve_fits import until_flat
from eunomia.model.policy import LeaseTerms, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.curve_fits import Curves, fits, fitted_curves
from eunomia.policies.order.marginal_gain import NEEDS, MinimumShapes, by_gain

_KNOWN = 0.1  # part of the steps after which a job is well known
_WINDOW = 0.1  # part of the steps in which a curve that is nearly flat falls little


@dataclass(frozen=True)
class Optimus:
    """Every job one accelerator, and more for those whose completion time falls most by it.

    Use it when jobs can run in several sizes, it is known how fast in each and how much work is left, and the mean
    completion time counts.

    The worst-off is a job that hardly gets faster with more accelerators, or can run in one size only: it keeps what it
    began with, and wide rigid gangs find room only after all that came before them.
    """

    young: float = 0.95
    curves: Curves = "oracle"
    flat: float = 0.05

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="optimus",
        door="order",
        objective="least mean completion time of elastic jobs",
        technique="greedy by marginal gain in completion time",
        paper="Peng et al., Optimus, EuroSys 2018",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", elastic=True, preemptive=True),
        needs=NEEDS | {"remaining", "total"},
        oracle=True,
        mechanism=LeaseTerms(length_s=600.0, aligned=True),
    )

    def __post_init__(self) -> None:
        if not 0 < self.young <= 1:
            raise ValueError(f"young is {self.young}; it is what gains of young jobs count, above 0 and up to 1")
        if not 0 < self.flat < 1:
            raise ValueError(f"flat is {self.flat}; it is a part of the first loss, above 0 and below 1")
        fits(self, self.curves)

    def decide(self, view: View) -> Order:
        """Return every job in the shape that it is to run in, the first to come first."""
        speed = view.shape_throughput
        counts = np.where(view.remaining > (1 - _KNOWN) * view.total, self.young, 1.0)
        expected, memory = self._expected(view)
        left = (counts * expected)[:, None, None]
        time = np.divide(left, speed, out=np.zeros(speed.shape), where=speed > 0)
        return replace(by_gain(view, np.arange(view.jobs), MinimumShapes.of(view), -time), memory=memory)

    def _expected(self, view: View) -> tuple[Floats, dict[str, Array]]:
        """Return Q, (job,), and what to remember."""
        if self.curves == "oracle":
            return view.remaining, {}
        curves, memory = fitted_curves(view, slaq=False)
        ahead = until_flat(curves, _WINDOW * view.total, self.flat) - (view.total - view.remaining)
        return np.where(np.isnan(ahead), view.remaining, np.clip(ahead, 0.0, view.remaining)), memory
