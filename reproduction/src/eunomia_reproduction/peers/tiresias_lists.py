"""The preemptive schedules of Tiresias' simulator with the placement `count`, to the letter.

dlas: three lists. At every arrival, end and expected change of lists, newcomers join the end of the first; a running
job that has reached its list's limit joins the end of the next; with a knob K a job that has waited K times as long as
it ran joins the end of the first. Gangs that fit run, list by list; in each list waiting jobs move behind running ones.

Oddities: a change by accelerator-seconds is expected as if those had so far been as many as the seconds, so that gangs
come late (`late`), and at the whole second before.

gittins, patched so that it starts: one list, sorted again and again by the authors' index, the least first.

Oddities: the index of waiting jobs is that of seconds, not of accelerator-seconds; it is looked at again after 3250 s,
and then later and later, as the sum of all times so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.policy import PolicyInfo
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.policies.order.gittins import authors

LIMITS = np.array([3250.0, 7200.0, math.inf])  # of the three lists, in seconds or accelerator-seconds
QUANTUM = 3250.0
_NEEDS = frozenset({"scale_factor", "submitted", "on_type", "run_time", "capacity", "topology", "holder"})


def _info(name: str, **memory_columns: float) -> PolicyInfo:
    return PolicyInfo(
        name=name,
        answer_type="grants",
        objective="as in Tiresias' simulator",
        technique="greedy",
        paper="Gu et al., Tiresias, NSDI 2019 (its simulator)",
        needs=_NEEDS,
        memory_columns=memory_columns,
    )


@dataclass(frozen=True, slots=True)
class Lists:
    """dlas (not `by_service`), dlas-gpu, and with a `knob` dlas-gpu-K."""

    by_service: bool = True
    knob: float = 0.0
    late: bool = True

    info: ClassVar[PolicyInfo] = _info("tiresias_lists", list=0.0, place=-1.0, waited=0.0, ran_before=0.0)

    def decide(self, view: View) -> Grants:
        """Return the jobs that start and stop at this event."""
        where, place, waited, ran_before = (view.memory[name].copy() for name in self.info.memory_columns)
        size = view.scale_factor if self.by_service else np.ones(view.jobs, dtype=np.int64)
        holds, ran = view.on_type >= 0, view.run_time - ran_before
        last = view.memory.get("asked_at", np.zeros(1))[0]
        waited += np.where(~holds & (ran > 0), view.at - np.maximum(view.submitted, last), 0.0)
        down = holds & (ran * size >= LIMITS[where.astype(np.int64)])
        up = ~holds & (where > 0) & (ran > 0) & (waited >= np.floor(ran * self.knob)) & (self.knob > 0)
        where[down] += 1
        where[up] = waited[up] = ran[up] = 0.0
        ran_before[up] = view.run_time[up]
        from_where = np.where(down | up, 2, place < 0)  # 0 = was in this list, 1 = new in the cluster, 2 = in another
        rows = np.arange(view.jobs)
        line = np.lexsort((rows, np.where(from_where == 0, place, 0.0), from_where, where))
        runs = _fitting(view, line)
        place[line] = rows
        place[np.lexsort((place, ~runs, where))] = rows
        again_at = view.at + self._next_change(runs, where.astype(np.int64), ran, waited, size)
        memory = {"list": where, "place": place, "waited": waited, "ran_before": ran_before}
        return _granted(view, line, runs, again_at, {**memory, "asked_at": np.array([view.at])})

    def _next_change(self, runs: Bools, where: Ints, ran: Floats, waited: Floats, size: Ints) -> float:
        """Return in how many seconds the simulator expects a job to change lists."""
        down = np.floor((LIMITS[where] - (ran if self.late else ran * size)) / size)[runs]
        up = np.floor(ran * self.knob - waited)[~runs & (where > 0) & (ran > 0)]
        return float(min(down[down > 0].min(initial=math.inf), up[up > 0].min(initial=math.inf)))


@dataclass(frozen=True, slots=True)
class LeastIndexFirst:
    """gittins, by what past jobs came to: `samples` accelerator-seconds in rising order."""

    samples: tuple[float, ...]

    info: ClassVar[PolicyInfo] = _info("tiresias_least_index", place=-1.0)

    def decide(self, view: View) -> Grants:
        """Return the jobs that start and stop at this event."""
        samples = np.array(self.samples)
        holds, place = view.on_type >= 0, view.memory["place"]
        attained = np.where(holds, view.run_time * view.scale_factor, view.run_time)
        index = np.round(authors(samples, attained, QUANTUM) * 1e6, 4)
        line = np.lexsort((np.arange(view.jobs), np.where(place < 0, math.inf, place), index))
        tick = view.memory.get("tick", np.array([QUANTUM]))
        memory = {"place": np.argsort(line, kind="stable").astype(np.float64), "tick": tick + view.at}
        again_at = float(memory["tick"][0])
        return _granted(view, line, _fitting(view, line), again_at if again_at > view.at else math.inf, memory)


def _fitting(view: View, line: Ints) -> Bools:
    """Return which jobs run, (job,), if gangs are counted off in that order."""
    left, runs = int(view.capacity.sum()), np.zeros(view.jobs, dtype=bool)
    for m in line.tolist():
        runs[m] = view.scale_factor[m] <= left
        left -= int(view.scale_factor[m]) * int(runs[m])
    return runs


def _granted(view: View, line: Ints, runs: Bools, again_at: float, memory: dict[str, Floats]) -> Grants:
    """Return the answer that places waiting jobs chosen to run anywhere, and stops the jobs not chosen."""
    holds = view.on_type >= 0
    stop, start = np.flatnonzero(holds & ~runs), line[(runs & ~holds)[line]]
    floor = FreeCapacity(view.topology, (view.holder == -1) | np.isin(view.holder, stop))
    found = [floor.place(0, size) for size in view.scale_factor[start].tolist()]
    device = np.concatenate([start[:0], *(seats for seats in found if seats is not None)])
    row, until = np.repeat(np.arange(len(start)), view.scale_factor[start]), np.full(len(start), np.nan)
    return Grants(Rows(start, np.zeros_like(start)), row, device, until, stop=stop, again_at=again_at, memory=memory)
