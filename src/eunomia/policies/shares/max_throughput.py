"""Most total throughput, without fairness.

    maximise_X   Σ_m v_m Σ_j T[m,j] X[m,j]
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), T throughput (job, type), z scale factor (job,), C capacity (type,). Raw: v = 1, steps/s,
whose size depends on the model, so that models with small steps win. Normalised: v_m = w_m z_m / max_j T[m,j],
accelerators kept busy at the speed of each job's best type, by priority weight w. By arrival: v_m = (M - m) / max_j
T[m,j] for M jobs, m = 0 the first submitted: FIFO as Gavel's paper writes it as a program (its artifact has a queue).
Agnostic: T[m,j] is the mean speed of the job, on every type that can run it.

Example (examples/two_jobs.json). Time on the v100 instead of a k80 gains image 1 - 1/4 of its best speed, text 1 - 1/2.
So the v100 goes to image, and the objective is 1 + 1/2.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.2 and its artifact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import linear_program, pair_programs, placement_sensitive
from eunomia.policies.shares.options import LinearPoint, Placement, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, build_answer, divide, speeds
from eunomia.solvers.linear import best_total


@dataclass(frozen=True)
class MaxThroughput:
    """The cluster does the most steps; jobs that contribute little may get no share.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when all jobs belong to one owner who values completed work and not waiting times, or you want to know the
    cost of fairness.

    The worst-off job gets no share while others do more on the same accelerators. Give it a weight, or take a fair
    policy.
    """

    normalised: bool = True
    priority: Annotated[Literal["weight", "arrival"], "'weight' or 'arrival' (earlier jobs count for more)"] = "weight"
    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"
    point: LinearPoint = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="max_throughput",
        answer_type="shares",
        objective="most total throughput",
        technique="linear program through capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.2",
        taxonomy=Taxonomy(objectives=("utilisation",), heterogeneity="yes", sharing=("temporal",), preemptive=True),
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.priority == "arrival" and not self.normalised:
            raise ValueError(
                "priority=arrival and normalised=false: ranks count relative speeds; leave one of them out"
            )

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T, z = speeds(view, self.types), view.scale_factor.astype(float)
        rank = view.weight * z if self.priority == "weight" else np.arange(view.jobs, 0.0, -1.0)
        v = divide(rank, T.max(axis=1, initial=0.0)) if self.normalised else np.ones(view.jobs)
        if self.space_sharing:
            return placement_sensitive.with_placement(pair_programs.best_total(view, T, v), view, self.placement)
        worth = T * v[:, None]
        optimum = best_total(worth, z, view.capacity)
        x = linear_program.choose_optimum(view, worth, optimum, self.point)
        done = float((worth * x).sum())
        answer = build_answer(x, done, optimum.bound, price=optimum.price, scale=optimum.scale, point=self.point)
        return placement_sensitive.with_placement(answer, view, self.placement)
