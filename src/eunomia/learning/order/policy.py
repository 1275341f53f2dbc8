"""An order that was learnt from finished jobs: the shortest predicted remaining service first.

    key[m] = q(x[m]) + size_weight · ln z[m]

q the network's prediction of the logarithm of the remaining run time, x[m] what a scheduler really has: attained run
time, gang, the service of the tenant's finished jobs, age and time of day; z scale factor. Keys are in steps of `step`,
so that jobs with nearly equal keys do not preempt each other; ties go to jobs that run, then to the earlier submission.
Where a key is not a number, or outside of what any job can take, the whole order is that of `las`.

Example (examples/two_jobs.json). Text has run longer than image, and jobs that have run long are predicted to go on
longer; image is first and gets the v100.

Reference: our own; remaining time by prediction as in S. Hu et al., "Characterization and Prediction of Deep Learning
Workloads in Large-Scale GPU Datacenters", SC 2021, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.learning.order.features import FEATURES, SEEN_RATE, SEEN_SERVICE, TenantHistory, job_features, prior_mean
from eunomia.learning.perceptron import Perceptron
from eunomia.learning.shipped import load_model, tell_training
from eunomia.model import elementary
from eunomia.model.answers import Order
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.rounding import rounded
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.las import Las
from eunomia.policies.order.type_choice import NEEDS, by_fastest, types_if_replanned

WIDTHS = (16, 16)
ARCHITECTURE = {"remaining": [len(FEATURES), *WIDTHS, 1]}
LARGEST = 40.0  # no job takes e⁴⁰ s


@dataclass(frozen=True)
class LearnedOrder:
    """Jobs run by predicted remaining service, least first, without declared durations.

    `model` is a file of `eunomia train order`; without it the shipped one plays. Keys are computed again every `ask_s`
    seconds while jobs wait.

    Use it when durations are unknown and the jobs of a tenant are alike.

    The worst-off is a wide gang of a tenant with long jobs: it waits behind the jobs of tenants with short ones.
    """

    model: str = ""
    size_weight: Annotated[float, Rule(least=0.0, most=2.0, what="a number from 0 to 2")] = 0.5
    step: Annotated[float, Rule(above=0.0, what="a finite number above 0")] = 0.5
    ask_s: Annotated[float, Rule(above=0.0, what="a finite number above 0")] = 900.0

    network: ClassVar[Perceptron]  # that of the model, set for each instance
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="learned_order",
        answer_type="order",
        objective="low completion times without knowing durations",
        technique="learnt: predicted remaining time",
        paper="",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"service", "run_time", "submitted", "tenant", "tenants", "running"},
        memory_columns={SEEN_SERVICE: -1.0, SEEN_RATE: 0.0},
        mechanism=RECALLABLE,
        fallback="las",
    )

    def __post_init__(self) -> None:
        check_fields(self)
        model = load_model(self.model, "order")
        model.check_features(FEATURES)
        object.__setattr__(self, "network", Perceptron.of(model, "remaining"))
        tell_training(self, model)

    def decide(self, view: View) -> Order:
        """Return all jobs, the least key first."""
        history = TenantHistory.at(view)
        keys = self.keys(view, history)
        guarded = not (np.isfinite(keys).all() and (np.abs(keys) < LARGEST).all())
        order = self._fallback(view) if guarded else self._sort(view, keys)
        rows = by_fastest(view, order)
        waits = bool((types_if_replanned(view, rows) < 0).any())
        memory = {**history.memory(view), "guarded": view.memory.get("guarded", np.zeros(())) + guarded}
        return Order(rows, again_at=view.at + self.ask_s if waits else math.inf, memory=memory)

    def keys(self, view: View, history: TenantHistory) -> Floats:
        """Return the key of each job, (job,)."""
        past = prior_mean(history.finished, history.log_service)[view.tenant]
        age = view.at - view.submitted
        x = job_features(view.run_time, view.scale_factor, past, history.finished[view.tenant], age, view.at)
        predicted = self.network(x)[:, 0]
        return np.asarray(predicted + self.size_weight * elementary.log(view.scale_factor.astype(float)))

    def _sort(self, view: View, keys: Floats) -> Ints:
        level = np.floor(rounded(keys / self.step))
        return np.lexsort((np.arange(view.jobs), ~view.running, level))

    def _fallback(self, view: View) -> Ints:
        """Return the jobs by attained service, in the levels of `las`."""
        return np.argsort(np.floor(view.service / Las.quantum), kind="stable")
