"""Lexicographic max-min fairness: maximise the lowest levels, then the next, until no level can rise.

    level_m = z_m · Σ_j T[m,j] X[m,j] / Σ_j T[m,j] E[j]        (rises in proportion to w_m)
    raise all levels together; a level that cannot rise without lowering another stops, the others still rise
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0

X share of time (job, type), T throughput (job, type), z scale factor (job,), w priority weight (job,), C capacity
(type,), E[j] = C[j] / Σ C. The answer is exact: no level can rise without lowering another that is no higher. At most
as many programs as types. With space sharing X has a row for each pair of jobs too, a pair uses its accelerators once,
and there are at most as many programs as distinct kinds and weights of jobs.

Example (examples/two_jobs.json). Σ_j T[m,j] E[j] is 2/3 for text, which cannot use the v100, and 2 for image. Levels
rise together up to 3/2, where text runs on a k80 all the time and cannot rise. Image rises to 4 / 2 = 2, all its time
on the v100.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Bools, Floats
from eunomia.model.certificate import BOUGHT, NO_SHARE, OWN_TIME, Certificate
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.products import dot
from eunomia.model.rounding import rounded
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs, placement_sensitive
from eunomia.policies.shares.options import Placement, Types, check_options
from eunomia.policies.shares.share_inputs import FAIR_AT_ONCE, NEEDS, clip_shares, equal_share, speeds
from eunomia.solvers.water_filling.tree import Tree, flat
from eunomia.solvers.water_filling.waterfill import Filled, fill


def filled(view: View, T: Floats, tree: Tree) -> Filled:
    """Return the exact levels for throughputs T (job, type)."""
    return fill(T, view.scale_factor.astype(float), view.capacity, _need(view, T), tree=tree)


def _need(view: View, T: Floats) -> Floats:
    """Return (job,) the effective throughput at level 1; 1 for a job that no type can run."""
    unit = rounded(dot(T, equal_share(view)) / view.scale_factor, bits=40)
    return np.where(unit > 0, unit, 1.0)


def answer_of(filling: Filled, speed: Floats, order: str = "lexicographic") -> Shares:
    """Return X (job, type) with its certificate: the lowest level / speed (job,), bindings, and the kind of optimum."""
    proof = _proof(filling.level, filling.frozen_in > 0, filling.own, filling.price, filling.gap, speed, order)
    return Shares(clip_shares(filling.x), certificate=proof)


def paired_answer(view: View, T: Floats, tree: Tree, speed: Floats, order: str = "lexicographic") -> Shares:
    """Return rows with partners of exact levels, with the same certificate."""
    filling = pair_programs.filled(view, T, _need(view, T), tree)
    proof = _proof(filling.level, filling.served, filling.own, filling.price, filling.gap, speed, order)
    return pair_programs.shares_of(filling.entries, proof)


def _proof(
    level: Floats, served: Bools, own: Bools, price: tuple[Floats, ...], gap: float, speed: Floats, order: str
) -> Certificate:
    worst = float((level / speed)[served].min()) if served.any() else 0.0
    return Certificate(
        objective=worst,
        bound=worst * (1 + gap),
        price=price[0] if price else None,
        binding=np.where(served, np.where(own, OWN_TIME, BOUGHT), NO_SHARE),
        point=f"{order}, {len(price)} phases",
    )


@dataclass(frozen=True)
class WaterFilling:
    """Max-min fairness for all jobs, not only the worst-off.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when jobs stop at different levels, because some fit on one type only, and those above the worst-off should
    be treated fairly too.

    The worst-off job gets its share under `max_min_fairness`. The second-worst then gets as much as it can, and so on:
    no job could have more without taking it from a job that has no more.
    """

    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="water_filling",
        answer_type="shares",
        objective="the worst-off gets the most, then the next, and so on",
        technique="water filling by phases of capacity prices",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.3",
        taxonomy=FAIR_AT_ONCE,
        needs=NEEDS,
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def decide(self, view: View) -> Shares:
        """Return X (job, type), or rows with partners under space sharing."""
        view = placement_sensitive.at_best_place(view, self.placement)
        T = speeds(view, self.types)
        tree = replace(flat(view.jobs), row_weight=view.weight)
        if self.space_sharing:
            answer = paired_answer(view, T, tree, view.weight)
        else:
            answer = answer_of(filled(view, T, tree), view.weight)
        return placement_sensitive.with_placement(answer, view, self.placement)
