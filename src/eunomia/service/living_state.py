"""What the service says of its living state: why a job waits, what is free, who received what. Read under the lock."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from eunomia.model.job_lifecycle import Stage
from eunomia.model.wait_reason import HIDDEN, Reason, published
from eunomia.records.learnt_rates import describe_throughput, learnt_rows
from eunomia.records.preemptions import Preemption
from eunomia.records.queue_position import SHOWN, QueuePosition
from eunomia.records.wait_diagnosis import diagnose
from eunomia.service.controller import Controller
from eunomia.service.core_job import core_job
from eunomia.service.draining import drained_seats, seats_of
from eunomia.service.job_row import QUARANTINED, JobRow, iso
from eunomia.service.node_states import drain_reasons, shown_drains, state_of
from eunomia.service.out_of_service import NODE
from eunomia.service.saving import describe_saving
from eunomia.service.store.reader import EndedSum
from eunomia.service.tenant_fairness import HOUR_S, empty_periods

_JOB_ID = re.compile(r"(?<![\w-])\d+-[a-z2-9]+")  # as the controller makes them
_UP = {"in service": "up"}  # as nodes are shown
_NO_TENANT = "\n"  # of a job that is not known: only an asker who sees those of all tenants may see it


def why(
    controller: Controller,
    row: JobRow,
    origin: float,
    may_see: Callable[[str], bool] = lambda tenant: True,
    position: QueuePosition | None = None,
) -> dict[str, Any]:
    """Return why a job does not run, as the API shows it; other jobs are named if the asker may see their tenant's.

    `position` is that in the order that the policy makes now; left out, its last order counts. What would let the job
    start is not known here: it has to be played, see `forecasts.start_conditions`.
    """

    def reason(*why: Reason, until: str | None = None) -> dict[str, Any]:
        text = "; ".join(str(_seen(controller, one, may_see)) for one in why)
        return {"code": published(why[0].kind), "text": text, "until": until}

    shown: dict[str, Any] = {"id": row.id, "state": row.state, "since": iso(origin + row.since)}
    live = controller.rows.get(row.id)
    if live is not None and not live.is_over and (speed := _speed(controller, live)) is not None:
        shown["speed"] = f"it runs at {speed}"
    if live is not None and not live.is_over and (saving := describe_saving(live, origin)):
        shown["saving"] = saving
    if live is None or live.is_over:
        kind = {"rejected": "stated", QUARANTINED: QUARANTINED}.get(row.state)
        reasons = [reason(Reason(kind, text=row.reason))] if kind else []
        return {**shown, "reasons": reasons, "ahead": 0, "would_run_if": [], "outcome": row.reason or None}
    row, scheduler = live, controller.scheduler
    number = scheduler.state.row_of[row.id]
    if row.holds:
        reasons = [
            reason(_hold(controller, row, cause), until=iso(origin + row.backoff_until) if cause == "backoff" else None)
            for cause in row.holds
        ]
        return {**shown, "reasons": reasons, "ahead": 0, "would_run_if": []}
    if row.state == "unknown":
        reasons = [reason(Reason("world_unknown", text=row.reason))]
        return {**shown, "reasons": reasons, "ahead": 0, "would_run_if": []}
    if scheduler.state.jobs.stage[number] != Stage.WAITING:
        text = "it has accelerators, and its processes are being started" if row.state == "starting" else "it runs"
        delayed = [reason(Reason("launch_delayed", text=row.reason))] if row.state == "starting" and row.reason else []
        return {**shown, "reasons": delayed, "ahead": 0, "would_run_if": [], "note": text}
    preempted = None
    if not math.isnan(row.preempted):
        names = tuple(name for name in row.preempted_by if _may_see(controller, name, may_see))
        last = Preemption(at=row.preempted, by=row.preempted_by, ranked=row.preempted_by_rank, moved=False)
        preempted = last.reason(scheduler.info.name, names[:SHOWN])
        shown["preempted"] = {"at": iso(origin + last.at), "by": list(names), "by_count": len(last.by)}
    wait = diagnose(scheduler, number, controller.at, may_see, position, preempted)
    reasons = [reason(*wait.why)]
    more = (*drain_reasons(controller, row, origin), *_taken_from(controller, row), *_unreachable(controller, number))
    reasons += [reason(one) for one in more]
    return {
        **shown,
        "reasons": reasons,
        "ahead": wait.behind_count,
        "behind": list(wait.behind),
        "held_by": list(wait.held_by),
        "free": wait.free,
        "would_run_if": [],
    }


def _speed(controller: Controller, row: JobRow) -> str | None:
    """Return what is believed of a job's speed, where that was learnt."""
    job = core_job(row)
    return describe_throughput(controller.scheduler.belief, job.job_type, job.scale_factor)


def throughputs(controller: Controller) -> list[dict[str, Any]]:
    """Return what is believed of throughputs, by job type, size and accelerator type, where they are learnt."""
    if controller.learner is None:
        return []
    learnt, setup = controller.learner.learnt, controller.site.setup
    return [
        {
            "type": row.type,
            "job_type": row.job_type,
            "scale_factor": row.scale_factor,
            "steps_per_s": row.median,
            "steps_per_s_p10": row.low,
            "steps_per_s_p90": row.high,
            "origin": "measured" if row.is_measured else "estimated",
        }
        for row in learnt_rows(learnt, setup.stated_job_types)
    ]


def _may_see(controller: Controller, job_id: str, may_see: Callable[[str], bool]) -> bool:
    other = controller.row(job_id)
    return other is not None and may_see(other.tenant)


def _seen(controller: Controller, reason: Reason, may_see: Callable[[str], bool]) -> Reason:
    """Return a reason without ids of jobs that the asker may not see; a policy's own words may have some, too."""

    def shown(job_id: str) -> str:
        other = controller.row(job_id)
        return job_id if may_see(_NO_TENANT if other is None else other.tenant) else HIDDEN

    if not (reason.jobs or reason.text):
        return reason
    text = _JOB_ID.sub(lambda found: shown(found[0]), reason.text)
    return replace(reason, jobs=tuple(map(shown, reason.jobs)), text=text)


def _unreachable(controller: Controller, number: int) -> list[Reason]:
    """Return which jobs, on accelerators that this one could use, cannot be reached: theirs are not free until then."""
    state = controller.scheduler.state
    running, runs = state.running(), controller.scheduler.belief.throughput[number] > 0
    holders = (state.ids[job] for job in running[runs[state.jobs.on_type[running]]].tolist())
    found = [name for name in holders if name in controller.rows and controller.rows[name].state == "unknown"]
    if not found:
        return []
    return [Reason("holders_unknown", tuple(found[:SHOWN]), (len(found),))]


def _taken_from(controller: Controller, row: JobRow) -> list[Reason]:
    """Return the accelerators that others use and the job could run on, with who uses them."""
    wanted = row.spec.get("types") or controller.site.setup.topology.types
    return [
        Reason("taken", numbers=(seat,), names=(controller.device_types[seat],), text=str(holder))
        for seat, holder in sorted(controller.taken_seats.items())
        if controller.device_types[seat] in wanted
    ]


def _hold(controller: Controller, row: JobRow, cause: str) -> Reason:
    match cause:
        case "user":
            return Reason("held")
        case "after":
            missing = [one for one in controller.dependencies(row) if not controller.is_met(one)]
            return Reason(
                "after", tuple(one.job_id for one in missing[:SHOWN]), text=missing[0].verb if missing else ""
            )
        case "limit":
            return Reason("limit", text=controller.limits.reason(row))
        case "priority":
            return Reason("own_priority", text=controller.own_order.reason(row))
    return Reason("backoff", text=row.reason.partition(": ")[2])


def cluster(controller: Controller) -> dict[str, Any]:
    """Return accelerators by type and what they do."""
    state, topology = controller.scheduler.state, controller.site.setup.topology
    up, shown = state.floor.up[topology.node] & ~state.taken, {}
    away = np.zeros(topology.devices, dtype=bool)
    away[list(drained_seats(controller) | controller.closed)] = True
    there = ~np.isin(topology.node, [node for node in controller.drained if controller.is_removed(node)])
    for j, name in enumerate(topology.types):
        mine = (topology.type == j) & there
        shown[name] = {
            "total": int(mine.sum()),
            "in_service": int((mine & up).sum()),
            "free": int(state.floor.free[j]),
            "busy": int((mine & up).sum() - state.floor.free[j]),
            "taken": int((mine & state.taken & ~away).sum()),
            "drained": int((mine & (~state.floor.up[topology.node] | (state.taken & away))).sum()),
            "draining": int((mine & up & away).sum()),
        }
    return {
        "types": shown,
        "nodes": len(set(topology.node[there].tolist())),
        "policy": controller.scheduler.info.name,
        "policy_problem": controller.policy_problem or None,  # why its last answer is not used
    }


def nodes(
    controller: Controller, first: int = 0, count: int | None = None,
    may_see: Callable[[str], bool] = lambda tenant: True, origin: float = 0.0,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return each node, or so many from one on, with those of its jobs whose tenants the asker may see.

    `origin` is the wall-clock time of second 0.
    """
    topology, state, every = controller.site.setup.topology, controller.scheduler.state, controller.nodes
    shown = range(first, len(every) if count is None else min(first + count, len(every)))
    node_of, up = topology.node.tolist(), state.floor.up.tolist()
    jobs: defaultdict[int, list[str]] = defaultdict(list)
    for row in (controller.rows[state.ids[number]] for number in state.running().tolist()):
        if may_see(row.tenant):
            for node in sorted({node_of[seat] for seat in row.seats}):
                jobs[node].append(row.id)

    def by_node(seats: Iterable[int]) -> defaultdict[int, list[int]]:
        found: defaultdict[int, list[int]] = defaultdict(list)
        for seat in sorted(seats):
            found[node_of[seat]].append(seat)
        return found

    taken, idle = by_node(controller.taken_seats), by_node(controller.idle_seats)
    quarantined = by_node({*controller.quarantined, *controller.kept_seats})
    remains, drains = controller.quarantined, shown_drains(controller, shown, may_see, origin)
    return [
        {
            "name": every[n],
            "type": topology.types[int(topology.node_type[n])],
            "accelerators": int(topology.size[n]),
            "free": int(state.floor.free_by_node[n]) if up[n] else 0,
            "state": _UP.get(said := state_of(controller, n), said),
            "reason": controller.drained.get(n) or (drains[n]["drain"] or {}).get("reason"),
            **drains[n],
            "taken": {str(seat): controller.taken_seats[seat] for seat in taken.get(n, ())},
            "quarantined": list(quarantined.get(n, ())),
            "quarantine": {
                str(seat): {"job": remains[seat].job_id, "since": remains[seat].since, "why": remains[seat].why}
                for seat in quarantined.get(n, ())
                if seat in remains
            },
            "idle": list(idle.get(n, ())),
            "jobs": jobs.get(n, []),
        }
        for n in shown
    ]


def would_not_fit(controller: Controller, name: str, place: int = NODE) -> list[str]:
    """Return the live jobs that no type could run without that node, or accelerator of it, though one can now."""
    scheduler, topology = controller.scheduler, controller.site.setup.topology
    state, rows, node = scheduler.state, scheduler.state.active, controller.nodes.index(name)
    less = state.capacity.copy()
    if node not in controller.drained:
        gone = [seat for seat in seats_of(controller, node, place) if not state.taken[seat]]
        less[topology.node_type[node]] -= len(gone)
    runs, size = scheduler.belief.throughput[rows] > 0, state.jobs.scale_factor[rows][:, None]
    now, then = ((runs & (capacity >= size)).any(axis=1) for capacity in (state.capacity, less))
    return [state.ids[row] for row in rows[now & ~then].tolist()]


def summary(rows: Iterable[JobRow], at: float, ended: Iterable[EndedSum] = ()) -> list[dict[str, Any]]:
    """Return what each user got, by tenant: jobs by end, accelerator-hours, and the mean wait to the first start.

    `ended` are sums over jobs beside those of `rows`.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    waits: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    for one in chain(ended, (_as_sum(row, at) for row in rows)):
        key = one.tenant, one.user
        shown = found.setdefault(key, {"tenant": one.tenant, "user": one.user, "jobs": {}, "accelerator_h": 0.0})
        shown["jobs"][one.state] = shown["jobs"].get(one.state, 0) + one.jobs
        shown["accelerator_h"] += one.accelerator_s / HOUR_S
        waits[key][0] += one.waits
        waits[key][1] += one.wait_s
    for key, shown in found.items():
        count, wait_s = waits[key]
        shown["queueing_mean_s"] = wait_s / count if count else None
    return sorted(found.values(), key=lambda one: (-one["accelerator_h"], one["tenant"], one["user"]))


def _as_sum(row: JobRow, at: float) -> EndedSum:
    run_s = row.run_s + (at - row.started if row.state == "running" else 0.0)
    has_started = not math.isnan(row.first_started)
    wait_s = row.first_started - row.submitted if has_started else 0.0
    used = run_s * row.spec.get("accelerators", 1)
    return EndedSum(row.tenant, row.owner, row.state, 1, used, int(has_started), wait_s)


def ltgf(controller: Controller, at: float) -> dict[str, float]:
    """Return what each tenant received of what it deserved in the last day."""
    controller.fairness.advance(controller.scheduler, at)
    return controller.fairness.ltgf()


def tenants(controller: Controller, at: float, width: int, count: int) -> tuple[list[dict[str, Any]], int]:
    """Return what each tenant received and holds, in accelerator-seconds and accelerators, and the number of the hour.

    With it come its sums in `count` periods of `width` hours, of which only the last day is filled in.
    """
    scheduler = controller.scheduler
    controller.fairness.advance(controller.scheduler, at)
    curves = controller.fairness.periods(width, count)
    state, n = scheduler.state, len(scheduler.state.jobs)
    rows = np.arange(n)
    names, declared = dict.fromkeys((*state.owners.tree.names, *curves)), controller.site.setup.tenants
    owner, count_of = state.jobs.owner[:n], len(names)
    service = np.bincount(owner, scheduler.ledger.service_at(at, rows), minlength=count_of).astype(np.float64)
    service[: len(state.forgotten_service)] += state.forgotten_service
    held = np.bincount(owner, scheduler.ledger.width[rows], minlength=count_of)
    shown = []
    for number, name in enumerate(names):
        said = declared.get(name)
        shown.append(
            {
                "tenant": name,
                "weight": said.weight if said else 1.0,
                "quota": said.quota if said and not math.isnan(said.quota) else None,
                "received_accelerator_s": float(service[number]),
                "holds": int(held[number]),
                "periods": curves.get(name) or empty_periods(count),
            }
        )
    return shown, controller.fairness.hour


def policy(controller: Controller) -> dict[str, Any]:
    """Return the policy, its parameters, and the certificate of its last answer where it was optimised."""
    setup, proof = controller.site.setup, controller.scheduler.certificate
    certificate = None if proof is None else {"objective": proof.objective, "bound": proof.bound, "gap": proof.gap}
    return {
        "name": setup.policy.info.name,
        "door": setup.policy.info.answer_type,
        "objective": setup.policy.info.objective,
        "parameters": setup.scenario.policy.parameters,
        "lease_s": None if np.isinf(setup.mechanism.lease_s) else setup.mechanism.lease_s,
        "asked": controller.scheduler.asks.count,
        "certificate": certificate,
    }
