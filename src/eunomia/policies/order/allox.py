"""AlloX: least mean completion time by matching jobs to places in the queues of accelerators.

    minimise   Σ_m  k(m) · z_m r_m / T[m, j(m)]   over matchings of jobs m to (idle accelerator of type j, position k)

k counts from the end of an accelerator's queue, where a job delays itself and the k - 1 after it; r remaining steps
(job,), T throughput (job, type), z scale factor (job,). Only the max(α n, idle) jobs that waited longest are matched, n
waiting jobs, so that long jobs are not passed over for ever. The first job of each queue runs to its end, without
preemption. Accelerators of a type are identical, so many matchings are optimal; `queues=machines` takes the one of the
published artifact.

The paper has single accelerators only. With `gangs=work` a gang is matched as its work on one accelerator, as in
Gavel's artifact, and then gets its scale factor: the mean is minimal for single accelerators, not for gangs. With
`gangs=refuse` gangs are refused.

Example (examples/two_jobs.json). Both in the queue of the v100, image first: image ends after 12600 / 4 = 3150 s, text
after 3150 + 12600 / 2 = 9450 s, together 12600 s. Text on a k80 at once would end after 12600 s, together 15750 s. So
text waits although k80s are idle.

Reference: T. N. Le, X. Sun, M. Chowdhury and Z. Liu, "AlloX: Compute Allocation in Hybrid Clusters", EuroSys 2020,
section 4; the parameter α is its fairness knob.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs
from eunomia.model.taxonomy import Taxonomy
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
    idle. `alpha` below 1 matches only the jobs that waited longest, so that fewer can overtake it.
    """

    alpha: float = 1.0
    queues: Literal["types", "machines"] = "types"
    gangs: Literal["work", "refuse"] = "work"

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
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha is {self.alpha}; it is the fraction of the waiting jobs that is matched, 0 to 1")
        if self.queues not in ("types", "machines"):
            raise ValueError(f"queues is {self.queues!r}; it is 'types' (one for all of a type) or 'machines'")
        if self.gangs not in ("work", "refuse"):
            raise ValueError(f"gangs is {self.gangs!r}; it is 'work' (matched as their work on one) or 'refuse'")
        also_needs(self, {"first_started"} if self.gangs == "refuse" else ())

    def decide(self, view: View) -> Order:
        """Return the running jobs on their types, then the first job of each idle accelerator's queue."""
        running = np.flatnonzero(view.on_type >= 0)
        busy = np.bincount(view.on_type[running], weights=view.scale_factor[running], minlength=len(view.types))
        idle = np.maximum(view.capacity - busy, 0.0).astype(np.int64)
        refused = self._refused(view)
        job, type = self._match(view, idle, ~refused)
        rows = Rows(np.concatenate((running, job)), np.concatenate((view.on_type[running], type)))
        return Order(rows, refuse=dict.fromkeys(np.flatnonzero(refused).tolist(), SINGLES_ONLY))

    def _refused(self, view: View) -> Bools:
        """Return whether each job is refused, (job,): only gangs that never ran."""
        if self.gangs == "work":
            return np.zeros(view.jobs, dtype=bool)
        return np.asarray((view.scale_factor > 1) & np.isinf(view.first_started))

    def _match(self, view: View, idle: Ints, admitted: Bools) -> tuple[Ints, Ints]:
        """Return the jobs to start and their types, those at the head of the longest queues first."""
        can = runnable(view) & (view.scale_factor[:, None] <= idle)
        waiting = np.flatnonzero((view.on_type < 0) & can.any(axis=1) & admitted)
        part = self.alpha * len(waiting)
        most = max(math.ceil(part) if self.queues == "types" else math.floor(part), int(idle.sum()))
        oldest = np.sort(waiting[np.argsort(view.submitted[waiting], kind="stable")[:most]])
        if len(oldest) == 0:
            return oldest, oldest
        time = np.full((len(oldest), len(view.types)), np.inf)
        work = (view.remaining * view.scale_factor)[oldest, None]
        np.divide(work, view.throughput[oldest], out=time, where=can[oldest])
        if self.queues == "machines":
            return _queue_heads(time, idle, oldest, view.at - view.submitted[oldest])
        type, position = soonest(time, idle)
        first = np.lexsort((oldest, -position))
        return oldest[first], type[first]


def _queue_heads(time: Floats, idle: Ints, oldest: Ints, waited: Floats) -> tuple[Ints, Ints]:
    """Return the first job of each idle accelerator's own queue and its type; time is (row of oldest, type)."""
    type = np.repeat(np.arange(len(idle)), idle)
    first = served_first(np.minimum(time[:, type], _NEVER), waited)
    runs = np.flatnonzero(first >= 0)
    runs = runs[time[first[runs], type[runs]] < np.inf]
    return oldest[first[runs]], type[runs]
