"""Finish-time fairness as Gavel defines it: no job finishes much later than in isolation.

    minimise_X   max_m  ρ_m,    ρ_m = (t_m + r_m / Σ_j T[m,j] X[m,j]) / (c_m + r_m / I_m)
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), t time since submission (job,), r remaining steps (job,), T throughput (job, type), z scale
factor (job,), C capacity (type,). I_m is the throughput on an equal part of the cluster, x[m,j] = C[j] / (n z_m) for n
jobs, a row whose sum exceeds 1 scaled down to 1; c_m the time that the steps done so far would have taken there, added
up at every ask with the I_m of the ask before. Weights are ignored unless `weighted`, which minimises max_m w_m ρ_m, or
`weighted_speeds`, which divides T[m,j] by w_m and leaves I_m: what the published artifact does with space sharing.
Agnostic: T[m,j] is the mean speed of the job, on every type that can run it; I_m stays that of its own speeds. With a
`reference_type` T[m,j] is the speed on that type where it runs the job, in I_m too: the published artifact with a V100.
Not the auction of Themis, which has the same name.

Example (examples/two_jobs.json). Isolation gives each job a third of the v100: I is 4/3 for text and 2 for image. Text
ran for 7560 s on a k80; in isolation its steps take c = 5670 s, so it is behind. With image on the v100 for a part x of
its time: ρ = (7560 + 12600 / (2 - x)) / (5670 + 9450) for text and (12600 / (1 + 3x)) / 6300 for image. At x = 1/3 both
are 1: text gets most of the v100 and catches up.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.equal_share import alone_throughput
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs, placement_sensitive
from eunomia.policies.shares.makespan import seconds
from eunomia.policies.shares.max_min_program import level_shares
from eunomia.policies.shares.options import Placement, Point, Reference, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, divide, speeds


def alone_time(view: View) -> Floats:
    """Return c (job,): seconds that the completed steps take on an equal part of the cluster."""
    before = view.memory["steps_left"]
    done = np.where(before >= 0, np.maximum(before - view.remaining, 0.0), 0.0)
    return np.asarray(view.memory["alone_time"] + divide(done, view.memory["alone_rate"]))


@dataclass(frozen=True)
class FinishTimeFairness:
    """The largest delay by sharing, relative to isolation, is minimised.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when users were promised a part of the cluster and compare with that, and remaining work is known. A job that
    is behind isolation gets more.

    The worst-off, the job with the largest ρ, gets the least ρ that any allocation can give it. A job that is ahead of
    isolation may get little until the others have caught up.
    """

    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"
    weighted: bool = False
    weighted_speeds: bool = False
    reference_type: Reference = ""
    point: Point = "any"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="finish_time_fairness",
        answer_type="shares",
        objective="least worst finish time, relative to isolation",
        technique="level program with curved demands, through capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.2",
        measure="rho_isolated_max",
        taxonomy=Taxonomy(
            objectives=("fairness",),
            fairness=("job", "long-term"),
            heterogeneity="yes",
            sharing=("temporal",),
            preemptive=True,
        ),
        needs=NEEDS | {"remaining", "submitted", "equal_share_throughput"},
        oracle=True,
        memory_columns={"alone_time": 0.0, "alone_rate": 0.0, "steps_left": -1.0},
        mechanism=ROUNDS,
        names={"reference_type": "accelerator type"},
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.weighted and self.weighted_speeds:
            raise ValueError("weighted=true and weighted_speeds=true: a weight counts once; leave one of them out")

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T = speeds(view, self.types, self.reference_type)
        alone, t, r, rate = alone_time(view), view.at - view.submitted, view.remaining, view.equal_share_throughput
        if self.reference_type:
            rate = alone_throughput(T, view.scale_factor, view.capacity, view.widest())
        w = view.weight if self.weighted else np.ones(view.jobs)
        slower = view.weight if self.weighted_speeds else w
        can = (rate > 0) & (T > 0).any(axis=1)
        need, base, age = (
            np.where(can, r * slower, 0.0),
            np.where(can, alone + divide(r, rate), 1.0),
            np.where(can, t * w, 0.0),
        )
        memory = {"alone_time": alone, "alone_rate": rate, "steps_left": r}
        if self.space_sharing:
            answer = pair_programs.highest_own_level(view, T, need, base=base, age=age, read=seconds)
        else:
            answer = level_shares(view, T, need, base=base, age=age, point=self.point, read=seconds)
        answer = placement_sensitive.with_placement(answer, view, self.placement)
        return replace(answer, memory={**answer.memory, **memory})
