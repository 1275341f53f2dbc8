"""AlloX: least mean completion time by matching jobs to places in the queues of accelerators.

    minimise   Σ_m  k(m) · z_m r_m / T[m, j(m)] + b(m)   over matchings of waiting jobs m to (accelerator, position k)

k counts from the end of an accelerator's queue, where a job delays itself and the k - 1 after it; b seconds until the
accelerator is free, 0 of an idle one and r/T of the job that holds a busy one; r remaining steps (job,), T throughput
(job, type), z scale factor (job,). A job starts if it is the first in the queue of an idle accelerator, and runs to its
end, without preemption; a job that a busy accelerator serves sooner waits for it.

With α < 1 only the jobs of the ⌈α n⌉ tenants with the least progress are matched, n tenants with waiting jobs; anew
after each start, and α is doubled while no job starts. Progress of a tenant is the sum over its running jobs of

    dominant share on the fastest type  ·  T[m, j] / max_j T[m, j]

`queues=machines` is the rule of Gavel's artifact: busy accelerators do not take part, only the max(α n, idle) jobs that
waited longest are matched, n waiting jobs, and of equal matchings its solver's is taken.

The paper has single accelerators only. With `gangs=work` a gang is matched as its work on one accelerator, as in
Gavel's artifact, to idle ones only where all of it fits, and then gets its scale factor: the mean is minimal for single
accelerators, not for gangs. With `gangs=refuse` gangs are refused.

Example (examples/two_jobs.json). Both in the queue of the v100, image first: image ends after 12600 / 4 = 3150 s, text
after 3150 + 12600 / 2 = 9450 s, together 12600 s. Text on a k80 at once would end after 12600 s, together 15750 s. So
text waits although k80s are idle.

Reference: T. N. Le, X. Sun, M. Chowdhury and Z. Liu, "AlloX: Compute Allocation in Hybrid Clusters", EuroSys 2020,
section 4; busy accelerators and the parameter α as in the authors' simulator (github.com/lenhattan86/allox_sim), whose
runs have α from 0.05 to 0.2. `queues=machines`: D. Narayanan et al., OSDI 2020, artifact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.tolerance import RELATIVE
from eunomia.model.view import View
from eunomia.policies.order.type_choice import runnable
from eunomia.solvers.allox_matching import served_first
from eunomia.solvers.assignment import soonest

SINGLES_ONLY = "AlloX matches jobs of a single accelerator; gangs=work admits gangs"
_NEVER = 1e15  # seconds; run time on a type that cannot run the job


@dataclass(frozen=True)
class Allox:
    """Short jobs first, each on a suitable type, without preemption.

    Use it when durations are known, a running job must not be stopped, and the mean completion time counts on a cluster
    of several types.

    The worst-off is a long job: every shorter one precedes it, and it may wait for a fast type while a slow one is
    idle. `alpha` below 1 is for fairness between tenants: only the jobs of that part of them are matched, those that
    get least now. A long job of a tenant with many short ones is helped by neither.
    """

    alpha: Annotated[
        float, Rule(least=0.0, most=1.0, what="the fraction of the tenants whose jobs are matched, 0 to 1")
    ] = 1.0
    queues: Annotated[Literal["types", "machines"], "'types' (busy ones too) or 'machines' (idle ones only)"] = "types"
    gangs: Annotated[Literal["work", "refuse"], "'work' (matched as their work on one) or 'refuse'"] = "work"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="allox",
        answer_type="order",
        objective="least mean completion time without preemption",
        technique="minimum-cost matching of jobs to queue positions",
        paper="Le et al., AlloX, EuroSys 2020",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="yes"),
        needs=frozenset({"throughput", "scale_factor", "capacity", "remaining", "submitted", "on_type"}),
        oracle=True,
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        also_needs(self, {"first_started"} if self.gangs == "refuse" else ())
        also_needs(self, {"tenant", "demand", "host_capacity"} if self.queues == "types" and self.alpha < 1 else ())

    def decide(self, view: View) -> Order:
        """Return the running jobs on their types, then the first job of each idle accelerator's queue."""
        running = np.flatnonzero(view.on_type >= 0)
        busy = np.bincount(view.on_type[running], weights=view.scale_factor[running], minlength=len(view.types))
        idle = np.maximum(view.capacity - busy, 0.0).astype(np.int64)
        refused = self._refused(view)
        waits = (view.on_type < 0) & ~refused
        job, type = self._match(view, idle, waits) if self.queues == "types" else self._oldest(view, idle, waits)
        rows = Rows(np.concatenate((running, job)), np.concatenate((view.on_type[running], type)))
        return Order(rows, refuse=dict.fromkeys(np.flatnonzero(refused).tolist(), SINGLES_ONLY))

    def _refused(self, view: View) -> Bools:
        """Return whether each job is refused, (job,): only gangs that never ran."""
        if self.gangs == "work":
            return np.zeros(view.jobs, dtype=bool)
        return np.asarray((view.scale_factor > 1) & np.isinf(view.first_started))

    def _match(self, view: View, idle: Ints, waits: Bools) -> tuple[Ints, Ints]:
        """Return the jobs to start and their types, those at the head of the longest queues first."""
        idle, on, part = idle.copy(), view.on_type.copy(), self.alpha
        started: list[int] = []
        while (runnable(view) & waits[:, None] & (view.scale_factor[:, None] <= idle)).any():
            chosen, everybody = self._of_least_progress(view, waits, on, part)
            job, type = _heads(view, np.flatnonzero(chosen), idle, on)
            if everybody:
                whole = np.concatenate((np.array(started, dtype=np.int64), job))
                return whole, np.concatenate((on[whole[: len(started)]], type))
            if len(job) == 0:
                part = 2 * part if part > 0 else 2.0 / view.jobs
                continue
            first = int(job[0])
            started.append(first)
            on[first], waits[first] = type[0], False
            idle[type[0]] -= view.scale_factor[first]
        return np.array(started, dtype=np.int64), on[started]

    @staticmethod
    def _of_least_progress(view: View, waits: Bools, on: Ints, part: float) -> tuple[Bools, bool]:
        """Return the waiting jobs of the tenants whose turn it is, (job,), and whether they are all that wait."""
        if part >= 1:
            return waits, True
        owner, earliest = np.unique(view.tenant[waits], return_index=True)
        count = max(math.ceil(part * len(owner) * (1 - RELATIVE)), 1)
        progress = np.bincount(view.tenant, np.where(on >= 0, _progress(view, on), 0.0), minlength=int(owner.max()) + 1)
        owner = owner[np.argsort(earliest, kind="stable")]  # of equals, the tenant whose job waits since longest
        least = owner[rising(progress[owner])[:count]]
        return waits & np.isin(view.tenant, least), count >= len(owner)

    def _oldest(self, view: View, idle: Ints, waits: Bools) -> tuple[Ints, Ints]:
        """Return the jobs to start and their types by the rule of Gavel's artifact."""
        can = runnable(view) & (view.scale_factor[:, None] <= idle)
        waiting = np.flatnonzero(waits & can.any(axis=1))
        most = max(math.floor(self.alpha * len(waiting)), int(idle.sum()))
        oldest = np.sort(waiting[np.argsort(view.submitted[waiting], kind="stable")[:most]])
        if len(oldest) == 0:
            return oldest, oldest
        time = _on_one(view, oldest, can)
        type = np.repeat(np.arange(len(idle)), idle)
        first = served_first(np.minimum(time[:, type], _NEVER), view.at - view.submitted[oldest])
        runs = np.flatnonzero(first >= 0)
        runs = runs[time[first[runs], type[runs]] < np.inf]
        return oldest[first[runs]], type[runs]


def _on_one(view: View, rows: Ints, can: Bools) -> Floats:
    """Return the seconds of the work of some jobs on one accelerator of each type, (row, type); inf = cannot run."""
    time = np.full((len(rows), len(view.types)), np.inf)
    np.divide((view.remaining * view.scale_factor)[rows, None], view.throughput[rows], out=time, where=can[rows])
    return time


def _progress(view: View, on: Ints) -> Floats:
    """Return the progress of each job on its type, (job,): dominant share on the fastest type by relative speed."""
    T, rows = np.where(view.capacity > 0, view.throughput, 0.0), np.arange(view.jobs)
    best = T.argmax(axis=1)
    share = view.scale_factor / np.maximum(view.capacity[best], 1.0)
    share = np.maximum(share, (view.demand / view.host_capacity).max(axis=1, initial=0.0))
    fastest = T[rows, best]
    return np.asarray(share * np.divide(T[rows, on], fastest, out=np.zeros(view.jobs), where=fastest > 0))


def _heads(view: View, rows: Ints, idle: Ints, on: Ints) -> tuple[Ints, Ints]:
    """Return the jobs of `rows` that idle accelerators serve first, and their types, those farthest from the end first.

    on (job,): the type that each job holds, -1 = waiting. The accelerators of a type that are free first have the
    longest queues. A gang that does not fit is passed over.
    """
    free_in = _free_in(view, idle, on)
    type, position = soonest(_on_one(view, rows, runnable(view)), np.isfinite(free_in).sum(axis=1), free_in)
    left, heads = idle.copy(), []
    matched = np.flatnonzero(type >= 0)
    for row in matched[np.lexsort((matched, -position[matched]))].tolist():
        if view.scale_factor[rows[row]] <= left[type[row]]:
            left[type[row]] -= view.scale_factor[rows[row]]
            heads.append(row)
    return rows[heads], type[heads]


def _free_in(view: View, idle: Ints, on: Ints) -> Floats:
    """Return when the accelerators of each type are free, (type, accelerator), ascending; inf = never, or none."""
    runs = np.flatnonzero(on >= 0)
    speed = view.throughput[runs, on[runs]]
    left = np.divide(view.remaining[runs], speed, out=np.full(len(runs), np.inf), where=speed > 0)
    held = np.bincount(on[runs], view.scale_factor[runs], len(idle)).astype(np.int64)
    free_in = np.full((len(idle), 1 + int((idle + held).max(initial=0))), np.inf)
    for j in range(len(idle)):
        free_in[j, : idle[j]] = 0.0
        mine = on[runs] == j
        free_in[j, idle[j] : idle[j] + held[j]] = np.sort(np.repeat(left[mine], view.scale_factor[runs][mine]))
    return free_in
