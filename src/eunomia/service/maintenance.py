"""Spans of maintenance: nodes that no job reaches into, are drained at the start, and come back at the end.

A job may start on such a node beforehand if it has ended by the start: by its `max_run_s`, or where it has none by the
run time that is believed. The core places gangs by type and not by job, so the node gets no gang at all as long as a
job waits for its type that would reach into the span.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from eunomia.model.events import AcceleratorsTaken
from eunomia.service.core_job import core_job
from eunomia.service.draining import NOW, drain, drained_seats, resume, seats_of, set_timer
from eunomia.service.job_row import SEATED, WAITING, JobRow
from eunomia.service.out_of_service import BEGUN, CANCELLED, ENDED, NODE, PLANNED, Maintenance

if TYPE_CHECKING:
    from eunomia.service.controller import Controller

MOST_READ = 10_000  # waiting jobs that are looked at in a moment: with more, a node is kept free


def planned(controller: Controller) -> dict[int, Maintenance]:
    """Return the next span that has not begun, by node."""
    found: dict[int, Maintenance] = {}
    for one in sorted(controller.maintenance.values(), key=lambda span: (span.begins, span.number)):
        for name in one.nodes if one.state == PLANNED else ():
            if name in controller.nodes:
                found.setdefault(controller.nodes.index(name), one)
    return found


def closed_seats(controller: Controller) -> frozenset[int]:
    """Return the seats that get no gang now, as one that waits would reach into a span of maintenance."""
    if not controller.maintenance:
        return frozenset()
    topology, closed, known = controller.site.setup.topology, set[int](), dict[tuple[int, float], bool]()
    for node, one in planned(controller).items():
        key = int(topology.node_type[node]), one.begins
        if key not in known:
            known[key] = _reaches(controller, *key)
        if known[key]:
            closed.update(seats_of(controller, node))
    return frozenset(closed)


def _reaches(controller: Controller, kind: int, begins: float) -> bool:
    """Say whether a job that may be started on a type of accelerator now would run at a time."""
    left_s, name = begins - controller.at, controller.site.setup.topology.types[kind]
    rows = list(islice((row for row in controller.rows.values() if _may_start(controller, row)), MOST_READ + 1))
    if left_s <= 0 or len(rows) > MOST_READ:
        return bool(rows) or left_s <= 0
    unlimited = list[JobRow]()
    for row in rows:
        if row.spec.get("types") and name not in row.spec["types"]:
            continue
        longest = row.spec.get("max_run_s")
        if longest is None:
            unlimited.append(row)
        elif longest > left_s:
            return True
    return any(run_s > left_s for run_s in believed_run_s(controller, unlimited, kind))


def _may_start(controller: Controller, row: JobRow) -> bool:
    """Say whether the policy may start a job now: it waits, or may be moved."""
    if row.state in SEATED:
        leases = controller.site.setup.mechanism
        may_move = getattr(leases, "recall", False) or math.isfinite(leases.lease_s)
        return may_move and row.can_save and row.id not in controller.pinned
    return row.state in WAITING and not row.holds


def believed_run_s(controller: Controller, rows: Iterable[JobRow], kind: int) -> list[float]:
    """Return for how long these jobs are believed to run from now on, on one type; 0 = they cannot run there."""
    state, belief, found, known = controller.scheduler.state, controller.scheduler.belief, list[float](), list[int]()
    for row in rows:
        number = state.row_of.get(row.id)
        if number is not None:
            known.append(number)
            continue
        job = core_job(row)  # it is submitted in this moment
        rate = float(controller.believed_throughput(job.job_type, job.scale_factor)[kind])
        found.append((row.total_steps - row.steps) / rate if rate > 0 else 0.0)
    numbers = np.array(known, dtype=np.int64)
    rates = belief.throughput[numbers, kind]
    left = belief.remaining_at(controller.at, numbers)
    found.extend(np.divide(left, rates, out=np.zeros(len(left)), where=rates > 0).tolist())
    return found


# ---- planning --------------------------------------------------------------------------------------------------------


def plan_maintenance(
    controller: Controller, nodes: tuple[str, ...], begins: float, ends: float, reason: str, user: str
) -> Maintenance:
    """Plan a span of maintenance."""
    number = controller.next_maintenance
    controller.next_maintenance += 1
    one = Maintenance(
        number=number, nodes=nodes, begins=begins, ends=ends, reason=reason or f"planned by {user}", user=user
    )
    _note(controller, one)
    _tell(controller, one, "MaintenancePlanned")
    set_timer(controller, begins)
    set_timer(controller, ends)
    return one


def cancel_maintenance(controller: Controller, number: int) -> Maintenance | None:
    """End a span now; its nodes come back. Returns None if there is none that is not over."""
    one = controller.maintenance.get(number)
    if one is not None:
        _end(controller, one, CANCELLED)
    return one


def advance_maintenance(controller: Controller) -> None:
    """Begin and end spans whose time has come, and open nodes that no waiting job needs to be kept off."""
    for one in list(controller.maintenance.values()):
        if one.state == PLANNED and one.begins <= controller.at < one.ends:
            _begin(controller, one)
        elif one.ends <= controller.at:
            _end(controller, one, ENDED)
    if (controller.maintenance or controller.closed) and closed_seats(controller) != controller.closed:
        controller.emit("", AcceleratorsTaken(controller.out_seats()))


def _begin(controller: Controller, one: Maintenance) -> None:
    _note(controller, replace(one, state=BEGUN))
    _tell(controller, one, "MaintenanceBegun")
    for name in one.nodes:
        node = controller.nodes.index(name) if name in controller.nodes else -1
        if node < 0 or node in controller.drained:  # an operator has taken it out, and brings it back
            continue
        known = controller.drains.get((node, NODE))
        number = one.number if known is None or known.maintenance else 0
        reason = f"maintenance {one.number}: {one.reason}"
        drain(controller, node, NODE, reason=reason, user=one.user, until=NOW, maintenance=number)


def _end(controller: Controller, one: Maintenance, state: str) -> None:
    _note(controller, replace(one, state=state))
    _tell(controller, one, f"Maintenance{state.capitalize()}")
    for node, place in [key for key, drained in controller.drains.items() if drained.maintenance == one.number]:
        resume(controller, node, place)


def _note(controller: Controller, one: Maintenance) -> None:
    controller.turn.maintenance[one.number] = one
    if one.state in (PLANNED, BEGUN):
        controller.maintenance[one.number] = one
    else:
        controller.maintenance.pop(one.number, None)


def _tell(controller: Controller, one: Maintenance, kind: str) -> None:
    detail = {"reason": f"{', '.join(one.nodes)}: {one.reason}"[:1000], "epoch": 0, "maintenance": one.number}
    controller.turn.news.append(("", "", kind, json.dumps(detail)))


def restore_maintenance(controller: Controller, spans: Iterable[Maintenance]) -> None:
    """Go on with what the store says is planned or has begun."""
    every = list(spans)
    controller.next_maintenance = 1 + max((one.number for one in every), default=0)
    controller.maintenance = {one.number: one for one in every if one.state in (PLANNED, BEGUN)}
    for one in controller.maintenance.values():
        set_timer(controller, one.begins)
        set_timer(controller, one.ends)
    taken, mine = controller.scheduler.state.taken, drained_seats(controller)
    seats = (seat for node in planned(controller) for seat in seats_of(controller, node))
    controller.closed = frozenset(seat for seat in seats if taken[seat] and seat not in mine)
    controller.unreported = {*np.flatnonzero(taken).tolist()} - mine - controller.closed
