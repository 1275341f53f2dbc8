"""Least makespan of the present jobs, without later submissions.

    minimise_X   M = max_m  r_m / Σ_j T[m,j] X[m,j]
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), r remaining steps (job,), T throughput (job, type), z scale factor (job,), C capacity
(type,). Exact: one program for 1/M. Agnostic: T[m,j] is the mean speed of the job, on every type that can run it, or
its speed on the `reference_type` where that runs it, as the published artifact has it with a V100. Time left over
maximises Σ_m Σ_j T[m,j] X[m,j] / max_j T[m,j].

Example (examples/two_jobs.json). Both have 12600 steps left, so they end together when they are equally fast: with
image on the v100 for a part x of its time, 1 + 3x = 2 - x at x = 1/4. Both do 7/4 steps/s and end after 12600 / (7/4) =
7200 s.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.model.answers import Shares
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs, placement_sensitive
from eunomia.policies.shares.max_min_program import level_shares
from eunomia.policies.shares.options import Placement, Point, Reference, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, speeds


def seconds(rate: float) -> float:
    """Return 1 / rate: the makespan in seconds from the fraction of the remaining work that is done per second."""
    return 1.0 / rate if rate > 0 else 0.0


@dataclass(frozen=True)
class Makespan:
    """The last job ends as early as possible.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when a batch of jobs counts as done only when all of it is, and remaining work is known.

    The worst-off here is a short job: it may take as long as the longest. No job ends later than M, as long as no job
    is submitted.
    """

    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"
    reference_type: Reference = ""
    point: Point = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="makespan",
        answer_type="shares",
        objective="least time until the last of today's jobs ends",
        technique="level program through capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.2",
        measure="makespan_s",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="yes", sharing=("temporal",), preemptive=True),
        needs=NEEDS | {"remaining"},
        oracle=True,
        mechanism=ROUNDS,
        names={"reference_type": "accelerator type"},
    )

    def __post_init__(self) -> None:
        check_options(self)

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T, r = speeds(view, self.types, self.reference_type), view.remaining
        if self.space_sharing:
            answer = pair_programs.highest_own_level(view, T, r, read=seconds)
        else:
            answer = level_shares(view, T, r, point=self.point, read=seconds)
        return placement_sensitive.with_placement(answer, view, self.placement)
