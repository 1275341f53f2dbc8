"""Most throughput per cost, with or without deadlines.

    objective = ratio   maximise_X   Σ_m Σ_j T[m,j] X[m,j] v_m  /  Σ_m z_m Σ_j p[j] X[m,j]
    objective = raw     the same with v = 1
    objective = sum     maximise_X   Σ_m Σ_j T[m,j] X[m,j] / p[j]
    subject to          Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0
    with deadlines      Σ_j T[m,j] X[m,j] ≥ r_m / (d_m - t - L) for each job with a deadline d_m

X share of time (job, type), T throughput (job, type), p price per accelerator-hour (type,), z scale factor (job,), C
capacity (type,), r remaining steps (job,), d deadline (job,), t now, L length of a lease (`deadlines`); v_m = 1 / max_j
T[m,j], so that steps count relative to the best type of each model. The raw ratio is the paper's, the ratio the same
with steps made comparable by v; the sum is what its artifact computes, in raw steps. With space sharing X has a row for
each pair of jobs too, which pays for its accelerators once. A ratio alone runs only the cheapest work: give jobs
deadlines, or use `min_cost`. A type without a price costs a millionth of the most expensive one.

Example (examples/two_jobs.json). The v100 costs US$ 2.4 an hour, a k80 US$ 0.4. Text on a k80 does half of its best
speed for 0.4, which is 0.5 / 0.4 = 1.25; image there 0.25 / 0.4 = 0.625, on the v100 1 / 2.4 = 0.42. Any other work
only lowers the ratio, so text runs alone. With deadlines image needs 12600 / 4200 = 3 steps/s, which is 2/3 of its time
on the v100 and 1/3 on a k80.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo, also_needs
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import deadlines, linear_program, pair_programs, placement_sensitive
from eunomia.policies.shares.options import LinearPoint, Placement, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, build_answer, divide, relative_speed, speeds
from eunomia.solvers.fractional_program import best_ratio
from eunomia.solvers.linear import best_total


def prices(view: View) -> Floats:
    """Return p (type,): US$ per accelerator-hour, all above 0."""
    p = view.price
    return np.asarray(np.maximum(p, 1e-6 * max(float(p.max(initial=0.0)), 1e-6)))


def with_late_jobs(answer: Shares, floors: deadlines.DeadlineFloors) -> Shares:
    """Return the answer with the late jobs, and the reasons of all jobs whose floors were dropped."""
    return replace(answer, late=floors.late, why=floors.why())


@dataclass(frozen=True)
class ThroughputPerCost:
    """The most steps per dollar.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when accelerators are paid for by the hour, with `deadlines=true` when jobs have some; without deadlines it
    is a measure of what a dollar can buy rather than a way to run a cluster.

    The worst-off job, whose steps cost the most, gets no share unless a deadline requires it; it runs only in time that
    the others leave idle. When not all deadlines can be met, a set of jobs with the least weight is late, and listed.

    The artifact's policies that the `gavel:` presets ending in `_SLOs` name drop all deadlines when they cannot meet
    them all; here those that can be met are met.
    """

    objective: Annotated[Literal["ratio", "raw", "sum"], "'ratio' (steps per dollar), 'raw' or 'sum'"] = "ratio"
    deadlines: bool = False
    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"
    point: LinearPoint = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="throughput_per_cost",
        answer_type="shares",
        objective="most throughput per dollar, deadlines kept",
        technique="linear-fractional program",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.2",
        taxonomy=Taxonomy(objectives=("cost",), heterogeneity="yes", sharing=("temporal",), preemptive=True),
        needs=NEEDS | {"price"},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.point != "any" and self.objective != "sum":
            raise ValueError(f"point={self.point} needs objective=sum: of a ratio all multiples of a point are as good")
        also_needs(self, deadlines.NEEDS if self.deadlines else ())

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T = speeds(view, self.types)
        z, C, p = view.scale_factor.astype(float), view.capacity, prices(view)
        floors = deadlines.DeadlineFloors.all_kept(np.zeros(view.jobs))
        if self.deadlines:
            floors = deadlines.floors(view, T, space_sharing=self.space_sharing)
        if not T.any():
            return with_late_jobs(build_answer(np.zeros_like(T), 0.0, 0.0), floors)

        def program(floor: Floats) -> Shares:
            if self.space_sharing:
                return _solve_pairs(view, T, p, floor, self.objective)
            if self.objective != "sum":
                worth = T if self.objective == "raw" else relative_speed(T)
                ratio = best_ratio(worth, z[:, None] * p, z, C, rate=T, floor=floor)
                return build_answer(ratio.x, ratio.objective, ratio.bound, price=ratio.total.price)
            optimum = best_total(T / p, z, C, rate=T, floor=floor)
            x = linear_program.choose_optimum(view, T / p, optimum, self.point, rate=T, floor=floor)
            done = float((T / p * x).sum())
            return build_answer(x, done, optimum.bound, price=optimum.price, scale=optimum.scale, point=self.point)

        floors = floors.best_of_equal(lambda tried: _objective(tried.solved(program)))
        answer = placement_sensitive.with_placement(floors.solved(program), view, self.placement)
        return with_late_jobs(answer, floors)


def _objective(answer: Shares) -> float:
    assert answer.certificate is not None
    return answer.certificate.objective


def _solve_pairs(view: View, T: Floats, p: Floats, floor: Floats, objective: str) -> Shares:
    """Return rows with partners; a pair pays for its accelerators once. p (type,), floor (job,)."""
    if objective == "sum":
        return pair_programs.best_total(view, T, np.ones(view.jobs), per_column=1 / p, floor=floor)
    v = np.ones(view.jobs)
    return pair_programs.best_ratio(
        view, T, v if objective == "raw" else divide(v, T.max(axis=1, initial=0.0)), p, floor
    )
