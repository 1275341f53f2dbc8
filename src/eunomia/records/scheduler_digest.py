"""A digest of all that a scheduler decides by: two of one digest decide alike."""

from __future__ import annotations

import hashlib

import numpy as np

from eunomia.core.scheduler import Scheduler


def digest(scheduler: Scheduler) -> str:
    """Return a digest of all that decides: jobs, seats, ledger, belief, and what was asked of the policy."""
    state, ledger, belief, asks = scheduler.state, scheduler.ledger, scheduler.belief, scheduler.asks
    n = len(state.jobs)
    found = hashlib.sha256()
    for table in (state.jobs, ledger, belief):
        for part in (table.ints, table.floats, table.flags):
            found.update(np.ascontiguousarray(part[:, :n]).tobytes())
    for array in (ledger.received[:n], state.active, state.holder, state.floor.up, state.floor.free, state.capacity):
        found.update(np.ascontiguousarray(array).tobytes())
    if state.taken.any():
        found.update(state.taken.tobytes())
    if state.entitlements is not None and "tenant_usage" in state.entitlements.kept:
        found.update(state.entitlements.decayed_usage(len(state.owners.tree.names)).tobytes())
    pending = None if asks.pending is None else asks.pending.asked
    found.update(repr((n, state.ids[-1:], asks.count, asks.last_at, asks.again_at, pending)).encode())
    return found.hexdigest()[:32]
