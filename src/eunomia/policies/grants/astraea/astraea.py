"""Long-term accelerator-time fairness by leases: tenants get their quotas over hours, jobs their part of them.

    Q[u] = ⌊ C · w[u] / Σ w ⌋,   dD[m]/dt = min( z[m], S[u] · v[m] / Σ v ),   ρ[m] = U[m] / D[m]

Whenever accelerators come free or a job is submitted, pending jobs and those whose leases have ended compete:

    phase 0    a gang that waited for `starvation_s` and fits its tenant's quota starts, or has accelerators set aside
    phase 1    tenants: those that hold less than a fifth of their quotas, then the least used ÷ entitled (LTGF window)
    phase 2    jobs of a tenant: starving ones, then the least ρ; a job that does not fit holds up those behind it

A job that is chosen again keeps its devices for another lease, at no cost. While no job waits that is every job: with
`quota=fair` the policy is not asked then, and leases end again where they would have ended once a job waits. A job that
never ran may end leases of its tenant that are younger than `delay_s`, the most over-served first; those jobs are
checkpointed, and wait.

C accelerators, w and v weights of tenants and jobs, z scale factor, U used and D deserved accelerator-seconds. S is a
declared quota, else the share by weight among tenants with demand, a fraction (in the paper Q). `quota`: "fair" lends
everything that is idle, "static" nothing, "dynamic" up to `lend` times a quota, and takes it back. `selection` ranks a
tenant's jobs otherwise: by classes of ρ, by these and the chance to be done in a lease (`job_reward`: from the
accelerator-seconds of all jobs that ended; the artifact means durations by width, and never builds them), by
finish-time fairness (`themis`), least run (`2das`), least wide, least remaining, submission, or a draw at each
decision. The lease of a gang wider than `exempt_above` (the artifact's option: 32) does not end.

Example (examples/two_jobs.json). Of three accelerators the quota of each tenant is ⌊3 / 2⌋ = 1. Neither holds any or
used any in the last hours, so speech, which is named first, is served first: text takes the v100, image gets a k80.

The paper counts 5 s for a checkpoint and 20 s for a resume: `[overheads] checkpoint_s = 5, restore_s = 20` charges them
to jobs that resume.

Reference: Z. Ye, P. Sun, W. Gao, T. Zhang, X. Wang, S. Yan and Y. Luo, "ASTRAEA: A Fair Deep Learning Scheduler for
Multi-Tenant GPU Clusters", TPDS 33(11), 2022, and its published artifact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.policy import LeaseTerms, PolicyInfo, also_needs, set_promises
from eunomia.model.promises import Promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, held_by
from eunomia.policies.grants.astraea.phases import AstraeaTerms, DecisionBudget
from eunomia.policies.grants.astraea.selection import FAIR, KEYS, ORACLE, Keys, Selection, SelectionInputs, chances
from eunomia.policies.grants.astraea.tenant_order import NEVER, YOUNGEST_S, TenantOrder, fresh, given_at, ratio, refusal

_NotNegative = Annotated[float, Rule(least=0.0, endless=True, what="at least 0")]
QuotaRule = Literal["fair", "static", "dynamic"]
BACK_S = 10.0  # seconds after which a job that was put out may be placed again
LEASE_S = 900.0


@dataclass(frozen=True)
class Astraea:
    """Everybody's used over deserved accelerator-time is kept near to one, tenants' first, then jobs'.

    Use it when tenants paid for parts of one cluster, how long jobs last is unknown, and idle quotas should be lent.

    The worst-off is a wide gang: it waits until so many seats are free at once, with its tenant's jobs behind it, and
    has seats set aside only when it has waited for `starvation_s`. A job wider than its tenant's quota is refused.
    """

    selection: Selection = "fairness"
    quota: QuotaRule = "fair"
    block: bool = True
    starvation_s: _NotNegative = 21600.0
    delay_s: _NotNegative = 300.0
    window_h: Annotated[int, Rule(least=1, what="at least 1")] = 24
    lend: Annotated[float, Rule(least=1.0, endless=True, what="at least 1")] = 1.2
    exempt_above: _NotNegative = math.inf

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="astraea",
        answer_type="grants",
        objective="fair accelerator-time over the long term, for tenants and their jobs",
        technique="two-phase max-min over leases",
        paper="Ye et al., ASTRAEA, TPDS 2022",
        taxonomy=Taxonomy(
            objectives=("fairness",),
            fairness=("tenant", "job", "long-term"),
            heterogeneity="partial",
            placement=True,
            preemptive=True,
        ),
        needs=frozenset(
            {
                "scale_factor", "submitted", "throughput", "tenant", "tenants", "service", "fair_share_service",
                "tenant_hourly_usage", "run_time", "waiting_time", "lease_end", "longest_lease", "first_started",
                "on_type", "topology", "holder",
            }
        ),
        tenant_settings=frozenset({"quota", "weight"}),
        memory_columns={"leased_at": NEVER},
        mechanism=LeaseTerms(length_s=LEASE_S),
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_fields(self)
        also_needs(self, {"remaining"} if self.selection in ORACLE else ())
        also_needs(self, {"past_service"} if self.selection == "job_reward" else ())
        set_promises(self, Promises(renews_leases=self.quota == "fair"))

    def decide(self, view: View) -> Grants:
        """Return seats for jobs that start or continue, and the jobs to stop."""
        seen = TenantOrder.of(view, self.window_h)
        starving = (view.on_type < 0) & (view.waiting_time >= self.starvation_s)
        leased_at = given_at(view)
        may_end = (
            fresh(view, seen, leased_at, self.delay_s) if self.selection in FAIR and self.quota == "fair" else NO_INTS
        )
        terms = AstraeaTerms(self.quota, self.block, _lease(view), self.lend, self.exempt_above)
        decision = DecisionBudget(view, seen, self._keys(view), starving & seen.competes, may_end, terms)
        decision.decide()
        job = np.array(sorted(decision.placed), dtype=np.int64)
        rows = Rows(job, np.array([decision.placed[m] for m in job.tolist()], dtype=np.int64))
        put_out = np.array(decision.stopped, dtype=np.int64)
        leased_at[job] = view.at
        row, device = _devices(view, seen, rows, put_out, list(decision.placed))
        stops = seen.over.copy()
        stops[job], stops[put_out] = False, True
        too_wide = np.flatnonzero(seen.too_wide).tolist()
        return Grants(
            rows,
            row,
            device,
            np.full(len(rows), np.nan),
            stop=np.flatnonzero(stops),
            again_at=self._again_at(view, job, leased_at, len(put_out) > 0),
            memory={"leased_at": leased_at},
            refuse={m: refusal(view, seen, m) for m in too_wide},
        )

    def _keys(self, view: View) -> Keys:
        """Return what jobs are ranked by."""
        remaining, chance = np.full(view.jobs, np.inf), np.ones(view.jobs)
        if self.selection in ORACLE:
            best = view.throughput.max(axis=1, initial=0.0)
            np.divide(view.remaining, best, out=remaining, where=best > 0)
        if self.selection == "job_reward":
            chance = chances(view.past_service, view.service, view.scale_factor.astype(float) * _lease(view))
        known = SelectionInputs(
            submitted=view.submitted,
            size=view.scale_factor,
            fairness=ratio(view.service, view.fair_share_service, unknown=0.0),
            is_new=view.fair_share_service <= 0,
            ran=view.run_time,
            life=view.at - view.submitted,
            remaining=remaining,
            chance=chance,
            draw=view.rng().permutation(view.jobs) if self.selection == "random" else view.submitted,
        )
        return KEYS[self.selection](known)

    def _again_at(self, view: View, seated: Ints, leased_at: Floats, put_out: bool) -> float:
        """Return when a job begins to starve, a lease may end for a new job, or a preempted job is pending again."""
        waits = view.on_type < 0
        waits[seated] = False
        coming: Floats = view.at - view.waiting_time[waits] + self.starvation_s
        new = waits & np.isinf(view.first_started)
        if self.delay_s > YOUNGEST_S and new.any():
            gives = ~waits & np.isin(view.tenant, view.tenant[new])
            coming = np.append(coming, leased_at[gives] + YOUNGEST_S)
        back = view.at + BACK_S if put_out else math.inf
        return float(np.min(coming[coming > view.at], initial=back))


def _lease(view: View) -> float:
    """Return the seconds that a lease lasts; those of the paper where it has no end."""
    return LEASE_S if math.isinf(view.longest_lease) else view.longest_lease


def _devices(view: View, seen: TenantOrder, rows: Rows, put_out: Ints, line: list[int]) -> tuple[Ints, Ints]:
    """Return entry of `rows` and device, by seat. Jobs are placed in order of `line`, each on the fewest nodes.

    The devices of `put_out` and of ended leases are free, but for those of jobs that keep their devices.
    """
    stays, place = np.zeros(view.jobs, dtype=bool), np.full(view.jobs, -1)
    stays[rows.job] = seen.over[rows.job] & (view.on_type[rows.job] == rows.type)
    place[rows.job] = np.arange(len(rows))
    kept = np.flatnonzero(held_by(view.holder, stays)) if stays.any() else NO_INTS
    row, device = [place[view.holder[kept]]], [kept]
    comes = [m for m in line if not stays[m]]
    if comes:
        leaving = seen.over & ~stays
        leaving[put_out] = True
        free = FreeCapacity(view.topology, (view.holder == FREE) | held_by(view.holder, leaving))
    for m in comes:
        found = free.place(int(rows.type[place[m]]), int(view.scale_factor[m]))
        assert found is not None  # they were counted
        row.append(np.full(len(found), place[m]))
        device.append(found)
    return np.concatenate(row), np.concatenate(device)
