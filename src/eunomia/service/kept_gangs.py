"""Gangs that run on while the site is changed: those whose accelerators are still there, at the same place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from eunomia.mechanisms.leases.config import Leases
from eunomia.model.arrays import Ints
from eunomia.model.topology import Node, Topology
from eunomia.service.controller import Controller
from eunomia.service.job_row import SEATED, JobRow


def keep_gangs(controller: Controller, rows: Iterable[JobRow], setup_before: str | None) -> None:
    """Give the gangs of live jobs, which the scheduler has as waiting, the seats that they have, if they still fit.

    `setup_before` says what the site was, see `recovery.setup_text`. The others have no seats afterwards.
    """
    before = _topology_of(setup_before)
    gangs: dict[tuple[int, ...], list[JobRow]] = {}
    for row in rows:
        if row.state in SEATED and row.seats and not row.holds and row.id in controller.scheduler.state.row_of:
            gangs.setdefault(row.seats, []).append(row)
    for seats, mates in gangs.items():
        if before is None or len(mates) > 1 + mates[0].shared or not _keep(controller, before, seats, mates):
            for row in mates:
                row.state, row.reason, row.seats = "stopping", "the site was changed", ()
                row.since = controller.at  # it has `drain_timeout_s` from now on


def _topology_of(setup: str | None) -> Topology | None:
    """Return the topology of a stored set-up; None where there is none."""
    try:
        nodes = json.loads(setup or "null")["nodes"]
        return Topology.of([Node(type=kind, accelerators=size, rack=rack) for kind, size, rack in nodes])
    except (TypeError, ValueError, LookupError):
        return None


def _first(topology: Topology, seats: Ints) -> list[int]:
    """Return the first seat of the node of each seat: where that is the same, so is its place in the node."""
    return list(topology.first[topology.node[seats]].tolist())


def _keep(controller: Controller, before: Topology, given: tuple[int, ...], mates: Sequence[JobRow]) -> bool:
    """Let a job, or two that share, hold these seats as if nothing had happened; False if they do not fit."""
    scheduler, site = controller.scheduler, controller.site
    sched, state, seats = scheduler._sched, scheduler.state, np.array(given, dtype=np.int64)
    topology = state.topology
    if seats.max() >= min(topology.devices, before.devices) or _first(before, seats) != _first(topology, seats):
        return False
    was, now = ({one.types[j] for j in one.type[seats].tolist()} for one in (before, topology))
    if was != now and not was.isdisjoint(topology.types):  # nodes have changed places; a type has no other name
        return False
    kinds, numbers = set(topology.type[seats].tolist()), [state.row_of[row.id] for row in mates]
    shapes = state.submitted[numbers[0]].shapes
    if len(kinds) > 1 or len(given) not in shapes or not state.floor.is_free(seats):
        return False
    (kind,) = kinds
    rates = (controller.believed_throughput(state.submitted[m].job_type, len(given))[kind] for m in numbers)
    if not all(rate > 0 for rate in rates):
        return False
    for m in numbers:
        state.jobs.epoch[m] -= 1
    until = cast("Leases", site.setup.mechanism).until(controller.at)  # a service has no others
    mate = numbers[1] if len(numbers) > 1 else -1
    sched.start(numbers[0], controller.at, kind, shapes.index(len(given)), seats, until, mate)
    for m, row in zip(numbers, mates, strict=True):
        began = row.started if row.launched_epoch == row.epoch else controller.at
        state.jobs.first_started[m] = row.first_started if row.first_started == row.first_started else controller.at
        scheduler.ledger.since[m], scheduler.belief.since[m] = began, max(began, row.saved_at)
    return True
