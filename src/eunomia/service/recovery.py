"""Rebuilds the controller from the store: the newest snapshot, then the moments after it through the same scheduler.

Every replayed moment must give the stored decisions, and every stored digest the same state. A job whose row cannot be
used is set aside by name, and all others go on.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eunomia.core.kernel_arrays import FLAGS, FLOATS, INTS
from eunomia.core.scheduler import Scheduler
from eunomia.core.state import State
from eunomia.model.decisions import SetTimer
from eunomia.model.events import JobSubmitted, TimerFired
from eunomia.records.moment_log import MomentLog, stored_decisions
from eunomia.records.packed_objects import capture, restore
from eunomia.records.record import decision_lines
from eunomia.records.scheduler_digest import digest, leaves_ended_out
from eunomia.service.controller import Controller
from eunomia.service.core_job import core_job, estimated_event
from eunomia.service.draining import restore_drains
from eunomia.service.fault_points import faultpoint
from eunomia.service.job_row import SEATED, JobRow
from eunomia.service.kept_gangs import keep_gangs, moved_nodes, topology_of
from eunomia.service.maintenance import restore_maintenance
from eunomia.service.messages import Order
from eunomia.service.out_of_service import Drain, DrainKey
from eunomia.service.set_aside import UNUSABLE, keep_seats, set_aside_at_start
from eunomia.service.site import Site
from eunomia.service.store import ServiceStore, StoreProblem
from eunomia.service.store.checked_rows import WITHOUT_LOG, number
from eunomia.service.store.schema import StoredClock
from eunomia.service.tenant_fairness import HOUR_S
from eunomia.service.turn import ServicePolicyRunner, Turn
from eunomia.service.usage import UsageCounter

_log = logging.getLogger(__name__)


def new_scheduler(site: Site) -> Scheduler:
    """Return a scheduler of the site that knows no job."""
    return site.setup.scheduler()


def setup_text(site: Site) -> str:
    """Return what decisions depend on besides the moments, as text: with another one, a new era begins."""
    header = site.setup.record_header()
    kept = {key: header[key] for key in ("seed", "nodes", "policy", "mechanism", "overheads", "version")}
    kept["throughputs"] = header["scenario"]["throughputs"]
    kept["belief"] = header["scenario"]["belief"]
    kept["parameters"] = header["scenario"]["policy"]
    kept["tenants"] = header["scenario"]["tenants"]
    kept["inputs"] = header["inputs"]
    kept["columns"] = [*INTS, *FLOATS, *FLAGS]  # a snapshot with others would be read as these
    if site.service.debug_lane:
        kept["debug_lane"] = site.service.debug_lane
    if site.service.accelerator_memory_gib:
        kept["accelerator_memory_gib"] = site.service.accelerator_memory_gib
    return json.dumps(kept, sort_keys=True)


def recover(
    store: ServiceStore, site: Site, runner: ServicePolicyRunner, incarnation: str = "",
    suspects: Mapping[str, str] | None = None,
) -> tuple[Controller, list[Order]]:  # fmt: skip
    """Rebuild the controller, and return the orders that a world which knows nothing needs.

    `incarnation` ends the ids of new jobs; left out, it is drawn. `suspects` are jobs that earlier starts ended with,
    each with why: they are set aside, like those whose rows cannot be used. Raises StoreProblem if the replayed
    decisions or a digest differ from the stored ones.
    """
    _, incarnation = store.begin_generation(incarnation)
    controller = _load(store, site, runner, incarnation, suspects or {})
    rows = list(controller.rows.values())
    store.rewrite_seats(rows)
    store.clear_outbox()
    return controller, controller.resend(rows)


def reload(store: ServiceStore, old: Controller, site: Site, runner: ServicePolicyRunner) -> Controller:
    """Return the controller as the store has it: nothing is left of what `old` has done since the last commit."""
    controller = _load(store, site, runner, old.incarnation, {})
    controller.driver.next_order = max(controller.driver.next_order, old.driver.next_order)
    controller.recall(old.memory())
    pending = controller.scheduler.asks.pending
    if pending is not None and old.asked is not None and old.asked.asked == pending.asked:
        controller.asked = old.asked
    return controller


def _load(
    store: ServiceStore, site: Site, runner: ServicePolicyRunner, incarnation: str, suspects: Mapping[str, str]
) -> Controller:
    text, before = setup_text(site), store.meta("setup")
    rows, damaged = store.live_jobs()
    clock = store.clock()
    at = 0.0 if clock is None else clock.at
    is_same = store.has_fact("setup", text)
    if is_same and before != text:  # its value was damaged, and whoever else compares it reads it again
        with store.transaction() as db:
            store.set_meta(db, "setup", text)
    scheduler, moments, wake = _replay(store, site) if is_same else (new_scheduler(site), 0, float("inf"))
    controller = Controller(
        site, scheduler, runner, store,
        incarnation=incarnation, next_job=store.next_job(), next_order=store.last_order() + 1,
    )  # fmt: skip
    controller.at, controller.wake, controller.moments = at, wake, moments
    origin = store.number("origin", 0.0 if clock is None else clock.wall - clock.at)
    controller.usage = UsageCounter(origin, site.zone, store.number("usage_counted", at))
    faultpoint("recover.half")
    unusable = {} if is_same else begin_era(store, controller, rows, text, is_first=before is None)
    controller.fairness.restore(store.active_time(at), store.tenant_hours(int(at // HOUR_S)))
    unusable |= controller.adopt(rows, store.run_times(), store.memory_used())
    turn = controller.turn = Turn(at)
    restore_drains(controller, store.drains())
    restore_maintenance(controller, store.maintenance())
    for node, reason in store.drained(len(controller.nodes)).items():
        if controller.scheduler.state.floor.up[node]:  # the site was changed, see `begin_era`
            controller.take_out(node, reason)
            controller.order_node(node)
        else:
            controller.drained[node] = reason
    for row in rows:
        if row.state in SEATED and not row.held:  # as an earlier version left it
            controller.usage.moves(row, row.state, at, controller.device_types)
            turn.rows[row.id] = row
    keep_seats(controller)
    set_aside_at_start(controller, damaged, {**unusable, **suspects}, compare=is_same)
    controller.flush(at)
    turn.usage, turn.usage_counted = controller.usage.take(), controller.usage.counted
    if not turn.is_empty:
        turn.orders = controller.driver.take_orders()
        with store.transaction() as db:
            store.write(db, turn, clock or StoredClock(at, "", 0.0, time.time()))
            for one in damaged:
                store.set_meta(db, f"damaged {one.id}", one.body)
    return controller


def _replay(store: ServiceStore, site: Site) -> tuple[Scheduler, int, float]:
    """Return a scheduler at the last stored moment, the number of that, and when the scheduler wants to be woken.

    It begins with the newest snapshot that is whole.
    """
    scheduler, last, wake, problems = new_scheduler(site), 0, float("inf"), list[str]()
    may_forget = False  # not before the last digest in which ended jobs are
    for seq, stored, stored_wake, content in store.snapshots():
        scheduler = new_scheduler(site)  # an attempt may have filled a part of the one before
        try:
            restore(scheduler, content)
            found, due = digest(scheduler, stored), math.inf if stored_wake in (None, math.inf) else number(stored_wake)
        except Exception as error:  # whatever the damage does to who reads it
            problems.append(f"snapshot {seq} cannot be read ({error})")
            continue
        if found != stored:
            problems.append(f"the state of snapshot {seq} has digest {found}, and {stored} was stored")
            continue
        last, wake, may_forget = seq, due, leaves_ended_out(stored)
        break
    else:
        if problems:
            raise _differs(store, "; ".join(problems))
    if problems:
        _log.warning("%s; the state is replayed from snapshot %d instead", "; ".join(problems), last)
    log = MomentLog()
    for seq, lines, stored_digest in store.moments(last):
        try:
            moment = log.read(lines)
        except Exception as error:
            raise _differs(store, f"moment {seq} cannot be read ({error})") from None
        if any(isinstance(event, TimerFired) for event in moment.events):
            wake = float("inf")
        try:
            decisions = scheduler.handle(moment)
        except Exception as error:
            raise _differs(store, f"moment {seq} cannot be handled ({error!r})") from error
        if "".join(decision_lines(moment.at, decisions)) != stored_decisions(lines):
            raise _differs(store, f"moment {seq} gives other decisions than those that were stored")
        if stored_digest is not None:
            if (found := digest(scheduler, stored_digest)) != stored_digest:
                rule = f"the state after moment {seq} has digest {found}, and {stored_digest} was stored"
                raise _differs(store, rule)
            may_forget = leaves_ended_out(stored_digest)
        if may_forget:
            scheduler.forget_ended()
        for decision in decisions:
            if isinstance(decision, SetTimer):
                wake = decision.at
        last = seq
    return scheduler, last, wake


def _differs(store: ServiceStore, rule: str) -> StoreProblem:
    return StoreProblem.of(store.folder, f"the replay differs from the store: {rule}", WITHOUT_LOG)


def begin_era(
    store: ServiceStore, controller: Controller, rows: list[JobRow], text: str, *, is_first: bool,
    more: Mapping[str, str] | None = None, before: State | None = None,
) -> dict[str, str]:  # fmt: skip
    """Begin with a scheduler that has decided nothing yet, for the live jobs.

    Returns the jobs that cannot be scheduled, each with why.

    This is what a changed policy or cluster means. Gangs whose accelerators are still there run on, others save and
    stop. Jobs keep their place in the queue, their progress, failures, epochs and what they received; `before` is the
    state before, if it is known: tenants keep what they used.
    """
    scheduler = controller.scheduler
    sched, state = scheduler._sched, scheduler.state
    turn, unusable = Turn(controller.at), dict[str, str]()
    for row in rows:
        if row.is_over:
            if row.seats:  # kept until its gang has ended; the cluster may be another one now, so locks alone do that
                row.seats, turn.rows[row.id] = (), row
            continue
        try:
            job = core_job(row)
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            unusable[row.id] = f"{UNUSABLE} ({error!r})"
            continue
        sched.submit(job)
        number = state.row_of[row.id]
        state.jobs.epoch[number], state.jobs.failures[number] = row.epoch, row.failures
        state.jobs.ran[number] = row.epoch > 0
        if row.estimate:
            sched.estimate(number, estimated_event(row))
        if row.steps > 0:
            scheduler.belief.done[number] = row.steps
        if row.holds:
            sched.pause(number, controller.at)
        scheduler.ledger.service[number] = row.run_s * float(job.scale_factor)
        turn.rows[row.id] = row
        if row.state not in SEATED:
            row.seats = ()
    if state.entitlements is not None:
        known = () if before is None else before.owners.tree.names
        old = None if before is None else before.entitlements
        state.entitlements.take_over(old, known, state.owners.tree, controller.at)
    keep_gangs(controller, rows, store.meta("setup"))
    for row in rows:
        if not row.is_over:
            controller.usage.moves(row, row.state, controller.at, controller.device_types)
    turn.usage, turn.usage_counted = controller.usage.take(), controller.usage.counted
    turn.nodes, turn.drains = _nodes_out(store, controller)
    controller.wake = controller.at  # ask at once
    snapshot = capture(controller.scheduler).content()
    seq = store.last_seq()
    with store.transaction() as db:
        store.write(db, turn, store.clock() or StoredClock(controller.at, "", 0.0, time.time()))
        db.execute("DELETE FROM snapshots")
        store.write_snapshot(db, seq, digest(controller.scheduler), controller.wake, snapshot)
        for key, value in (
            ("setup", text),
            ("era", str(seq)),
            ("era_jobs", str(sum(not row.is_over for row in rows))),
            *(more or {}).items(),
        ):
            store.set_meta(db, key, value)
    controller.moments = seq
    if not is_first:
        stops = sum(row.state == "stopping" for row in rows)
        _log.warning(
            "the site was changed: %d live jobs are scheduled anew, %d of them save and stop", len(rows), stops
        )
    return unusable


def _nodes_out(
    store: ServiceStore, controller: Controller
) -> tuple[dict[int, str], dict[DrainKey, Drain | None]]:  # fmt: skip
    """Return what is out of service, by the numbers of nodes in a changed site; "" and None end what was so before.

    The next moment has it for the scheduler. A node is known by its name, or where an engine has it by its place.
    """
    try:
        names = [f"{kind}-{n}" for n, (kind, *_) in enumerate(json.loads(store.meta("setup") or "{}")["nodes"])]
    except (TypeError, ValueError, LookupError):
        names = []
    before, drains = store.drained(max(len(names), len(controller.nodes))), store.drains()
    place_of = {name: node for node, name in enumerate(controller.nodes)}
    moved_to = moved_nodes(controller.site, topology_of(store.meta("setup")))
    number = moved_to or {n: place_of[name] for n, name in enumerate(names) if name in place_of}
    again = {number[n]: reason for n, reason in before.items() if n in number}
    moved: dict[DrainKey, Drain | None] = {one.key: None for one in drains}
    for one in drains:
        if one.node in number and one.place < controller.site.setup.topology.size[number[one.node]]:
            moved[number[one.node], one.place] = replace(one, node=number[one.node])
    return {**dict.fromkeys(before, ""), **again}, moved


def record_header(store: ServiceStore, site: Site) -> tuple[dict[str, Any], int]:
    """Return the header of a record of all moments since the site was last changed, and the number before the first.

    Raises StoreProblem if the site is another one now, or if jobs were live when it was changed.
    """
    if store.meta("setup") != setup_text(site):
        raise StoreProblem.of(site.path, "the store was written with another site", "give the site as it was")
    if store.meta("era_jobs") != "0":
        rule = "jobs were live when the site was last changed, so a record could not begin there"
        raise StoreProblem.of(store.folder, rule, "replay the store itself: eunomia serve does at each start")
    first = int(store.meta("era") or 0)
    if (kept := next((seq for seq, _, _ in store.moments(first)), first + 1)) > first + 1:
        rule = f"the moments before {kept:,} were removed (decision_days), so a record could not begin there"
        raise StoreProblem.of(store.folder, rule, "keep decisions for longer than the site stays as it is")
    log = MomentLog()
    events = (event for _, lines, _ in store.moments(first) for event in log.read(lines).events)
    jobs = [event.job for event in events if isinstance(event, JobSubmitted)]
    setup = replace(site.setup, jobs=tuple(jobs))
    return setup.record_header(), first
