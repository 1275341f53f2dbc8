"""Metis: accelerators to elastic jobs by repeated inference of a network that was trained on a delayed reward.

At the start of each slot all accelerators are free; again and again the network sees the jobs with what they have
been given, and chooses one to widen by one shape, or ∅, after which nothing more is given in this slot. It was trained
on the decrease of normalised loss, Σ_m (l_m(t) − l_m(t+1)) / (l_m(0) − l_m(end)), of this slot and, discounted, of
later ones. With several accelerator types each type is a cluster of its own: first for the jobs that run fastest on it,
then what is left for others.

Example (examples/two_jobs.json). Both are fastest on the v100. The loss of image falls more in a slot, as it has done
less of its work; image gets the v100, text a k80.

Reference: "Research on resource scheduling mechanisms for distributed machine learning clusters", master's thesis, 2020
(in Chinese), through published summary notes; state, network and numbers are our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.learning.metis.network import MetisNetwork
from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.metis.slot_world import CHECKPOINT_S, SLOT_S
from eunomia.learning.shipped import load_model, tell_training
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.curve_fits import losses_at, to_fitted_form
from eunomia.model.policy import LeaseTerms, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.curve_fits import Curves, declare_curves, fitted_curves, median_curves
from eunomia.policies.order.marginal_gain import NEEDS, MinimumShapes

HELD = "metis_held"


@dataclass(frozen=True)
class Metis:
    """Accelerators go where a trained network expects the loss to fall, in slots of `slot_s`.

    `model` is a file of `eunomia train metis`; without it the shipped one plays. `curves`: `oracle` knows the learning
    curves, `fitted` fits them to the losses that running jobs report.

    Use it when jobs are elastic and an approximate model soon is worth more than an exact one late.

    The worst-off is a job near the end of its curve: its loss hardly falls any more, so others are given accelerators
    first.
    """

    model: str = ""
    slot_s: Annotated[float, Rule(above=0.0, what="a finite number of seconds above 0")] = SLOT_S
    curves: Curves = "oracle"

    network: ClassVar[MetisNetwork]  # that of the model, set for each instance
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="metis",
        answer_type="order",
        objective="largest decrease of loss, this slot and later",
        technique="learnt: repeated inference, actor-critic with delayed reward",
        paper="master's thesis 2020, Metis",
        taxonomy=Taxonomy(objectives=("accuracy",), heterogeneity="partial", elastic=True, preemptive=True),
        needs=NEEDS | {"remaining", "total", "loss_curve", "submitted"},
        oracle=True,
        memory_columns={HELD: 0.0},
        mechanism=LeaseTerms(length_s=SLOT_S, aligned=True),
        fallback="slaq",
    )

    def __post_init__(self) -> None:
        check_fields(self)
        model = load_model(self.model, "metis")
        object.__setattr__(self, "network", MetisNetwork.of(model))
        tell_training(self, model)
        declare_curves(self, self.curves)

    def decide(self, view: View) -> Order:
        """Return the jobs that get accelerators in this slot, each in its shape."""
        memory: dict[str, Array] = {}
        if self.curves == "oracle":
            curves = to_fitted_form(view.loss_curve, view.total)
        else:
            curves, memory = fitted_curves(view, slaq=True)
            curves = np.where(np.isnan(curves), median_curves(view), curves)
        narrowest = MinimumShapes.of(view)
        free = np.floor(view.capacity).astype(np.int64)
        on, shape, held = np.full(view.jobs, -1), np.zeros(view.jobs, dtype=np.int64), np.zeros(view.jobs)
        fastest = narrowest.speed.argmax(axis=1) if view.jobs else np.zeros(0, dtype=np.int64)
        for only_fastest in (True, False):
            for type in range(len(view.types)):
                able = (on < 0) & narrowest.can[:, :, type].any(axis=1) & ((fastest == type) | (not only_fastest))
                rows = np.flatnonzero(able)
                if free[type] > 0 and len(rows):
                    state, ladder = self._state(view, rows, type, int(free[type]), curves, narrowest)
                    step = self.network.allocate(state)
                    given = step > 0
                    on[rows[given]], held[rows] = type, np.where(given, state.allocated(step), held[rows])
                    shape[rows[given]] = ladder[np.arange(len(rows)), np.maximum(step - 1, 0)][given]
                    free[type] -= int(state.allocated(step).sum())
        chosen = np.flatnonzero(on >= 0)
        found = Rows(chosen, on[chosen], shape=shape[chosen] if view.shapes.shape[1] > 1 else None)
        return Order(found, memory={**memory, HELD: held})

    def _state(
        self, view: View, rows: Ints, type: int, nodes: int, curves: Floats, narrowest: MinimumShapes
    ) -> tuple[SlotState, Ints]:
        """Return the state of some jobs on one type, and the shape of each step of their ladders, (row, step)."""
        none = np.iinfo(np.int64).max
        size = np.where(narrowest.can[rows, :, type], view.shapes[rows], none)
        ladder = np.argsort(size, axis=1, kind="stable")
        size = np.take_along_axis(size, ladder, axis=1)
        speed = np.take_along_axis(view.shape_throughput[rows, :, type], ladder, axis=1)
        steps = (size < none).sum(axis=1)
        at = np.minimum(np.arange(size.shape[1] + 1) - 1, steps[:, None] - 1)
        sizes, rate = (np.take_along_axis(one, np.maximum(at, 0), axis=1) for one in (size, speed))
        sizes[:, 0], rate[:, 0] = 0, 0.0
        held = view.memory[HELD][rows].astype(np.int64)
        useful = self.slot_s - np.where(sizes == held[:, None], 0.0, min(CHECKPOINT_S, self.slot_s))
        curve, total, left = curves[rows], view.total[rows], view.remaining[rows]
        first, last = losses_at(curve, np.zeros(len(rows))), losses_at(curve, total)
        span = np.maximum(first - last, 1e-300)
        ahead = np.minimum((total - left)[:, None] + rate * useful, total[:, None])
        decrease = (losses_at(curve, total - left)[:, None] - losses_at(curve[:, None], ahead)) / span[:, None]
        slot_work = np.maximum(speed[:, 0] / np.maximum(size[:, 0], 1) * self.slot_s, 1e-300)
        state = SlotState(
            nodes=nodes, sizes=sizes, speed=rate * self.slot_s / slot_work[:, None], decrease=decrease, last_step=steps,
            held=held,
            age=(view.at - view.submitted[rows]) / self.slot_s,
            progress=(first - losses_at(curve, total - left)) / span, work_left=left / slot_work,
        )  # fmt: skip
        return state, ladder
