"""A queue whose gangs get as few machines as an empty cluster would need, or wait.

    order      submission    jobs by arrival
               remaining     jobs by  min_j remaining[m] / T[m, j]
    preempt    false         pending jobs are placed in that order; the first that cannot be ends the pass
               true          all jobs are counted in that order against the accelerators of each type, gangs that do
                             not fit are skipped; running jobs that are skipped stop; pending jobs that are counted are
                             placed in that order where there is a consolidated place, and wait where there is none

T throughput (job, type), remaining steps (job,). A gang takes the smallest hole that holds it, a gang wider than a
machine whole machines and the smallest hole for its rest. Counting ignores places: with `preempt` a job may be
stopped for one that then finds no consolidated place.

Example (examples/two_jobs.json). Text came first and takes its fastest type, the v100. Image gets a k80.

Reference: the simulator of Q. Hu, P. Sun, S. Yan, Y. Wen and T. Zhang, "Characterization and Prediction of Deep
Learning Workloads in Large-Scale GPU Datacenters" (Helios), SC 2021: its fifo, sjf (`order=remaining`) and srtf
(`order=remaining&preempt=true`) with the placement `consolidate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Grants
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, LOST, GrantsBuilder, held_by


@dataclass(frozen=True)
class Consolidated:
    """Gangs wait for seats close together, in the order of a queue.

    `order=submission` serves jobs by submission, `order=remaining` the shortest remaining time first. With `preempt`
    the next in line may interrupt those behind it.

    Use it when gangs must not be spread over more machines than they need, and a queue should decide which job is next.

    The worst-off is a wide gang behind narrow ones: they leave holes on many machines, and it needs whole ones. Without
    `preempt` everybody behind it waits with it.
    """

    order: Literal["submission", "remaining"] = "submission"
    preempt: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="consolidated",
        answer_type="grants",
        objective="serve a queue with every gang on as few machines as it needs",
        technique="queue with consolidated placement",
        paper="Hu et al., Helios, SC 2021 (its fifo, sjf and srtf)",
        taxonomy=Taxonomy(objectives=(), heterogeneity="partial", placement=True),
        needs=frozenset({"scale_factor", "throughput", "on_type", "capacity", "topology", "holder"}),
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        also_needs(self, {"remaining"} if self.order == "remaining" else ())

    def decide(self, view: View) -> Grants:
        """Return seats for gangs that start, and with `preempt` the jobs to stop for them."""
        line = self._line(view)
        starting: Iterable[tuple[int, int]]
        if self.preempt:
            stop, starting = self._counted(view, line)
        else:
            stop, starting = line[:0], ((int(m), -1) for m in line[view.on_type[line] < 0])
        stops = np.zeros(view.jobs, dtype=bool)
        stops[stop] = True
        free = FreeCapacity(view.topology, (view.holder == FREE) | held_by(view.holder, stops))
        return self._placed(view, free, starting).build(stop=stop)

    def _line(self, view: View) -> Ints:
        """Return the jobs that could run on an empty cluster, the next one first."""
        usable = np.where(view.scale_factor[:, None] <= view.capacity, view.throughput, 0.0)
        best = usable.max(axis=1, initial=0.0)
        line = np.arange(view.jobs)
        if self.order == "remaining":
            left: Floats = np.divide(view.remaining, best, out=np.full(view.jobs, np.inf), where=best > 0)
            line = rising(left)
        return np.asarray(line[best[line] > 0])

    def _counted(self, view: View, line: Ints) -> tuple[Ints, list[tuple[int, int]]]:
        """Return the jobs that stop, and those to seat, each with the type on which it was counted."""
        left = view.capacity.astype(np.int64)
        stop, starting = [], []
        for m in line.tolist():
            held, size = int(view.on_type[m]), int(view.scale_factor[m])
            wishes = [held] if held >= 0 else _fastest_first(view, m)
            fits = next((j for j in wishes if size <= left[j]), -1)
            if fits >= 0:
                left[fits] -= size
                if held < 0:
                    starting.append((m, fits))
            elif held >= 0:
                stop.append(m)
        return np.array(sorted(stop), dtype=np.int64), starting

    def _placed(self, view: View, free: FreeCapacity, starting: Iterable[tuple[int, int]]) -> GrantsBuilder:
        """Place gangs, each with its type, in that order; -1 = on any type, the fastest first."""
        empty, given = FreeCapacity(view.topology, view.holder != LOST), GrantsBuilder()
        for m, counted in starting:
            if not free.free.any():
                break
            size = int(view.scale_factor[m])
            for j in _fastest_first(view, m) if counted < 0 else [counted]:
                found = free.place(j, size) if 0 < free.spread(j, size) <= empty.spread(j, size) else None
                if found is not None:
                    given.give(m, j, found)
                    break
            else:
                if not self.preempt:
                    break  # no job overtakes the first in line
        return given


def _fastest_first(view: View, job: int) -> list[int]:
    speed = view.throughput[job]
    return [j for j in np.argsort(-speed, kind="stable").tolist() if speed[j] > 0]
