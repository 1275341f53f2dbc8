"""Max-min fairness over effective throughput, aware of accelerator types or not.

    maximise_X   min_m  (z_m / w_m) · Σ_j T[m,j] X[m,j] / Σ_j T[m,j] E[j]
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), T throughput (job, type), z scale factor (job,), w priority weight (job,), C capacity
(type,), E[j] = C[j] / Σ C (time split by capacity). Agnostic: a job is equally fast on every type that can run it. Of
all optima the one with the most Σ_m Σ_j T[m,j] X[m,j] / max_j T[m,j] is returned, so that time that fairness leaves
over is used. A gang wider than a type gets no share of it, and T is 0 there in the normaliser Σ_j T[m,j] E[j] too, so
that its level counts what it could get; the printed formula counts the type. With space sharing X has a row for each
pair of jobs too, and a pair uses its accelerators once.

Example (examples/two_jobs.json). Σ_j T[m,j] E[j] is 4/3 for text and 2 for image. While image is on the v100 for a part
x of its time and text for 1 - x, and on k80s else, their levels are (2 - x) / (4/3) and (1 + 3x) / 2. They are equal at
x = 4/9, where both are 7/6: each gets a sixth more than with equal time. Agnostic: all types count alike, so the v100
is spare time, and the level is 1. With space sharing both are on the v100 together for 10/13 of the time, and the level
is 33/26.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, sections 3.1 and 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.products import dot
from eunomia.model.rounding import rounded
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs, placement_sensitive
from eunomia.policies.shares.max_min_program import level_shares
from eunomia.policies.shares.options import Placement, Point, Types, check_options
from eunomia.policies.shares.share_inputs import FAIR_AT_ONCE, NEEDS, equal_share, speeds


def fair_need(T: Floats, view: View) -> Floats:
    """Return (job,) the effective throughput at level 1: w · Σ_j T[m,j] E[j] / z."""
    need: Floats = dot(T, equal_share(view))
    need *= view.weight
    need /= view.scale_factor
    return rounded(need, bits=40)


@dataclass(frozen=True)
class MaxMinFairness:
    """Maximise the effective throughput of the worst-off job.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when each job should get a share of a mixed cluster that is worth the same to it, and durations are unknown.
    The one to start with.

    The worst-off job gets as much as any allocation can give it; its level is never below the one that equal parts of
    every type would reach, and no job starves. The second-worst job gets no guarantee: `water_filling` gives one.
    """

    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"
    point: Point = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="max_min_fairness",
        answer_type="shares",
        objective="the worst-off job gets the most effective throughput",
        technique="level program through capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.1",
        taxonomy=FAIR_AT_ONCE,
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self, pairs_inside=True)

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T = speeds(view, self.types)
        need = fair_need(T, view)
        if self.space_sharing:
            inside = self.point == "interior"
            answer = (pair_programs.inside_level if inside else pair_programs.highest_level)(view, T, need)
        else:
            answer = level_shares(view, T, need, point=self.point)
        return placement_sensitive.with_placement(answer, view, self.placement)
