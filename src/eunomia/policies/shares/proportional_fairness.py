"""Proportional fairness, or Nash welfare: the largest product of throughputs.

    maximise_X   Σ_m w_m log( Σ_j T[m,j] X[m,j] )
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), T throughput (job, type), w priority weight (job,), z scale factor (job,), C capacity
(type,). Units of throughput do not matter: scaling a row of T changes nothing. No other allocation raises the
throughputs by more, in the sum of weighted percentages, than it lowers them. Agnostic: T[m,j] is the mean speed of the
job, on every type that can run it. A job that no type can run is left out. With space sharing X has a row for each pair
of jobs too, and a pair uses its accelerators once.

Example (examples/two_jobs.json). With image on the v100 for a part x of its time, log(2 - x) + log(1 + 3x) is largest
where 1 / (2 - x) = 3 / (1 + 3x), at x = 5/6: image does 7/2 steps/s, text 7/6. With space sharing both are on the v100
all the time: 3 · 1.6 is more than 7/2 · 7/6.

References: F. Kelly, "Charging and rate control for elastic traffic", European Transactions on Telecommunications 8,
1997; D. Narayanan et al., OSDI 2020, artifact (the strategy-proof policy maximises the same before payments).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.model.answers import Shares
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs, placement_sensitive
from eunomia.policies.shares.options import Placement, Types, check_options
from eunomia.policies.shares.share_inputs import FAIR_AT_ONCE, NEEDS, build_answer, speeds
from eunomia.solvers.proportional import fairest_product


@dataclass(frozen=True)
class ProportionalFairness:
    """A balance of fairness and speed: no job starves, and fast types go where they gain the most.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when max-min fairness gives too much to a single slow job, and durations are unknown.

    The worst-off of n jobs of equal weight still gets at least 1/n of its throughput alone on its fastest type, with
    weights at least w_m / Σ w of it.
    """

    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="proportional_fairness",
        answer_type="shares",
        objective="largest product of throughputs (Nash welfare)",
        technique="smooth concave program through capacity prices",
        paper="Kelly 1997; Narayanan et al., Gavel, OSDI 2020",
        taxonomy=FAIR_AT_ONCE,
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T, z = speeds(view, self.types), view.scale_factor.astype(float)
        if self.space_sharing:
            answer = pair_programs.fairest_product(view, T, view.weight)
            return placement_sensitive.with_placement(answer, view, self.placement)
        optimum = fairest_product(T, z, view.capacity, view.weight)
        answer = build_answer(
            optimum.x,
            optimum.objective,
            optimum.bound,
            price=optimum.price,
            scale=float(view.weight.sum()),
            tolerance=1e-6,
        )
        return placement_sensitive.with_placement(answer, view, self.placement)
