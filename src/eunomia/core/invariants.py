"""The invariants: what must hold after every moment."""

from __future__ import annotations

import numpy as np

from eunomia.core.state import State
from eunomia.model.job_lifecycle import PRESENT, Stage

_WAITING, _RUNNING = int(Stage.WAITING), int(Stage.RUNNING)
_IS_PRESENT = np.isin(np.arange(max(Stage) + 1), list(PRESENT))  # (stage,)


class BrokenInvariant(AssertionError):
    """The state violates an invariant."""


def _demand(holds: object, message: str) -> None:
    if not holds:
        raise BrokenInvariant(message)


def check_lives(state: State) -> None:
    """Raise `BrokenInvariant` unless the stages of jobs and their counts agree."""
    n = len(state.jobs)
    stage, on_type = state.jobs.stage[:n], state.jobs.on_type[:n]
    _demand(((stage == _RUNNING) == (on_type >= 0)).all(), "a job runs exactly when it holds seats")
    live = np.flatnonzero(_IS_PRESENT[stage])
    _demand(np.array_equal(state.active, live), "the active jobs are those that wait or run, in row order")
    _demand(state.waiting == np.count_nonzero(stage[live] == _WAITING), "the count of waiting jobs is right")


def check(state: State) -> None:
    """Raise `BrokenInvariant` unless every invariant holds. The cost grows with jobs and devices."""
    check_lives(state)
    jobs, topology = state.jobs, state.topology
    n = len(jobs)
    on_type = jobs.on_type[:n]
    seen = np.full(topology.devices, -1, dtype=np.int64)
    for row in state.running().tolist():
        seats, mate = state.seats_of(row), int(jobs.partner[row])
        size = state.submitted[row].shapes[jobs.shape[row]]
        _demand(len(seats) == size, f"job row {row} holds {len(seats)} seats; its gang is {size}: gangs are whole")
        _demand(len(set(seats.tolist())) == size, f"job row {row} holds a seat twice")
        _demand((topology.type[seats] == on_type[row]).all(), f"job row {row} is on one accelerator type")
        _demand(state.floor.up[topology.node[seats]].all(), f"job row {row} is on a lost node")
        if mate >= 0:
            together = jobs.partner[mate] == row and jobs.first_device[mate] == jobs.first_device[row]
            _demand(together, f"job row {row} and its partner agree")
        if jobs.lease_size[row]:
            _demand((seen[seats] == -1).all(), f"a seat of job row {row} has two leases")
            seen[seats] = row
    _demand(np.array_equal(seen, state.holder), "every seat knows its holder, and no other")
    _demand((state.next_device[seen == -1] == -1).all(), "a free seat has no next device")
    _demand((jobs.first_device[:n] >= 0)[on_type < 0].sum() == 0, "a job without seats names none")

    up = state.floor.up[topology.node] & ~state.taken
    _demand((seen[state.taken] == -1).all(), "no job holds an accelerator that others use")
    free = np.bincount(topology.type[up & (seen == -1)], minlength=len(topology.types))
    _demand(np.array_equal(free, state.floor.free), "the floor counts the free seats of each type")
    in_service = np.bincount(topology.type[up], minlength=len(topology.types))
    _demand(np.array_equal(in_service, state.capacity), "capacity is what is in service")
