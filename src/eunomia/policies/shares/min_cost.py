"""Least money per hour that leaves nobody worse off than alone, or late.

    minimise_X   Σ_m z_m Σ_j p[j] X[m,j]
    subject to   Σ_j T[m,j] X[m,j] ≥ I_m            for each job m without a deadline
                 Σ_j T[m,j] X[m,j] ≥ r_m / (d_m - t) for each job m with a deadline d_m (`deadlines`)
                 Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), p price per accelerator-hour (type,), z scale factor (job,), T throughput (job, type), C
capacity (type,), r remaining steps (job,), d deadline (job,), t now; I_m is the throughput on an equal part of the
cluster. Spare time is not handed out. Where not all floors can be kept, those of the jobs with the least weight are
dropped (`late`), and these jobs get as much of what is left as they can use, whatever it costs. With space sharing X
has a row for each pair of jobs too, which pays for its accelerators once; promises are judged with pairs.

Example (examples/two_jobs.json). Text has to do 12600 steps in 12600 s; a k80 does just that for US$ 0.4 an hour. Image
has to do 12600 in 4200 s, 3 steps/s: 2/3 of its time on the v100 and 1/3 on a k80, US$ 1.6 and US$ 0.13 an hour. The
bill is US$ 2.13 an hour.

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
from eunomia.model.view import View
from eunomia.policies.shares import deadlines, linear_program, pair_programs
from eunomia.policies.shares.options import LinearPoint, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, build_answer, divide, relative_speed, speeds
from eunomia.policies.shares.throughput_per_cost import prices, with_late_jobs
from eunomia.solvers.linear import best_total

_ROUNDING = 1 - 1e-9  # of an equal part: all equal parts together fill the cluster to the last digit


@dataclass(frozen=True)
class MinCost:
    """Everybody goes at least as fast as alone, or as the deadline asks, for the least money.

    Use it when users were promised an equal part or a deadline, and every hour beyond the promise is money lost.

    The worst-off job without a deadline is as fast as on its equal part. One with a distant deadline is slower than
    that, just fast enough. Where promises clash, those of the least weighted set of jobs are dropped: they are named,
    and go as fast as the others leave room for.
    """

    deadlines: bool = True
    types: Types = "aware"
    space_sharing: bool = False
    point: LinearPoint = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="min_cost",
        door="shares",
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
        T, z, C = speeds(view, self.types), view.scale_factor.astype(float), view.capacity
        alone = alone_throughput(T, view.scale_factor, C) * _ROUNDING
        kept = deadlines.DeadlineFloors.all_kept(alone)
        if self.deadlines:
            kept = deadlines.floors(view, T, alone, space_sharing=self.space_sharing)
        bill = np.where(T > 0, z[:, None] * prices(view), 0.0)
        hurry = 2 * bill.max(initial=0.0)  # worth more than any bill: full speed of a job whose floor is dropped
        if self.space_sharing:
            return with_late_jobs(_paired(view, T, hurry, kept), kept)
        worth = hurry * relative_speed(T) * kept.dropped[:, None] - bill
        found = best_total(worth, z, C, rate=T, floor=kept.floor)
        x = linear_program.chosen(view, worth, found, self.point, rate=T, floor=kept.floor)
        cost = float((bill * x).sum())
        least = cost - (found.bound - float((worth * x).sum()))
        answer = build_answer(x, cost, least, price=found.price, scale=found.scale, point=_point(kept) or self.point)
        return with_late_jobs(Shares(answer.x, fill=False, certificate=answer.certificate), kept)


def _point(kept: deadlines.DeadlineFloors) -> str:
    return "dropped floors come before money: a smaller bill is possible" if kept.dropped.any() else ""


def _paired(view: View, T: Floats, hurry: float, kept: deadlines.DeadlineFloors) -> Shares:
    """Return rows with partners; a pair pays for its accelerators once."""
    v = np.where(kept.dropped, divide(np.full(view.jobs, hurry), T.max(axis=1, initial=0.0)), 0.0)
    answer, cost = pair_programs.cheapest(view, T, v, prices(view), kept.floor)
    proof = answer.certificate
    assert proof is not None
    proof = replace(proof, objective=cost, bound=cost - (proof.bound - proof.objective), point=_point(kept))
    return replace(answer, fill=False, certificate=proof)
