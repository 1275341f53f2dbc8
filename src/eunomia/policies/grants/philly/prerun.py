"""A small pool in which jobs first run on one accelerator: those that fail there never hold those of a whole gang.

    pool     ⌈pool · accelerators⌉ of each type but never all, the smallest machines first; no quota counts it
    first    gangs that have a shape of one accelerator and have not yet passed, or with `all_jobs` single jobs too
    passed   it ran in the pool for prerun_s and did not fail

The pool is split off the view: the pass over the rest sees neither its accelerators nor the jobs that run there. While
a job waits that only the whole cluster holds, there is no pool, and gangs start as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.model.wait_reason import WaitReasons
from eunomia.placement.grants_builder import FREE, LOST, held_by

NEEDS = frozenset({"shapes", "shape_throughput"})
INSIDE, PASSED = 0.5, 1.0  # of the memory column `passed`: single jobs that run in the pool, and jobs that left it


class PoolStarts(NamedTuple):
    """The jobs that start in the pool, on one accelerator each, (start,) columns."""

    job: Ints
    type: Ints
    shape: Ints
    device: Ints


@dataclass(frozen=True, slots=True)
class PreRun:
    """The pool at one instant, and the view without it."""

    rest: View  # a job whose time in the pool is over is pending; one still there is on a type past the last
    passed: Bools  # (job,)
    inside: Bools  # (job,) runs in the pool, for longer
    first: Bools  # (job,) waits, and has to run in the pool first
    over: Ints  # jobs whose time in the pool ends now
    _free: Bools  # (device,) seats of the pool that may be given away
    _able: Bools  # (job, shape, type) could run in the pool

    @classmethod
    def split(cls, view: View, part: float, *, all_jobs: bool = False) -> PreRun:
        """Split the pool off; `part` is its part of each type. With `all_jobs` it is for those without a gang too."""
        holder, topology = view.holder, view.topology
        held, gang = np.bincount(holder[holder >= 0], minlength=view.jobs), view.scale_factor > 1
        there = (held == 1) & (gang | (view.memory["passed"] == INSIDE))  # no other gang has less than it asked for
        over = there & (view.lease_end <= view.at)
        passed = (view.memory["passed"] == PASSED) | over
        by_there = held_by(holder, there)
        pool = _set_apart(view, part) & ((holder < 0) | by_there)  # less what gangs hold from when there was none
        in_service = np.bincount(topology.type[pool & (holder != LOST)], minlength=len(view.types))
        able = (view.shapes == 1)[:, :, None] & (view.shape_throughput > 0) & (in_service > 0)
        seats = pool | by_there
        waiting = (view.on_type < 0) | over
        first = waiting & ~passed & (gang | all_jobs) & able.any(axis=(1, 2))
        free = pool & ((holder == FREE) | held_by(holder, over))
        rest = {
            "holder": np.where(seats, LOST, holder),
            "on_type": np.where(over, -1, np.where(there, len(view.types), view.on_type)),
            "capacity": view.capacity - np.bincount(topology.type[seats & (holder != LOST)], minlength=len(view.types)),
        }
        rest_of = replace(view, columns={**view.columns, **rest})
        return cls(rest_of, passed, there & ~over, first, np.flatnonzero(over), free, able)

    def add(self, answer: Grants, until: float) -> Grants:
        """Add to the answer about the rest the jobs that start in the pool, until then, and those that leave it."""
        rows, seated = answer.rows, self._seat(answer.refuse)
        inside, shape = set(seated.job.tolist()), np.append(np.zeros(len(rows), dtype=np.int64), seated.shape)
        passed = np.where(self.passed, PASSED, np.where(self.inside, INSIDE, 0.0))
        passed[seated.job] = INSIDE
        return replace(
            answer,
            rows=Rows(np.append(rows.job, seated.job), np.append(rows.type, seated.type), shape=shape),
            row=np.append(answer.row, len(rows) + np.arange(len(inside))),
            device=np.append(answer.device, seated.device),
            until=np.append(answer.until, np.full(len(inside), until)),
            stop=np.union1d(answer.stop, self.over),
            memory={**answer.memory, "passed": passed},
            why=WaitReasons.at(len(passed), answer.why).without(seated.job),
        )

    def _seat(self, refused: Iterable[int]) -> PoolStarts:
        """Give the free seats of the pool to jobs that have to run there first, by submission."""
        topology, waits = self.rest.topology, self.first.copy()
        waits[list(refused)] = False
        found = []
        for type in range(len(self.rest.types)):
            seats = np.flatnonzero(self._free & (topology.type == type))
            jobs = np.flatnonzero(waits & self._able[:, :, type].any(axis=1))[: len(seats)]
            waits[jobs] = False
            shape = self._able[jobs, :, type].argmax(axis=1)
            found.append(PoolStarts(jobs, np.full(len(jobs), type), shape, seats[: len(jobs)]))
        return PoolStarts(*(np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True)))


def _set_apart(view: View, part: float) -> Bools:
    """Return which accelerators are the pool's, (device,); none while a gang waits that would have no place beside."""
    topology = view.topology
    pool = np.zeros(topology.devices, dtype=bool)
    size: Floats = topology.size[topology.node].astype(float)
    for type in range(len(topology.types)):
        mine = np.flatnonzero(topology.type == type)
        count = min(math.ceil(part * len(mine)), len(mine) - 1)
        pool[mine[np.argsort(size[mine], kind="stable")][:count]] = True
    beside = np.bincount(topology.type[~pool], minlength=len(view.types))
    fits = ((view.throughput > 0) & (view.scale_factor[:, None] <= beside)).any(axis=1)
    if (~fits & (view.on_type < 0)).any():
        pool[:] = False
    return pool
