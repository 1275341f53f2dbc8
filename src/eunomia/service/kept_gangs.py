"""Gangs that run on while the site is changed: those whose accelerators are still there, at the same place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np

from eunomia.backends.engines.node_names import declared_nodes, same_nodes
from eunomia.mechanisms.leases.config import Leases
from eunomia.model.arrays import Ints
from eunomia.model.topology import Node, Topology
from eunomia.service.controller import Controller
from eunomia.service.job_row import SEATED, JobRow
from eunomia.service.site import Site


def keep_gangs(controller: Controller, rows: Iterable[JobRow], setup_before: str | None) -> None:
    """Give the gangs of live jobs, which the scheduler has as waiting, the seats that they have, if they still fit.

    `setup_before` says what the site was, see `recovery.setup_text`. The others have no seats afterwards.
    """
    before, now = topology_of(setup_before), controller.scheduler.state.topology
    moved = moved_nodes(controller.site, before)
    gangs: dict[tuple[int, ...], list[JobRow]] = {}
    for row in rows:
        if row.state in SEATED and row.seats and not row.holds and row.id in controller.scheduler.state.row_of:
            gangs.setdefault(row.seats, []).append(row)
    for seats, mates in gangs.items():
        if (
            before is None
            or len(mates) > 1 + mates[0].shared
            or not _keep(controller, _seats_now(before, now, moved, seats), mates)
        ):
            for row in mates:
                row.state, row.reason, row.seats = "stopping", "the site was changed", ()
                row.since = controller.at  # it has `drain_timeout_s` from now on


def topology_of(setup: str | None) -> Topology | None:
    """Return the topology of a stored set-up; None where there is none."""
    try:
        nodes = json.loads(setup or "null")["nodes"]
        return Topology.of([Node(type=kind, accelerators=size, rack=rack) for kind, size, rack in nodes])
    except (TypeError, ValueError, LookupError):
        return None


def _first(topology: Topology, seats: Ints) -> list[int]:
    """Return the first seat of the node of each seat: where that is the same, so is its place in the node."""
    return list(topology.first[topology.node[seats]].tolist())


def moved_nodes(site: Site, before: Topology | None) -> dict[int, int]:
    """Return which node each earlier one is, where an engine has the nodes; on one machine a seat is a device."""
    if before is None or site.setup.scenario.world.backend == "local":
        return {}
    return same_nodes(declared_nodes(before), declared_nodes(site.setup.topology))


def _seats_now(before: Topology, now: Topology, moved: Mapping[int, int], given: tuple[int, ...]) -> Ints | None:
    """Return the seats that a gang's accelerators have now; None if some are not there any more."""
    seats = np.array(given, dtype=np.int64)
    if seats.max() >= before.devices:
        return None
    nodes = before.node[seats].tolist()
    if all(node in moved for node in nodes):
        return np.asarray(now.first[[moved[node] for node in nodes]] + seats - before.first[nodes])
    if seats.max() >= now.devices or _first(before, seats) != _first(now, seats):
        return None
    was, types = ({one.types[j] for j in one.type[seats].tolist()} for one in (before, now))
    if was != types and not was.isdisjoint(now.types):  # nodes have changed places; a type has no other name
        return None
    return seats


def _keep(controller: Controller, seats: Ints | None, mates: Sequence[JobRow]) -> bool:
    """Let a job, or two that share, hold these seats as if nothing had happened; False if they do not fit."""
    if seats is None:
        return False
    scheduler, site = controller.scheduler, controller.site
    sched, state = scheduler._sched, scheduler.state
    topology = state.topology
    kinds, numbers = set(topology.type[seats].tolist()), [state.row_of[row.id] for row in mates]
    shapes = state.submitted[numbers[0]].shapes
    if len(kinds) > 1 or len(seats) not in shapes or not state.floor.is_free(seats):
        return False
    (kind,) = kinds
    rates = (controller.believed_throughput(state.submitted[m].job_type, len(seats))[kind] for m in numbers)
    if not all(rate > 0 for rate in rates):
        return False
    for m in numbers:
        state.jobs.epoch[m] -= 1
    until = cast("Leases", site.setup.mechanism).until(controller.at)  # a service has no others
    mate = numbers[1] if len(numbers) > 1 else -1
    sched.start(numbers[0], controller.at, kind, shapes.index(len(seats)), seats, until, mate)
    for m, row in zip(numbers, mates, strict=True):
        row.seats = tuple(seats.tolist())
        began = row.started if row.launched_epoch == row.epoch else controller.at
        state.jobs.first_started[m] = row.first_started if row.first_started == row.first_started else controller.at
        scheduler.ledger.since[m], scheduler.belief.since[m] = began, max(began, row.saved_at)
    return True
