"""Tiresias: queues by the service that jobs have had in both dimensions, accelerators × time.

    order by   queue(m) = #{limits ≤ a_m},   then   index = las       who runs and was in that queue already,
                                                                      then who first ran earlier
                                                    index = gittins   G(a_m), the largest first, then the same

a_m = z_m t_m accelerator-seconds since the job came or was last promoted, z scale factor (job,), t run time (job,). G
is the Gittins index of what finished jobs came to: the textbook's, or with `gittins=authors` the formula of the public
simulator, whose Δ is `quantum`; between events it is looked at again in steps of `quantum`. A job that waits `promote`
times as long as it ran goes back into the first queue and starts anew. With `placement=skew` gangs whose model has one
large tensor, more than 0.3 of all its parameters, sit on as few machines as they need, or wait; the others sit
anywhere.

Example (examples/two_jobs.json). Text has had 7560 accelerator-seconds, more than 3250: it is in the second queue.
Image is new and in the first. Image takes the v100, text a k80.

Reference: J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3, and its
public simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo, also_needs, promises
from eunomia.model.rounding import rounded
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.gittins import authors, textbook, thinned
from eunomia.policies.order.tiresias_placement import in_line
from eunomia.policies.order.tiresias_queues import Queues, limits_in, numbers_in

SKEWED = 0.3  # parts of a model's parameters in one tensor: lies between ResNets and VGGs in the paper's table 2
_ROUNDING = 1e-9  # of a quantum


@dataclass(frozen=True)
class Tiresias:
    """Little attained service first, in a few queues, so that jobs of one queue do not interrupt each other.

    `index=gittins` orders each queue by how soon a job is likely to end, judged by the jobs that have finished, or by
    `history` (accelerator-seconds of past jobs, such as `600,600,7200`).

    Use it when durations are unknown, most jobs are short or narrow, and stopping a job costs little.

    The worst-off is a long, wide gang: in the last queue it waits for every newcomer, and starves while they keep the
    cluster full unless `promote` lets it back. Where it must sit closely it also waits for machines to empty.
    """

    index: Literal["las", "gittins"] = "las"
    gittins: Literal["textbook", "authors"] = "textbook"
    limits: float | str = 3250.0
    promote: float = math.inf
    placement: Literal["skew", "anywhere", "consolidate"] = "skew"
    quantum: float = 3250.0
    history: float | str = ""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="tiresias",
        door="order",
        objective="low completion times without knowing durations",
        technique="multi-level feedback queues by attained service, or by Gittins index",
        paper="Gu et al., Tiresias, NSDI 2019",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True, preemptive=True),
        needs=frozenset(
            {"throughput", "scale_factor", "capacity", "on_type", "service", "run_time", "wait", "first_started"}
        ),
        remembers={"queue": -1.0, "served_before": 0.0, "ran_before": 0.0},
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it is {' or '.join(map(repr, words))}")
        if not self.promote > 0:
            raise ValueError(f"promote is {self.promote}; it is a number above 0: how often the time that it ran")
        if not 0 < self.quantum < math.inf:
            raise ValueError(f"quantum is {self.quantum}; it is a number of accelerator-seconds above 0")
        limits_in(self.limits)
        if self.history:
            numbers_in(self.history, "history", "what past jobs came to in accelerator-seconds, above 0")
        also_needs(self, _PLACED[self.placement])
        if self.index == "gittins" and not self.history:
            also_needs(self, {"past_service"})
        plain = self.placement == "anywhere" and math.isinf(self.promote)
        promises(self, complete=plain, separable=plain)

    def decide(self, view: View) -> Order:
        """Return all jobs, the first queue first."""
        queues = Queues(limits_in(self.limits), self.promote)
        served_before, ran_before = view.memory["served_before"].copy(), view.memory["ran_before"].copy()
        anew = queues.promoted(view.service - served_before, view.run_time - ran_before, view.wait)
        served_before[anew], ran_before[anew] = view.service[anew], view.run_time[anew]
        served, ran = view.service - served_before, view.run_time - ran_before
        queue = queues.of(served)
        stays = (view.on_type >= 0) & (queue == view.memory["queue"])
        behind = ~stays if self.index == "las" else -rounded(self._index(view, served))
        order = np.lexsort((np.arange(view.jobs), view.first_started, behind, queue))
        rows, runs = in_line(view, order, self._closely(view))
        again_at = self._again_at(view, queues, served, ran, runs)
        memory = {"queue": queue.astype(np.float64), "served_before": served_before, "ran_before": ran_before}
        return Order(rows, again_at=again_at, memory=memory)

    def _index(self, view: View, served: Floats) -> Floats:
        """Return the Gittins index of each job, (job,)."""
        past = numbers_in(self.history, "history", "") if self.history else view.past_service
        samples = thinned(past)
        return textbook(samples, served) if self.gittins == "textbook" else authors(samples, served, self.quantum)

    def _closely(self, view: View) -> Bools:
        """Return which gangs have to sit on as few machines as they need, (job,)."""
        if self.placement == "anywhere":
            return np.zeros(view.jobs, dtype=bool)
        gang = view.scale_factor > 1
        return gang if self.placement == "consolidate" else np.asarray(gang & (view.skew > SKEWED))

    def _again_at(self, view: View, queues: Queues, served: Floats, ran: Floats, runs: Bools) -> float:
        """Return when the first job comes into another queue, or its index is to be looked at again."""
        if runs.all():
            return math.inf
        going = runs | (view.on_type >= 0)  # who sits closely may not run as counted
        size: Ints = view.scale_factor
        left = queues.demotion_in(served, size)
        if self.index == "gittins":
            step = (np.floor(served / self.quantum + _ROUNDING) + 1) * self.quantum
            left = np.minimum(left, (step - served) / size)
        back = queues.promotion_in(served, ran, view.wait)
        soonest = min(left[going].min(initial=np.inf), back[~runs].min(initial=np.inf))
        return max(view.at + float(soonest), math.nextafter(view.at, math.inf))


_WORDS = {
    "index": ("las", "gittins"),
    "gittins": ("textbook", "authors"),
    "placement": ("skew", "anywhere", "consolidate"),
}
_PLACED = {
    "skew": {"skew", "topology", "holder"},
    "consolidate": {"topology", "holder"},
    "anywhere": frozenset[str](),
}
