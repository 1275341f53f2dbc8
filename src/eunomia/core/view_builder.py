"""What a policy sees: the columns it needs, cut out of the state, the ledger and the belief."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.entitlements import Entitlements
from eunomia.core.ledger import Ledger
from eunomia.core.state import State
from eunomia.core.training_losses import SeenLosses
from eunomia.model.apps import Apps, PausedJobs
from eunomia.model.arrays import Ints
from eunomia.model.equal_share import alone_throughput

Reader = Callable[[float, Ints, State, Ledger, Belief], Any]


def _holder(at: float, rows: Ints, state: State, ledger: Ledger, belief: Belief) -> Ints:
    """Return holders as rows of the view, -1 = free, -2 = lost or used by others."""
    place = np.full(len(state.jobs) + 1, -1)  # of each job in the view; the last entry stands for no job
    place[rows] = np.arange(len(rows))
    holder = place[state.holder]
    return np.where(state.floor.up[state.topology.node] & ~state.taken, holder, -2)


def _entitlements(state: State) -> Entitlements:
    assert state.entitlements is not None  # kept from the first moment if a policy needs such a column
    return state.entitlements


def _losses(state: State) -> SeenLosses:
    assert state.losses is not None  # likewise
    return state.losses


def _apps(at: float, rows: Ints, state: State, ledger: Ledger, belief: Belief) -> Apps:
    """Return the apps of these jobs, with their paused jobs."""
    claims = _entitlements(state)
    paused = state.paused()
    if len(paused) == 0:
        return claims.apps(at, rows, PausedJobs.none(len(state.topology.types)))
    paused, app = claims.among(paused, rows)
    remaining, throughput = belief.remaining_at(at, paused), belief.throughput.take(paused, axis=0)
    pauses = PausedJobs(app, state.jobs.scale_factor[paused], remaining, belief.total[paused], throughput)
    return claims.apps(at, rows, pauses)


AT_LAST_ASK = "service_at_last_ask"  # the column of another time
READERS: Mapping[str, Reader] = {
    "scale_factor": lambda at, rows, state, ledger, belief: state.jobs.scale_factor[rows],
    "weight": lambda at, rows, state, ledger, belief: state.jobs.weight[rows],
    "submitted": lambda at, rows, state, ledger, belief: state.jobs.submitted[rows],
    "deadline": lambda at, rows, state, ledger, belief: state.jobs.deadline[rows],
    "tenant": lambda at, rows, state, ledger, belief: state.jobs.owner[rows],
    "tenants": lambda at, rows, state, ledger, belief: state.owners.tree,
    "price": lambda at, rows, state, ledger, belief: state.price.copy(),
    "equal_share_throughput": lambda at, rows, state, ledger, belief: alone_throughput(
        belief.throughput[rows], state.jobs.scale_factor[rows], state.capacity
    ),
    "throughput": lambda at, rows, state, ledger, belief: belief.throughput.take(rows, axis=0),
    "remaining": lambda at, rows, state, ledger, belief: belief.remaining_at(at, rows),
    "service": lambda at, rows, state, ledger, belief: ledger.service_at(at, rows),
    "held_time_by_type": lambda at, rows, state, ledger, belief: ledger.received_at(at, rows),
    "running": lambda at, rows, state, ledger, belief: state.jobs.on_type[rows] >= 0,
    "on_type": lambda at, rows, state, ledger, belief: state.jobs.on_type[rows],
    "capacity": lambda at, rows, state, ledger, belief: state.capacity.copy(),
    "job_type": lambda at, rows, state, ledger, belief: belief.job_types(rows),
    "job_class": lambda at, rows, state, ledger, belief: belief.kinds(rows),
    "packed_throughput": lambda at, rows, state, ledger, belief: belief.paired().copy(),
    "packed_spread_throughput": lambda at, rows, state, ledger, belief: belief.spread_pairs().copy(),
    "spread_throughput": lambda at, rows, state, ledger, belief: belief.spread_throughput(rows),
    "shapes": lambda at, rows, state, ledger, belief: state.shapes.sizes_of(rows),
    "shape_throughput": lambda at, rows, state, ledger, belief: belief.shape_throughput(state.shapes, rows),
    "holder": _holder,
    "run_time": lambda at, rows, state, ledger, belief: ledger.received_at(at, rows).sum(axis=1),
    "waiting_time": lambda at, rows, state, ledger, belief: ledger.wait_at(at, rows),
    "started": lambda at, rows, state, ledger, belief: ledger.started(rows),
    "first_started": lambda at, rows, state, ledger, belief: state.jobs.first_started[rows],
    "lease_end": lambda at, rows, state, ledger, belief: state.jobs.until[rows],
    "longest_lease": lambda at, rows, state, ledger, belief: state.lease,
    "failures": lambda at, rows, state, ledger, belief: state.jobs.failures[rows],
    "total": lambda at, rows, state, ledger, belief: belief.total[rows],
    "slowdown": lambda at, rows, state, ledger, belief: belief.slowdown(rows),
    "largest_tensor_fraction": lambda at, rows, state, ledger, belief: belief.skew(rows),
    "fair_share_service": lambda at, rows, state, ledger, belief: _entitlements(state).deserved[rows],
    "tenant_hourly_usage": lambda at, rows, state, ledger, belief: _entitlements(state).hourly(
        len(state.owners.tree.names)
    ),
    "tenant_usage": lambda at, rows, state, ledger, belief: _entitlements(state).decayed_usage(
        len(state.owners.tree.names)
    ),
    "app": lambda at, rows, state, ledger, belief: _entitlements(state).apps_of(rows),
    "apps": _apps,
    "past_service": lambda at, rows, state, ledger, belief: _entitlements(state).past_service(),
    "losses": lambda at, rows, state, ledger, belief: _losses(state).of(rows),
    "loss_curve": lambda at, rows, state, ledger, belief: state.shapes.curves_of(rows),
    "debug": lambda at, rows, state, ledger, belief: np.array([state.submitted[m].debug for m in rows], dtype=np.bool_),
    "demand": lambda at, rows, state, ledger, belief: state.jobs.demand[rows],
    "host_capacity": lambda at, rows, state, ledger, belief: state.topology.room(state.floor.up),
    "topology": lambda at, rows, state, ledger, belief: state.topology,
}


def build_view(
    needs: frozenset[str], at: float, rows: Ints, state: State, ledger: Ledger, belief: Belief, last_at: float
) -> dict[str, Any]:
    """Return the columns that are needed, for the active jobs `rows`; it was asked last at `last_at`, -inf = never."""
    columns = {name: READERS[name](at, rows, state, ledger, belief) for name in needs - {AT_LAST_ASK}}
    if AT_LAST_ASK in needs:
        columns[AT_LAST_ASK] = ledger.service_then(last_at, rows)
    return columns
