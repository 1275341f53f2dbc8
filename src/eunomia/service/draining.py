"""Takes nodes and single accelerators out of service: what runs there goes on until it ends, or until a time.

The core gets no other events than those for accelerators that others use: a seat that a gang holds is out of service
once the gang has left it. Until then its job keeps its seats, so that no policy gives them to another.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from eunomia.model.events import AcceleratorsTaken, Event, JobPaused, JobResumed, JobUpdated, NodeJoined, NodeLost
from eunomia.service.job_row import SEATED
from eunomia.service.out_of_service import NODE, Drain

if TYPE_CHECKING:
    from eunomia.service.controller import Controller

NOW = -math.inf  # as the end of a drain: gangs are stopped at once


def seats_of(controller: Controller, node: int, place: int = NODE) -> range:
    """Return the seats of a node, or the one of an accelerator of it."""
    topology = controller.site.setup.topology
    first, size = int(topology.first[node]), int(topology.size[node])
    return range(first, first + size) if place == NODE else range(first + place, first + place + 1)


def named(controller: Controller, node: int, place: int = NODE) -> str:
    """Return the name of a node, or of an accelerator of it, as users type it."""
    return controller.nodes[node] if place == NODE else f"{controller.nodes[node]}/{place}"


def drained_seats(controller: Controller) -> set[int]:
    """Return the seats that are drained, but those of nodes that are out of service as a whole."""
    drains = (one for one in controller.drains.values() if one.node not in controller.drained)
    return {seat for one in drains for seat in seats_of(controller, *one.key)}


def holders(controller: Controller, seats: Iterable[int]) -> list[str]:
    """Return the jobs whose gangs have some of these seats, in order of submission."""
    state = controller.scheduler.state
    leads = {int(one) for one in state.holder[list(seats)] if one >= 0}
    rows = leads | {int(state.jobs.partner[row]) for row in leads}
    return [state.ids[row] for row in sorted(rows - {-1})]


def users_of(controller: Controller, one: Drain) -> list[str]:
    """Return the jobs that have processes there, also those that save and stop."""
    seats = set(seats_of(controller, *one.key))
    found = dict.fromkeys(holders(controller, seats))
    for job_id in sorted(controller.leaving):
        row = controller.rows.get(job_id)
        if row is None or row.ended_epoch >= row.left_epoch or not row.left_seats:
            controller.leaving.discard(job_id)
        elif not seats.isdisjoint(row.left_seats):
            found[job_id] = None
    kept = {**{seat: one.job_id for seat, one in controller.quarantined.items()}, **controller.kept_seats}
    found |= dict.fromkeys(job_id for seat, job_id in kept.items() if seat in seats)
    return list(found)


def keep_off(controller: Controller, events: list[Event]) -> None:
    """Add to a moment what keeps further gangs off what is drained, and lets those that are there run on."""
    before, out = controller.closed, controller.out_seats()
    state, own = controller.scheduler.state, drained_seats(controller) | controller.closed
    there = set(holders(controller, own))
    for job_id in sorted(there - controller.pinned):
        row = controller.rows.get(job_id)
        if row is not None and (row.can_save or job_id in state.restartable):
            events.append(JobUpdated(job_id, keeps_seats=True))
            controller.pinned.add(job_id)
    for job_id in sorted(controller.pinned - there):
        row = controller.rows.get(job_id)
        if row is not None and not row.is_over and row.can_save:
            events.append(JobUpdated(job_id, can_save=True))
        controller.pinned.discard(job_id)
    if any(isinstance(event, AcceleratorsTaken) for event in events):
        return
    subjects = {getattr(event, "job_id", "") for event in events}
    is_lost, is_back = (any(isinstance(event, kind) for event in events) for kind in (NodeLost, NodeJoined))
    up, node = state.floor.up, state.topology.node

    def comes_free(seat: int) -> bool:
        if state.taken[seat]:
            return False
        if seat in controller.taken_seats:
            return True
        held = holders(controller, [seat])
        return is_lost or not subjects.isdisjoint(held) if held else bool(up[node[seat]]) or is_back

    if before != controller.closed or any(map(comes_free, out)):
        events.append(AcceleratorsTaken(out))


def drain(
    controller: Controller, node: int, place: int, *, reason: str, user: str, until: float, maintenance: int = 0
) -> list[str]:
    """Drain a node, or an accelerator of it; or change until when. Returns the jobs that are stopped at once.

    `until`: when gangs that are left are stopped; inf = never, `NOW` = at once.
    """
    known, until = controller.drains.get((node, place)), max(until, controller.at)
    if known is None:
        reason = reason or f"drained by {user}"
        one = Drain(node=node, place=place, reason=reason, user=user, since=controller.at, until=until,
                    maintenance=maintenance)  # fmt: skip
    else:
        one = replace(known, reason=reason or known.reason, user=user, until=until, maintenance=maintenance)
    note(controller, one)
    if known is None:
        _tell(controller, one, "Draining", one.reason)
    elif place == NODE and node in controller.drained:
        controller.drained[node] = controller.turn.nodes[node] = one.reason
    set_timer(controller, until)
    if node not in controller.drained:
        controller.flush(controller.at)
        controller.emit("", *_not_launched(controller, one), AcceleratorsTaken(controller.out_seats()))
        if place == NODE:
            controller.order_node(node)
    return _stop_left(controller, one) if until <= controller.at else []


def _not_launched(controller: Controller, one: Drain) -> list[Event]:
    """Return the events that let jobs start elsewhere which an engine has not begun yet, as it would hold them back."""
    if one.place != NODE or controller.site.setup.scenario.world.backend == "local":
        return []
    rows = (controller.rows[job_id] for job_id in holders(controller, seats_of(controller, *one.key)))
    waits = [row.id for row in rows if row.state == "starting" and row.launched_epoch < row.epoch]
    return [event for job_id in waits for event in (JobPaused(job_id), JobResumed(job_id))]


def note(controller: Controller, one: Drain) -> None:
    """Keep what is drained, and store it."""
    controller.drains[one.key] = controller.turn.drains[one.key] = one


def forget(controller: Controller, node: int, place: int = NODE) -> Drain | None:
    """End a drain; return what it was, if there was one."""
    known = controller.drains.pop((node, place), None)
    if known is not None:
        controller.turn.drains[node, place] = None
    return known


def resume(controller: Controller, node: int, place: int) -> None:
    """Put a node, or an accelerator of it, back into service, whatever took it out."""
    if place == NODE and node in controller.drained:
        controller.bring_back(node)
        controller.order_node(node)
        return
    known = forget(controller, node, place)
    if known is not None:
        controller.flush(controller.at)
        controller.emit("", AcceleratorsTaken(controller.out_seats()))
        _tell(controller, known, "Resumed", "")
        if place == NODE:
            controller.order_node(node)


def advance(controller: Controller) -> None:
    """Stop what is left where a time has come, and note what has become empty."""
    for one in list(controller.drains.values()):
        if one.until <= controller.at:
            _stop_left(controller, one)
        if math.isnan(one.empty) and not users_of(controller, one):
            _is_empty(controller, one)


def _stop_left(controller: Controller, one: Drain) -> list[str]:
    """Stop the gangs that are left, after they saved; return their jobs."""
    if one.place == NODE:
        if one.node in controller.drained:
            return []
        moved = controller.take_out(one.node, one.reason)
        controller.order_node(one.node)
        return moved
    seats, events, moved = seats_of(controller, *one.key), list[Event](), list[str]()
    for job_id in holders(controller, seats):
        row = controller.rows[job_id]
        if row.state in SEATED and not set(seats).isdisjoint(row.seats):
            moved.append(job_id)
            controller.end_soon(row, controller.at)
            events += [JobPaused(job_id), JobResumed(job_id)]
    if events:
        controller.flush(controller.at)
        controller.emit("", *events, AcceleratorsTaken(controller.out_seats()))
    return moved


def _is_empty(controller: Controller, one: Drain) -> None:
    if one.place == NODE and one.node not in controller.drained:
        controller.take_out(one.node, one.reason)
        controller.order_node(one.node)
    note(controller, replace(one, empty=controller.at))
    _tell(controller, one, "Drained", f"no job is left there; {one.reason}")
    entry = (one.user, "operator", "service", "drained", named(controller, *one.key))
    controller.turn.audit.append(entry)


def _tell(controller: Controller, one: Drain, what: str, reason: str) -> None:
    """Add an event about a drain."""
    kind = f"{'Node' if one.place == NODE else 'Accelerator'}{what}"
    detail = {"reason": reason, "epoch": 0, "node": controller.nodes[one.node]}
    if one.place != NODE:
        detail["accelerator"] = one.place
    controller.turn.news.append(("", "", kind, json.dumps(detail)))


def set_timer(controller: Controller, at: float) -> None:
    """Let a step be due then."""
    if math.isfinite(at) and at > controller.at:
        heapq.heappush(controller.timers, (at, "due", "", 0))


def restore_drains(controller: Controller, drains: Iterable[Drain]) -> None:
    """Go on with what the store says is drained, and with the gangs that are there."""
    size, state = controller.site.setup.topology.size, controller.scheduler.state
    controller.drains = {
        one.key: one for one in drains if 0 <= one.node < len(size) and NODE <= one.place < size[one.node]
    }
    for one in controller.drains.values():
        set_timer(controller, one.until)
    live = [row for row in controller.rows.values() if row.left_seats and row.ended_epoch < row.left_epoch]
    controller.leaving = {row.id for row in live}
    kept = np.flatnonzero(state.jobs.uninterruptible[: len(state.jobs)])
    rows = (controller.rows.get(state.ids[row]) for row in kept.tolist())
    controller.pinned = {row.id for row in rows if row is not None and not row.is_over and row.can_save}
