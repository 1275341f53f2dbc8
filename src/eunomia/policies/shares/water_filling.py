"""Lexicographic max-min fairness: raise the worst-off jobs, then those that can still rise, until nobody can.

    level_m = z_m · Σ_j T[m,j] X[m,j] / Σ_j T[m,j] E[j]        (rises in proportion to w_m)
    raise all levels together; where one cannot rise without lowering another it stops, and the others go on
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), T throughput (job, type), z scale factor (job,), w priority weight (job,), C capacity
(type,), E[j] = C[j] / Σ C. The answer is exact: no job can rise without lowering one that is no better off. At most as
many programs as types.

Example (examples/two_jobs.json). Σ_j T[m,j] E[j] is 2/3 for text, which cannot use the v100, and 2 for image. Levels
rise together up to 3/2, where text runs on a k80 all the time and cannot rise. Image goes on to 4 / 2 = 2, all its time
on the v100.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.certificate import BOUGHT, NO_SHARE, OWN_TIME, Certificate
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares.believed import NEEDS, Types, check_types, equal_share, speeds, times
from eunomia.solvers.filling.tree import Tree, flat
from eunomia.solvers.filling.waterfill import Filled, fill


def filled(view: View, T: Floats, tree: Tree) -> Filled:
    """Return the exact filling of levels for throughputs T (job, type)."""
    unit = (T @ equal_share(view)) / view.scale_factor
    need = np.where(unit > 0, unit, 1.0)  # a job that no type can run gets nothing whatever it needs
    return fill(T, view.scale_factor.astype(float), view.capacity, need, tree=tree)


def answer_of(found: Filled, speed: Floats, order: str = "lexicographic") -> Shares:
    """Return X (job, type) with the lowest level / speed, (job,), what sets each share, and the order it is best in."""
    served = found.frozen_in > 0
    worst = float((found.level / speed)[served].min()) if served.any() else 0.0
    binding = np.where(found.own, OWN_TIME, BOUGHT)
    proof = Certificate(
        objective=worst,
        bound=worst * (1 + found.gap),
        price=found.price[0] if found.price else None,
        binding=np.where(served, binding, NO_SHARE),
        point=f"{order}, {found.phases} phases",
    )
    return Shares(times(found.x), certificate=proof)


@dataclass(frozen=True, slots=True)
class WaterFilling:
    """Max-min fairness that does not stop at the worst-off.

    Use it when jobs are stuck at different levels, because some fit on one type only, and those above the worst-off
    should be treated fairly too.

    The worst-off job gets what `max_min_fairness` gives it. The second-worst then gets as much as it can, and so on:
    whoever has less than another could not have more without taking it from somebody who has no more.
    """

    types: Types = "aware"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="water_filling",
        door="shares",
        objective="the worst-off gets the most, then the next, and so on",
        technique="water filling by phases of capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.3",
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_types(self.types)

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        tree = replace(flat(view.jobs), row_weight=view.weight)
        return answer_of(filled(view, speeds(view, self.types), tree), view.weight)
