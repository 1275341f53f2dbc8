"""Slurm's fair share: tenants with little decayed usage for their share are first.

    U_raw[u] = ∫ held[u,s] · 2^(-(t - s) / half-life) ds    accelerator-seconds, with those of all tenants below u

    algorithm = fair_tree   L[u] = s[u] / U[u],  s, U parts of weight and of usage among u and its siblings
                            tenants ranked depth first by L, the largest first, ties merged;  F[u] = rank[u] / tenants
    algorithm = classic     E[u] = U[u] + (E[parent] - U[u]) s[u],  U part of all usage; at the top E[u] = U[u]
                            F[u] = 2^(-E[u] / S[u] / dampening),  S[u] = s[u] · s[parent] · …

    order jobs by  F[u] + age_weight · min(age[m] / max_age_s, 1),  the largest first, then by submission

u the tenant of job m, age[m] seconds since its submission, held[u,s] the accelerators that u held at time s, t the
present. Usage is a running sum that decays, so usage of any age counts with what is left of it, and with
`half_life_s=inf` all of it. A tenant that owns both jobs and tenants precedes the tenants below it. A gang that does
not fit gets a reservation (`backfill=easy`, as in Slurm's backfill scheduler), stops the queue (`none`) or is passed
over (`skip`). Job size, partitions, QOS and limits, which are also in Slurm's priority, are left out.

Example (examples/two_jobs.json). A problem has no past usage: both tenants have the factor 1, and text, which was
submitted first, gets its fastest type, the v100. Image gets a k80.

References: SchedMD, "Multifactor Priority Plugin", slurm.schedmd.com/priority_multifactor.html; "Classic Fairshare
Algorithm", slurm.schedmd.com/classic_fair_share.html; "Fair Tree Fairshare Algorithm",
slurm.schedmd.com/fair_tree.html.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model import elementary
from eunomia.model.answers import Misfit, Order
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, set_usage_half_life
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tenants import Tenants
from eunomia.model.view import View
from eunomia.policies.order.decayed_usage import HalfLife, among_siblings, rolled_up, whole_shares
from eunomia.policies.order.type_choice import NEEDS, by_fastest

WEEK_S = 7 * 86400.0
_ROUNDING = 12  # digits of a factor that count
_Positive = Annotated[float, Rule(above=0.0, endless=True, what="a number above 0")]
_MISFIT: dict[str, Misfit] = {"easy": "reserve", "none": "stop", "skip": "skip"}


@dataclass(frozen=True)
class SlurmFairShare:
    """Jobs of tenants with little recent usage for their share run first, without preemption.

    `algorithm=classic` compares usage with shares by 2^(-usage / share), as Slurm did before version 19.05;
    `recalculate_s` is the interval at which priorities are recomputed while jobs wait.

    Use it when users know Slurm, or you want to know what it would do: shares count over weeks, and jobs run
    undisturbed.

    The worst-off is a job of a tenant that used much lately: it waits behind every job of the others until that
    usage has decayed, unless `age_weight` raises its priority. A job submitted to a full cluster waits for an end,
    whatever its share.
    """

    algorithm: Literal["fair_tree", "classic"] = "fair_tree"
    half_life_s: HalfLife = WEEK_S
    dampening: _Positive = 1.0
    age_weight: Annotated[float, Rule(least=0.0, what="a finite number, at least 0, beside the factor's 0 to 1")] = 0.0
    max_age_s: _Positive = WEEK_S
    backfill: Literal["easy", "none", "skip"] = "easy"
    recalculate_s: _Positive = 300.0

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="slurm_fair_share",
        answer_type="order",
        objective="use of the cluster in proportion to shares, over weeks",
        technique="priority by decayed usage against shares, with backfilling",
        paper="Slurm's documentation: priority_multifactor, fair_tree, classic_fair_share",
        taxonomy=Taxonomy(objectives=("fairness",), fairness=("tenant", "long-term"), heterogeneity="partial"),
        needs=NEEDS | {"submitted", "tenant", "tenants", "tenant_usage"},
        tenant_settings=frozenset({"weight"}),
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        set_usage_half_life(self, self.half_life_s)

    def decide(self, view: View) -> Order:
        """Return all jobs, the highest priority first."""
        tenants = view.tenants
        usage = rolled_up(view.tenant_usage, tenants)
        factor = fair_tree(usage, tenants) if self.algorithm == "fair_tree" else classic(usage, tenants, self.dampening)
        age = np.minimum((view.at - view.submitted) / self.max_age_s, 1.0)
        priority = np.round(factor[view.tenant], _ROUNDING) + self.age_weight * age
        order = rising(-priority)
        waits = bool((view.on_type < 0).any())
        return Order(
            by_fastest(view, order),
            _MISFIT[self.backfill],
            again_at=view.at + self.recalculate_s if waits else math.inf,
        )


def classic(usage: Floats, tenants: Tenants, dampening: float = 1.0) -> Floats:
    """Return F = 2^(-E / S / dampening), (tenant,), of usage that includes the tenants below."""
    top = tenants.parent < 0
    total = usage[top].sum()
    U = usage / total if total > 0 else np.zeros(len(usage))
    s = among_siblings(tenants.weight, tenants.parent)
    E, S = U.copy(), whole_shares(tenants.weight, tenants.parent)
    for u in np.flatnonzero(~top).tolist():  # parents precede their children
        E[u] = U[u] + (E[tenants.parent[u]] - U[u]) * s[u]
    return np.asarray(elementary.power(2.0, -E / S / dampening))


def fair_tree(usage: Floats, tenants: Tenants) -> Floats:
    """Return F = rank / tenants, (tenant,), of a depth-first traversal: 1 for the first, equal for ties."""
    s, U = (among_siblings(part, tenants.parent) for part in (tenants.weight, usage))
    L = np.round(np.divide(s, U, out=np.full(len(s), np.inf), where=U > 0), _ROUNDING)
    paths = _paths(L, tenants.parent)
    place = np.unique(-paths, axis=0, return_inverse=True)[1].reshape(-1)
    ahead = np.searchsorted(np.sort(place), place)
    return np.asarray((len(s) - ahead) / len(s))


def _paths(L: Floats, parent: Ints) -> Floats:
    """Return (tenant, depth) the L along the path to each tenant, padded with inf: it precedes the tenants below it."""
    paths: list[list[float]] = []
    for u in range(len(L)):
        paths.append([*(paths[parent[u]] if parent[u] >= 0 else []), float(L[u])])
    deepest = max(map(len, paths), default=0)
    return np.array([[*path, *[np.inf] * (deepest - len(path))] for path in paths]).reshape(len(L), deepest)
