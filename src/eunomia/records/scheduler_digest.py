"""A digest of all that a scheduler decides by: two of one digest decide alike.

Jobs that have ended are not in it, whether their rows are still there or not. A store may have digests of before, in
which all rows were; they have no mark in front.
"""

from __future__ import annotations

import hashlib

import numpy as np

from eunomia.core.kernel_arrays import PARTNER
from eunomia.core.scheduler import Scheduler
from eunomia.model.arrays import Ints

MARK = "live-"  # begins a digest of the jobs that have not ended


def digest(scheduler: Scheduler, like: str = MARK) -> str:
    """Return a digest of all that decides: jobs, seats, ledger, belief, and what was asked of the policy.

    It is made as a stored one, `like`, was; one of before is only of use while a scheduler has all rows.
    """
    state = scheduler.state
    if not leaves_ended_out(like):
        return _digest(scheduler, np.arange(len(state.jobs)), (len(state.jobs), state.ids[-1:]))
    rows = np.sort(np.concatenate((state.active, state.paused())))
    last = state.ids[rows[-1]] if len(rows) else ""
    return MARK + _digest(scheduler, rows, (len(state.jobs) + state.forgotten, last))


def leaves_ended_out(stored: str) -> bool:
    """Return whether a stored digest is the same whatever rows of ended jobs are still there."""
    return stored.startswith(MARK)


def _digest(scheduler: Scheduler, rows: Ints, known: tuple[int, object]) -> str:
    """Return a digest of these rows, in which they are numbered as they stand there."""
    state, ledger, belief, asks = scheduler.state, scheduler.ledger, scheduler.belief, scheduler.asks
    place = np.full(len(state.jobs) + 1, -1)  # the last entry stands for no job
    place[rows] = np.arange(len(rows))
    found = hashlib.sha256()
    for table in (state.jobs, ledger, belief):
        ints = table.ints[:, rows]
        if table is state.jobs:
            ints[PARTNER] = place[ints[PARTNER]]
        for part in (ints, table.floats[:, rows], table.flags[:, rows]):
            found.update(part.tobytes())
    seats = place[state.holder]
    for array in (ledger.received[rows], place[state.active], seats, state.floor.up, state.floor.free, state.capacity):
        found.update(np.ascontiguousarray(array).tobytes())
    if state.taken.any():
        found.update(state.taken.tobytes())
    if state.entitlements is not None and "tenant_usage" in state.entitlements.kept:
        found.update(state.entitlements.decayed_usage(len(state.owners.tree.names)).tobytes())
    pending = None if asks.pending is None else asks.pending.asked
    found.update(repr((*known, asks.count, asks.last_at, asks.again_at, pending)).encode())
    return found.hexdigest()[:32]
