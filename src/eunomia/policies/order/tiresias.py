"""Tiresias: queues by attained service in two dimensions, accelerators × time.

    order by   queue(m) = #{limits ≤ a_m},   then   index = las       running jobs that were in that queue already,
                                                                      then by first start
                                                    index = gittins   G(a_m), the largest first, then by submission

a_m = z_m t_m accelerator-seconds since submission or the last promotion, z scale factor (job,), t run time (job,).

    G(a) = P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a],   S the service of finished jobs

Δ is the upper limit of the job's queue; the last queue has none, so there G is 1 / E[S − a | S > a]. `gittins=textbook`
takes the Δ with the largest G, and `gittins=authors` is the formula of the public simulator, whose Δ is `quantum`.
Between events G is recomputed in steps of `quantum`. A job that is not in the first queue and whose waits since its
first run, or since its first run after its last promotion, add up to `promote` times as long as it ran since then, is
promoted to the first queue with a = 0. With `placement=skew` gangs whose model has one large tensor, more than 0.3 of
all its parameters, are consolidated on as few machines as possible, or wait; other gangs may be spread.

Example (examples/two_jobs.json). Text has attained 7560 accelerator-seconds, more than 3250: it is in the second queue.
Image is new and in the first. Image gets the v100, text a k80.

Reference: J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 3, and its
public simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Order, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo, also_needs, set_promises
from eunomia.model.promises import Promises
from eunomia.model.rounding import rounded
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import RELATIVE
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, held_by
from eunomia.policies.order.gittins import authors, textbook, to_quantiles, within
from eunomia.policies.order.tiresias_queues import WAITS, Queues, parse_limits, parse_numbers
from eunomia.policies.order.type_choice import by_fastest, types_if_replanned

SKEWED = 0.3  # fraction of a model's parameters in one tensor, between ResNets and VGGs in the paper's table 2
_PLACED = {
    "skew": {"largest_tensor_fraction", "topology", "holder"},
    "consolidate": {"topology", "holder"},
    "anywhere": frozenset[str](),
}


@dataclass(frozen=True)
class Tiresias:
    """Jobs run by attained service in a few queues, least first; jobs of one queue do not preempt each other.

    `index=gittins` orders each queue by how soon a job is likely to end, estimated from finished jobs, or from
    `history` (accelerator-seconds of past jobs, such as `600,600,7200`); there a job does preempt others of its queue.

    Use it when durations are unknown, most jobs are short or narrow, and preemption is cheap.

    The worst-off is a long, wide gang: in the last queue it waits for every new job, and starves while these fill the
    cluster unless `promote` applies. A gang that must be consolidated also waits for free machines.
    """

    index: Literal["las", "gittins"] = "las"
    gittins: Literal["queue", "textbook", "authors"] = "queue"
    limits: float | str = 3250.0
    promote: Annotated[float, Rule(above=0.0, endless=True, what="a number above 0: a multiple of the run time")] = (
        math.inf
    )
    placement: Literal["skew", "anywhere", "consolidate"] = "skew"
    quantum: Annotated[float, Rule(above=0.0, what="a number of accelerator-seconds above 0")] = 3250.0
    history: float | str = ""

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="tiresias",
        answer_type="order",
        objective="low completion times without knowing durations",
        technique="multi-level feedback queues by attained service, or by Gittins index",
        paper="Gu et al., Tiresias, NSDI 2019",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", placement=True, preemptive=True),
        needs=frozenset(
            {
                "throughput",
                "scale_factor",
                "capacity",
                "on_type",
                "service",
                "service_at_last_ask",
                "run_time",
                "waiting_time",
                "first_started",
            }
        ),
        memory_columns={
            "queue": -1.0,
            "served_before": 0.0,
            "ran_before": 0.0,
            **WAITS,
        },  # queue: for readers of records
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        parse_limits(self.limits)
        if self.history:
            parse_numbers(self.history, "history", "the accelerator-seconds of past jobs, above 0")
        also_needs(self, _PLACED[self.placement])
        if self.index == "gittins" and not self.history:
            also_needs(self, {"past_service"})
        plain = self.placement == "anywhere" and math.isinf(self.promote)
        set_promises(
            self,
            Promises(
                covers_all_jobs=plain,
                jobs_independent=plain,
                lone_starts=math.isinf(self.promote) and not plain,
                spread_up_to=SKEWED if self.placement == "skew" else -math.inf,
            ),
        )

    def decide(self, view: View) -> Order:
        """Return all jobs, the first queue first."""
        queues = Queues(parse_limits(self.limits), self.promote)
        served_before, ran_before = view.memory["served_before"].copy(), view.memory["ran_before"].copy()
        served, ran = view.service - served_before, view.run_time - ran_before
        waits = queues.waits(view.waiting_time, ran, view.memory)
        waited = np.add(*waits.values())
        promoted = queues.promoted(served, ran, waited, view.waiting_time > 0)
        if promoted.any():
            served_before[promoted], ran_before[promoted] = view.service[promoted], view.run_time[promoted]
            for column in (served, ran, *waits.values()):
                column[promoted] = 0.0
        queue = queues.of(served)
        before = view.service_at_last_ask - served_before
        stays = (view.on_type >= 0) & (queue == np.where(np.isnan(before), -1, queues.of(before)))
        order = self._order(view, queues, queue, stays, served)
        rows, runs = order_with_placement(view, order, self._consolidated(view))
        again_at = self._again_at(view, queues, served, ran, np.add(*waits.values()), runs)
        memory = {"queue": queue.astype(np.float64), "served_before": served_before, "ran_before": ran_before, **waits}
        return Order(rows, again_at=again_at, memory=memory)

    def _order(self, view: View, queues: Queues, queue: Ints, stays: Bools, served: Floats) -> Ints:
        """Return the jobs, the first queue first, (job,); who `stays` (job,) ran and was in its queue before."""
        row = np.arange(view.jobs)
        if self.index == "las":
            return np.lexsort((row, view.first_started, ~stays, queue))
        return np.lexsort((row, -rounded(self._index(view, served, queues.limit_of(queue))), queue))

    def _index(self, view: View, served: Floats, limit: Floats) -> Floats:
        """Return the Gittins index of each job, (job,), of which `limit` is its queue's."""
        past = parse_numbers(self.history, "history", "") if self.history else view.past_service
        samples = to_quantiles(past)
        if self.gittins == "queue":
            return within(samples, served, limit)
        return textbook(samples, served) if self.gittins == "textbook" else authors(samples, served, self.quantum)

    def _consolidated(self, view: View) -> Bools:
        """Return whether each gang must be on as few machines as possible, (job,)."""
        if self.placement == "anywhere":
            return np.zeros(view.jobs, dtype=bool)
        gang = view.scale_factor > 1
        return gang if self.placement == "consolidate" else np.asarray(gang & (view.largest_tensor_fraction > SKEWED))

    def _again_at(self, view: View, queues: Queues, served: Floats, ran: Floats, waited: Floats, runs: Bools) -> float:
        """Return when the first job changes its queue, or an index must be recomputed."""
        if runs.all():
            return math.inf
        progressing = runs | (view.on_type >= 0)  # a consolidated gang may keep its seats though it would not run
        size: Ints = view.scale_factor
        left = queues.demotion_in(served, size)
        if self.index == "gittins":
            step = (np.floor(served / self.quantum + RELATIVE) + 1) * self.quantum
            left = np.minimum(left, (step - served) / size)
        back = queues.promotion_in(served, ran, waited)
        soonest = min(left[progressing].min(initial=np.inf), back[~runs].min(initial=np.inf))
        return max(view.at + float(soonest), math.nextafter(view.at, math.inf))


def order_with_placement(view: View, order: Ints, consolidated: Bools) -> tuple[Rows, Bools]:
    """Return the candidates, and whether each job would run, (job,), if all accelerators were allocated anew.

    A waiting gang that must be `consolidated` (job,), with enough accelerators free but too far apart, moves to the end
    of the line: there it takes what others leave.
    """
    last = np.zeros(view.jobs, dtype=bool)
    while True:
        line = np.concatenate((order[~last[order]], order[last[order]]))
        rows = by_fastest(view, line)
        type = types_if_replanned(view, rows)
        spread = _spread(view, type, consolidated & ~last) if consolidated.any() else ()
        if not len(spread):
            near = np.where(consolidated[rows.job], ONE_MACHINE, ANYWHERE) if consolidated.any() else None
            return Rows(rows.job, rows.type, within=near), type >= 0
        last[spread] = True


def _spread(view: View, type: Ints, consolidated: Bools) -> list[int]:
    """Return the gangs that could not be consolidated if each job moved to its `type` (job,), -1 = none."""
    moves = np.flatnonzero((type >= 0) & (type != view.on_type))
    if not consolidated[moves].any():
        return []
    free = FreeCapacity(view.topology, (view.holder == FREE) | held_by(view.holder, type != view.on_type))
    widest_first = moves[np.argsort(-view.scale_factor[moves], kind="stable")]
    return [
        m
        for m in widest_first.tolist()
        if free.place(int(type[m]), int(view.scale_factor[m]), one_machine=bool(consolidated[m])) is None
    ]
