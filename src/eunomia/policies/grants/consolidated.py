"""A queue whose gangs sit on as few machines as an empty cluster would need, or wait.

    order      submission    jobs by arrival
               remaining     jobs by  min_j remaining[m] / T[m, j]
    preempt    false         waiting jobs are seated in that order; the first that cannot be ends the pass
               true          all jobs are counted off in that order against the accelerators of each type, gangs that
                             do not fit left out; who runs and is left out stops; who waits and is counted is seated
                             in that order where it can sit closely, and waits where it cannot

T throughput (job, type), remaining steps (job,). A gang takes the smallest hole that holds it, a gang wider than a
machine whole machines and the smallest hole for its rest. Counting does not know where seats are: with `preempt` a job
may be stopped for one that then cannot sit closely.

Example (examples/two_jobs.json). Text came first and takes its fastest type, the v100. Image gets a k80.

Reference: the simulator of Q. Hu, P. Sun, S. Yan, Y. Wen and T. Zhang, "Characterization and Prediction of Deep
Learning Workloads in Large-Scale GPU Datacenters" (Helios), SC 2021: its fifo, sjf (`order=remaining`) and srtf
(`order=remaining&preempt=true`) with the placement `consolidate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import ENDLESS, PolicyInfo, also_needs
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity

Seats = tuple[int, int, Ints]  # job, type, devices


@dataclass(frozen=True)
class Consolidated:
    """Gangs wait for seats close together, in the order of a queue.

    `order=submission` serves who came first, `order=remaining` who will be done first. With `preempt` the next in line
    may interrupt those behind it.

    Use it when gangs must not be spread over more machines than they need, and a queue should decide who is next.

    The worst-off is a wide gang behind narrow ones: they leave holes on many machines, and it needs whole ones. Without
    `preempt` everybody behind it waits with it.
    """

    order: Literal["submission", "remaining"] = "submission"
    preempt: bool = False

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="consolidated",
        door="grants",
        objective="serve a queue with every gang on as few machines as it needs",
        technique="queue with consolidated placement",
        paper="Hu et al., Helios, SC 2021 (its fifo, sjf and srtf)",
        taxonomy=Taxonomy(objectives=(), heterogeneity="partial", placement=True),
        needs=frozenset({"scale_factor", "throughput", "on_type", "capacity", "topology", "holder"}),
        mechanism=ENDLESS,
    )

    def __post_init__(self) -> None:
        if self.order not in ("submission", "remaining"):
            raise ValueError(f"order is {self.order!r}; it is 'submission' or 'remaining'")
        also_needs(self, {"remaining"} if self.order == "remaining" else ())

    def decide(self, view: View) -> Grants:
        """Return seats for gangs that start, and with `preempt` who stops for them."""
        line = self._line(view)
        if self.preempt:
            stop, starting = self._counted(view, line)
        else:
            stop, starting = line[:0], [(int(m), -1) for m in line[view.on_type[line] < 0]]
        floor = FreeCapacity(view.topology, (view.holder == -1) | np.isin(view.holder, stop))
        return _grants(list(self._seated(view, floor, starting)), stop)

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

    def _seated(self, view: View, floor: FreeCapacity, starting: list[tuple[int, int]]) -> Iterator[Seats]:
        """Seat gangs in that order; -1 = on whatever type, the fastest first."""
        empty = FreeCapacity(view.topology, view.holder != -2)
        for m, counted in starting:
            size = int(view.scale_factor[m])
            for j in _fastest_first(view, m) if counted < 0 else [counted]:
                found = floor.place(j, size) if 0 < floor.spread(j, size) <= empty.spread(j, size) else None
                if found is not None:
                    yield m, j, found
                    break
            else:
                if not self.preempt:
                    return  # nobody overtakes the first in line


def _fastest_first(view: View, job: int) -> list[int]:
    speed = view.throughput[job]
    return [j for j in np.argsort(-speed, kind="stable").tolist() if speed[j] > 0]


def _grants(seated: list[Seats], stop: Ints) -> Grants:
    rows = Rows(
        np.array([m for m, _, _ in seated], dtype=np.int64),
        np.array([j for _, j, _ in seated], dtype=np.int64),
    )
    size = np.array([len(found) for _, _, found in seated], dtype=np.int64)
    device = np.concatenate([found for _, _, found in seated]) if seated else np.empty(0, dtype=np.int64)
    return Grants(rows, np.repeat(np.arange(len(seated)), size), device, np.full(len(seated), np.nan), stop=stop)
