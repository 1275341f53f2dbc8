"""Dominant resource fairness for jobs that can be divided: shares of time instead of whole gangs.

    dom[m] = max_r d[m,r] / C[r]                       part of what it uses most that job m takes when it always runs
    s[u] = Σ_m X[m] dom[m] / S[u]   over the jobs m of tenant u, which share its part by their weights
    all s rise together; a job stops with all of its time, or where a resource that it takes has run out, and the
    others of its tenant rise faster in its stead

Resources r are the accelerators of each type, of which gang m takes z[m], and the CPUs and GiB of memory of all
machines, where every machine says them: d (job, resource) what a gang takes, C (resource,) what there is, X (job,)
share of time, z scale factor (job,). S[u] is the product of the parts by weight of u and of all tenants above it
among those that have jobs. First everybody rises on its fastest type. What is left is divided anew in the same way
on the next fastest types, and so on.

For a tenant whose jobs are alike s is its dominant share. Where each job can run on one type, and tenants' jobs are
alike, this is the paper's: nobody is better off with an equal part of every resource, or with what another has; nobody
gains by asking for something else; and nobody can have more without another having less. With several types it is only
promised that nothing is left which somebody could still use: two jobs may yet gain by a trade of a fast type for a slow
one (`gandiva_fair`), and who says that it is fastest where few are is served there first.

CPUs and memory bound the shares, and nothing else: leases seat gangs by accelerators, so that gangs with a share sit
wherever accelerators are free, and what they ask for may exceed the totals, which a run tells in a note. Where CPUs or
memory have run out, spare time at least goes to nobody without a share. The mechanism `ideal` carries the shares out
exactly, and `drf` holds the totals at every instant.

Example (examples/two_jobs.json). Both want the v100 first, of which there is one: each has it for half of its time. The
two k80s are enough for both other halves: text runs at (2 + 1) / 2 = 3/2 steps/s, image at (4 + 1) / 2 = 5/2.

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
from eunomia.model.view import View
from eunomia.policies.shares import tickets
from eunomia.policies.shares.share_inputs import speeds, times
from eunomia.solvers.divided import Wishes, divided

_ROUNDING = 1e-9  # of a resource's total


@dataclass(frozen=True, slots=True)
class DrfDivisible:
    """Tenants are equal in the resource of which each has most, to the fraction: `drf` for jobs that take turns.

    Use it when tenants want different types, or some many CPUs and some much memory, jobs may be stopped and resumed,
    and nobody should wait long for a part of what it needs most.

    The worst-off is a tenant whose jobs differ: their dominant shares are added up, though one may be of CPUs and one
    of memory. A job that needs two scarce resources stops rising as soon as one of them has run out.
    """

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="drf_divisible",
        door="shares",
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
        needs=tickets.NEEDS | {"demand", "room"},
        mechanism=ROUNDS,
    )

    def decide(self, view: View) -> Shares:
        """Return X (job, type)."""
        T, room = speeds(view, "aware"), _room(view)
        never = np.asarray((view.demand > view.room).any(axis=1))
        total = np.concatenate((view.capacity, room))
        takes = _takes(view)
        X, left, S = np.zeros(T.shape), total.copy(), tickets.tickets_of(view.tenants, view.tenant)
        by_speed = np.argsort(-T, axis=1, kind="stable")
        for rank in range(len(view.types)):
            j = by_speed[:, rank]
            rows = np.flatnonzero((T[np.arange(view.jobs), j] > 0) & ~never)
            task = takes[rows, j[rows]]
            most = np.maximum(1.0 - X[rows].sum(axis=1), 0.0)
            more = divided(Wishes(task, most, view.weight[rows], view.tenant[rows]), total=total, room=left, weight=S)
            X[rows, j[rows]] = more
            left = np.maximum(left - dot(more, task), 0.0)
        why = dict.fromkeys(np.flatnonzero(never).tolist(), "it asks for more CPUs or memory than there are")
        ended = np.isfinite(room) & (left[len(view.types) :] <= _ROUNDING * room)  # (2,) CPUs, memory
        held_back = never | (view.demand[:, ended] > 0).any(axis=1)
        return Shares(times(X), fill=not held_back.any(), why=why)


def _room(view: View) -> Floats:
    """Return the CPUs and GiB of memory, (2,), that go with the accelerators of this view; of a part, its part."""
    whole = float(view.widest().sum())
    return np.asarray(view.room * (float(view.capacity.sum()) / whole if view.whole is not None and whole > 0 else 1.0))


def _takes(view: View) -> Floats:
    """Return what each gang takes while it runs on a type, (job, type, resource)."""
    on = view.scale_factor[:, None, None] * np.eye(len(view.types))
    beside = np.broadcast_to(view.demand[:, None, :], (*on.shape[:2], view.demand.shape[1]))
    return np.concatenate((on, beside), axis=2)
