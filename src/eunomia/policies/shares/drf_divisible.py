"""Dominant resource fairness with divisible jobs: shares of time instead of whole gangs.

    dom[m] = max_r d[m,r] / C[r]                       dominant share of job m when it runs all the time
    s[u] = Σ_m X[m] dom[m] / S[u]   over the jobs m of tenant u, which share its part by their weights
    all s rise together; a job stops at all of its time, or where a resource that it needs is exhausted, and the other
    jobs of its tenant rise faster instead

Resources r are the accelerators of each type, of which gang m needs z[m], and the CPUs and GiB of memory of all
machines, where every machine declares them: d (job, resource) demand of a gang, C (resource,) totals, X (job,) share of
time, z scale factor (job,). S[u] is the product of the parts by weight of u and of all tenants above it among those
that have jobs. First every job rises on its fastest type. What is left is divided in the same way on the next fastest
types, and so on.

For a tenant with identical jobs s is its dominant share. Where each job can run on one type, and a tenant's jobs are
identical, the paper's properties hold: sharing incentive, envy-freeness, strategy-proofness and Pareto efficiency. With
several types it only holds that nothing usable is left over: two jobs may still gain by trading a fast type for a slow
one (`gandiva_fair`), and a job that claims to be fastest on a rare type is served there first.

CPUs and memory only bound the shares: leases allocate seats by accelerators, so the gangs that run at one time may need
more CPUs or memory than the totals; a run reports that in a note. Where CPUs or memory are exhausted, spare time does
not go to jobs without a share. The mechanism `ideal` carries the shares out exactly, and `drf` respects the totals at
every instant.

Example (examples/two_jobs.json). Both are fastest on the v100, of which there is one: each has it for half of its time.
The two k80s are enough for both other halves: text runs at (2 + 1) / 2 = 3/2 steps/s, image at (4 + 1) / 2 = 5/2.

Reference: A. Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI 2011,
sections 3, 4.1 and 4.3. One type after the other is this project's choice: in the paper a task has one demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.products import dot
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import RELATIVE
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.policies.shares import tickets
from eunomia.policies.shares.share_inputs import clip_shares, speeds
from eunomia.solvers.drf_divisible import Wishes, divided


@dataclass(frozen=True, slots=True)
class DrfDivisible:
    """Tenants get equal dominant shares in fractions of time: `drf` for jobs that take turns.

    Use it when tenants need different types, or some many CPUs and some much memory, jobs may be preempted and resumed,
    and each tenant should soon get a part of its dominant resource.

    The worst-off is a tenant whose jobs differ: their dominant shares are added up, though one may be of CPUs and one
    of memory. A job that needs two scarce resources stops rising as soon as one of them is exhausted.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="drf_divisible",
        answer_type="shares",
        objective="equal dominant shares of tenants, in shares of time",
        technique="water filling over sorted ends",
        paper="Ghodsi et al., NSDI 2011",
        taxonomy=Taxonomy(
            objectives=("fairness",),
            fairness=("tenant", "instant"),
            heterogeneity="partial",
            sharing=("temporal",),
            preemptive=True,
        ),
        needs=tickets.NEEDS | {"demand", "host_capacity"},
        tenant_settings=frozenset({"weight"}),
        mechanism=ROUNDS,
    )

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, room = speeds(view, "aware"), _room(view)
        infeasible = np.asarray((view.demand > view.host_capacity).any(axis=1))
        total = np.concatenate((view.capacity, room))
        demands = _demands(view)
        X, left, S = np.zeros(T.shape), total.copy(), tickets.tickets_of(view.tenants, view.tenant)
        by_speed = np.argsort(-T, axis=1, kind="stable")
        for rank in range(len(view.types)):
            j = by_speed[:, rank]
            rows = np.flatnonzero((T[np.arange(view.jobs), j] > 0) & ~infeasible)
            task = demands[rows, j[rows]]
            most = np.maximum(1.0 - X[rows].sum(axis=1), 0.0)
            more = divided(Wishes(task, most, view.weight[rows], view.tenant[rows]), total=total, room=left, weight=S)
            X[rows, j[rows]] = more
            left = np.maximum(left - dot(more, task), 0.0)
        why = WaitReasons.of(view.jobs, infeasible, Reason("host_capacity"))
        exhausted = np.isfinite(room) & (left[len(view.types) :] <= RELATIVE * room)  # (2,) CPUs, memory
        held_back = infeasible | (view.demand[:, exhausted] > 0).any(axis=1)
        return Shares(clip_shares(X), fill=not held_back.any(), why=why)


def _room(view: View) -> Floats:
    """Return the CPUs and GiB of memory, (2,), of this view; in a part of the cluster, in proportion to capacity."""
    whole = float(view.widest().sum())
    part = float(view.capacity.sum()) / whole if view.whole is not None and whole > 0 else 1.0
    return np.asarray(view.host_capacity * part)


def _demands(view: View) -> Floats:
    """Return the demand of each gang on each type, (job, type, resource)."""
    on = view.scale_factor[:, None, None] * np.eye(len(view.types))
    beside = np.broadcast_to(view.demand[:, None, :], (*on.shape[:2], view.demand.shape[1]))
    return np.concatenate((on, beside), axis=2)
