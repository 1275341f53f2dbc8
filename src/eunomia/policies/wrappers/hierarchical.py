"""Hierarchical fairness: tenants share the cluster by weight, the jobs of each tenant share what it gets.

    job m of tenant e rises at the speed  W_e · w_m / Σ w of the jobs of e that can still rise     (inner fairness)
                                          W_e for the first of e's jobs that can still rise         (inner fifo)
    and the speed W_e of e follows in the same way from the tenant above it, to any depth
    level_m = z_m · Σ_j T[m,j] X[m,j] / Σ_j T[m,j] E[j],   water filling as in `water_filling`

W, w weights (tenant,) and (job,), X share of time (job, type), z scale factor (job,), T throughput (job, type), E[j] =
C[j] / Σ C, C capacity (type,). Capacity that a tenant cannot use goes to its siblings. Tenants, their weights and inner
rules are the scenario's `[tenants]`; `inner` overrides the rules: fairness, fifo, or the name of a share policy, which
then divides the accelerators that each tenant at the top gets under fairness among its jobs. With space sharing X has a
row for each pair of jobs too, of one tenant or of two, and a pair uses its accelerators once.

Example (examples/two_jobs.json). Image rises twice as fast as text. With image on the v100 for a part x of its time and
text for 1 - x, that is (1 + 3x) / 2 = 2 · (2 - x) / (4/3), so x = 5/6: image reaches 7/4, text 7/8. With space sharing
both are on the v100 for a part y, image alone for the rest, when text is on a k80: (4 - y) / 2 = 2 · (1 + 0.6y) / (4/3)
at y = 5/14, and image reaches 51/28, text 51/56.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.certificate import IN_TREE
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.products import dot
from eunomia.model.rounding import rounded
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tenants import INNER
from eunomia.model.view import View
from eunomia.policies.order.decayed_usage import top_of
from eunomia.policies.shares import placement_sensitive
from eunomia.policies.shares.options import Placement, Types, check_options
from eunomia.policies.shares.share_inputs import NEEDS, speeds
from eunomia.policies.shares.water_filling import answer_of, filled, paired_answer
from eunomia.policies.wrappers.inner import ask, inherit, inner_policy, join
from eunomia.solvers.water_filling.tree import Inner, Tree

_SPLIT: dict[str, Inner] = {"fairness": "share", "fifo": "first"}


@dataclass(frozen=True)
class Hierarchical:
    """Fairness between tenants first, then within each of them.

    `placement=sensitive` requests one machine for gangs, alone or in pairs, that are slower when spread.

    Use it when the cluster belongs to several groups with agreed parts, each with its own inner rule.

    The worst-off is a job of a tenant with many jobs or little weight: other tenants' shares do not shrink for it. In a
    tenant with the rule `fifo`, later jobs get nothing until the earlier ones can use no more.
    """

    inner: str = "as said"
    types: Types = "aware"
    space_sharing: bool = False
    placement: Placement = "ignored"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="hierarchical",
        answer_type="shares",
        objective="tenants by weight, then the jobs of each, the worst-off first",
        technique="water filling on a tree",
        paper="Narayanan et al., Gavel, OSDI 2020, section 4.3",
        taxonomy=Taxonomy(
            objectives=("fairness",),
            fairness=("tenant", "job", "instant"),
            heterogeneity="yes",
            sharing=("temporal",),
            preemptive=True,
        ),
        needs=NEEDS | {"tenant", "tenants"},
        tenant_settings=frozenset({"inner", "weight"}),
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.space_sharing and self._calls_another:
            raise ValueError(
                f"space_sharing=true and inner={self.inner}: pairs may be of two tenants, and then no part of the "
                f"cluster is one tenant's; leave space_sharing out"
            )
        if self._calls_another:
            inherit(self, inner_policy(self.inner, "shares"))

    @property
    def _calls_another(self) -> bool:
        return self.inner not in ("as said", *_SPLIT)

    def decide(self, view: View) -> Shares:
        """Return X (job, type), rows with partners under space sharing, or the rows of the inner policy."""
        placed = placement_sensitive.at_best_place(view, self.placement)
        T = speeds(placed, self.types)
        tree, ones = self._tree(view), np.ones(view.jobs)
        if self.space_sharing:
            answer = paired_answer(placed, T, tree, ones, IN_TREE)
        else:
            filling = filled(view, T, tree)
            if self._calls_another:
                return self._ask_inner(view, filling.x)
            answer = answer_of(filling, ones, IN_TREE)
        return placement_sensitive.with_placement(answer, placed, self.placement)

    def _tree(self, view: View) -> Tree:
        """Return the tenants as groups, each with its own inner rule, or all with `inner`."""
        tenants = view.tenants
        rules = [self.inner if self.inner in _SPLIT else INNER[rule] for rule in tenants.inner.tolist()]
        return Tree(
            parent=tenants.parent,
            weight=tenants.weight,
            inner=tuple(_SPLIT[rule] for rule in rules),
            group_of=view.tenant,
            row_weight=view.weight,
        )

    def _ask_inner(self, view: View, x: Floats) -> Shares:
        """Return the inner policy's shares of the accelerators of each tenant at the top."""
        inner, top = inner_policy(self.inner, "shares"), top_of(view.tenants)[view.tenant]
        answers = []
        for tenant in np.unique(top).tolist():
            jobs = np.flatnonzero(top == tenant)
            capacity = rounded(dot(view.scale_factor[jobs], x[jobs]), bits=40)
            answers.append((jobs, ask(inner, view.part(jobs, capacity), Shares)))
        return join(view, answers, {}, inner.info.memory_columns)
