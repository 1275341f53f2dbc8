"""Least cost per hour with no job worse off than on an equal part, or late.

    minimise_X   Σ_m z_m Σ_j p[j] X[m,j]
    subject to   Σ_j T[m,j] X[m,j] ≥ I_m            for each job m without a deadline
                 Σ_j T[m,j] X[m,j] ≥ r_m / (d_m - t - L) for each job m with a deadline d_m (`deadlines`)
                 Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), p price per accelerator-hour (type,), z scale factor (job,), T throughput (job, type), C
capacity (type,), r remaining steps (job,), d deadline (job,), t now, L length of a lease (`deadlines`); I_m is the
throughput on an equal part of the cluster. Spare time is not given out. Where not all floors can be met, those of a set
of jobs with the least weight are dropped (`late`), and these jobs get as much of the remaining capacity as they can
use, at any cost. With space sharing X has a row for each pair of jobs too, which pays for its accelerators once; floors
are judged with pairs.

Example (examples/two_jobs.json). Text must do 12600 steps in 12600 s; a k80 does just that for US$ 0.4 an hour. Image
must do 12600 in 4200 s, 3 steps/s: 2/3 of its time on the v100 and 1/3 on a k80, US$ 1.6 and US$ 0.13 an hour. The
cost is US$ 2.13 an hour.

Reference: the cost policies of D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning
Workloads", OSDI 2020, section 4.2; the floor for jobs without a deadline is its sharing incentive, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.equal_share import alone_throughput
from eunomia.model.policy import ROUNDS, PolicyInfo, also_needs
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import RELATIVE
from eunomia.model.view import View
from eunomia.policies.shares import deadlines, linear_program, pair_programs, placement_sensitive
from eunomia.policies.shares.options import LinearPoint, Placement, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, build_answer, divide, relative_speed, speeds
from eunomia.policies.shares.throughput_per_cost import prices, with_late_jobs
from eunomia.solvers.linear import LinearResult, best_total


@dataclass(frozen=True)
class MinCost:
    """Every job is at least as fast as on its equal part, or as its deadline requires, at the least cost.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when users were promised an equal part or a deadline, and every hour beyond the promise is wasted money.

    The worst-off job without a deadline is as fast as on its equal part. A job with a distant deadline is slower than
    that, just fast enough. Where floors conflict, those of a set of jobs with the least weight are dropped: the answer
    lists these jobs, and they get the remaining capacity.
    """

    deadlines: bool = True
    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"
    point: LinearPoint = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="min_cost",
        answer_type="shares",
        objective="least US$ per hour that keeps deadlines and equal parts",
        technique="linear program through capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.2",
        taxonomy=Taxonomy(objectives=("cost", "deadline"), heterogeneity="yes", sharing=("temporal",), preemptive=True),
        needs=NEEDS | {"price"},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self)
        also_needs(self, deadlines.NEEDS if self.deadlines else ())

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T = speeds(view, self.types)
        z, C = view.scale_factor.astype(float), view.capacity
        equal = alone_throughput(T, view.scale_factor, C, view.widest())
        equal *= 1 - RELATIVE  # all equal parts together fill the cluster exactly
        floors = deadlines.DeadlineFloors.all_kept(equal)
        if self.deadlines:
            floors = deadlines.floors(view, T, equal, space_sharing=self.space_sharing)
        cost_rate = np.where(T > 0, z[:, None] * prices(view), 0.0)
        reward = 2 * cost_rate.max(initial=0.0)  # of the full speed of a job with a dropped floor: exceeds any cost
        if self.space_sharing:
            floors = floors.best_of_equal(lambda tried: _cheapest_pairs(view, T, reward, tried)[2])
            answer = placement_sensitive.with_placement(_solve_pairs(view, T, reward, floors), view, self.placement)
            return with_late_jobs(answer, floors)

        def solved(kept: deadlines.DeadlineFloors) -> tuple[Floats, LinearResult, Floats]:
            worth = reward * relative_speed(T) * kept.dropped[:, None] - cost_rate

            def program(floor: Floats) -> tuple[LinearResult, Floats]:
                optimum = best_total(worth, z, C, rate=T, floor=floor)
                return optimum, linear_program.choose_optimum(view, worth, optimum, self.point, rate=T, floor=floor)

            return worth, *kept.solved(program)

        def value(kept: deadlines.DeadlineFloors) -> float:
            worth, _, x = solved(kept)
            return float((worth * x).sum())

        floors = floors.best_of_equal(value)
        worth, optimum, x = solved(floors)
        cost = float((cost_rate * x).sum())
        least = cost - (optimum.bound - float((worth * x).sum()))
        answer = build_answer(
            x, cost, least, price=optimum.price, scale=optimum.scale, point=_point(floors) or self.point
        )
        answer = Shares(answer.x, fill=False, certificate=answer.certificate)
        return with_late_jobs(placement_sensitive.with_placement(answer, view, self.placement), floors)


def _point(floors: deadlines.DeadlineFloors) -> str:
    return "dropped floors come before money: a smaller bill is possible" if floors.dropped.any() else ""


def _solve_pairs(view: View, T: Floats, reward: float, floors: deadlines.DeadlineFloors) -> Shares:
    """Return rows with partners; a pair pays for its accelerators once."""
    answer, cost, _ = _cheapest_pairs(view, T, reward, floors)
    proof = answer.certificate
    assert proof is not None
    proof = replace(proof, objective=cost, bound=cost - (proof.bound - proof.objective), point=_point(floors))
    return replace(answer, fill=False, certificate=proof)


def _cheapest_pairs(
    view: View, T: Floats, reward: float, floors: deadlines.DeadlineFloors
) -> tuple[Shares, float, float]:
    """Return rows with partners, their cost, and the rewarded speed of jobs with dropped floors less that cost."""
    v = np.where(floors.dropped, divide(np.full(view.jobs, reward), T.max(axis=1, initial=0.0)), 0.0)
    answer, cost = floors.solved(lambda floor: pair_programs.cheapest(view, T, v, prices(view), floor))
    assert answer.certificate is not None
    return answer, cost, answer.certificate.objective
