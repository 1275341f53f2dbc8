"""First in, first out; waiting jobs share accelerators with running ones where that pays.

    each job in order of submission:  X[m,j] = 1 on its fastest type j with z_m accelerators left
    from the first that fits nowhere on: the job shares with the running, unshared gang n of its size and type j with
        the largest  T[m|n, j] / T[m, j] + T[n|m, j] / T[n, j]   if that exceeds 1.5; the first job without one ends it

X share of time (job, type), z scale factor (job,), T throughput (job, type), T[m|n, j] that of m beside n, (kind, kind,
type) in the view. The bound of 1.5 is the artifact's: sharing must gain half of a job. Agnostic: each job runs on one
type only, drawn once by capacity; partners are still chosen by their throughputs.

Example (examples/two_jobs.json). There is one v100. Text was submitted first and gets it. Image fits nowhere; beside
each other text keeps 1.6 / 2 and image 3 / 4 of its speed, together 1.55. That is above 1.5, so they share.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 5 (baselines) and its artifact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.inputs.field_rules import Rule
from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.type_choice import REMEMBERS, Types, draw_types
from eunomia.policies.shares.options import PAIRS
from eunomia.policies.shares.share_inputs import NEEDS, divide, speeds


@dataclass(frozen=True, slots=True)
class FifoPacked:
    """Jobs run in submission order; waiting jobs may share accelerators with running ones.

    Use it when jobs should run in submission order, many are too small to fill an accelerator, and pair throughputs are
    known.

    The worst-off is a job behind the first one that fits nowhere and has no partner: the queue ends there. A job that
    shares keeps more than half of its throughput, as the two keep more than 1.5 together.
    """

    least_gain: Annotated[
        float, Rule(above=0.0, most=2.0, what="above 0 and up to 2: what two jobs keep of their speeds together")
    ] = 1.5
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="fifo_packed",
        answer_type="shares",
        objective="serve in order of arrival, two to a gang's seats where that pays",
        technique="queue, then greedy pairs",
        paper="Narayanan et al., Gavel, OSDI 2020, section 5",
        taxonomy=Taxonomy(
            objectives=("utilisation",),
            heterogeneity="partial",
            sharing=("temporal", "spatial"),
            preemptive=True,
        ),
        needs=NEEDS | PAIRS,
        memory_columns=REMEMBERS,
        mechanism=ROUNDS,
        backfills=False,
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def decide(self, view: View) -> Shares:
        """Return whole shares: a row for each gang that runs, with its partner if it has one."""
        T, memory = speeds(view, "aware"), {}
        if self.types == "agnostic":
            memory = {"drawn_type": draw_types(view)}
            T = np.where(memory["drawn_type"][:, None] == np.arange(len(view.types)), T, 0.0)
        job, type, waits = _allocate(view, T)
        partner = partners(view, job, type, waits, self.least_gain)
        return Shares(np.ones(len(job)), Rows(job, type, partner=partner), fill=False, memory=memory)


def _allocate(view: View, T: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the jobs that run, their types, and the waiting jobs, which start with the first that fits nowhere."""
    free = view.capacity.copy()
    able = np.flatnonzero((T > 0).any(axis=1))
    type: list[int] = []
    for m in able.tolist():
        fits = np.where(free >= view.scale_factor[m], T[m], 0.0)
        if not fits.any():
            break
        type.append(int(np.argmax(fits)))
        free[type[-1]] -= view.scale_factor[m]
    return able[: len(type)], np.array(type, dtype=np.int64), able[len(type) :]


def partners(view: View, job: Ints, type: Ints, waits: Ints, least_gain: float) -> Ints:
    """Return (row,) the waiting job that shares with the gang of each row, -1 = none; `waits` is a queue."""
    partner = np.full(len(job), -1, dtype=np.int64)
    for m in waits.tolist():
        gain = _gain(view, m, job, type)
        gain[(partner >= 0) | (view.scale_factor[job] != view.scale_factor[m])] = 0.0
        if gain.max(initial=0.0) <= least_gain:
            break
        partner[int(np.argmax(gain))] = m
    return partner


def _gain(view: View, m: int, job: Ints, type: Ints) -> Floats:
    """Return (row,) the sum of the fractions of their throughputs that m and the gang of each row keep."""
    T, kind = view.throughput, view.job_class
    own = divide(view.packed_throughput[kind[m], kind[job], type], T[m, type])
    other = divide(view.packed_throughput[kind[job], kind[m], type], T[job, type])
    return np.where((own > 0) & (other > 0), own + other, 0.0)
