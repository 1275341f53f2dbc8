"""What users see of drained nodes and accelerators and of maintenance, and what a drain would do to each job."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from eunomia.model.wait_reason import Reason
from eunomia.service.controller import Controller
from eunomia.service.draining import holders, named, seats_of, users_of
from eunomia.service.job_document import FieldProblem
from eunomia.service.job_row import JobRow, iso
from eunomia.service.maintenance import believed_run_s, planned
from eunomia.service.out_of_service import NODE, Drain, Maintenance

IN_ENGINE = {  # what takes one accelerator out of service there
    "slurm": "take it out of the node's Gres in slurm.conf and gres.conf, and type: scontrol reconfigure",
    "ray": "end ray on the node, and start it with one less: ray start --address=… --num-gpus=N",
    "kubernetes": "let the device plugin leave it out (NVIDIA_VISIBLE_DEVICES of its DaemonSet on that node)",
}


def accelerator_problems(controller: Controller, node: int, place: int) -> tuple[FieldProblem, ...]:
    """Return why an accelerator of a node cannot be drained or resumed by itself."""
    if place == NODE:
        return ()
    name, size = controller.nodes[node], int(controller.site.setup.topology.size[node])
    backend = controller.site.setup.scenario.world.backend
    if not 0 <= place < size:
        fix = f"name one of {name}/0 to {name}/{size - 1}"
        return (FieldProblem("accelerator", str(place), f"{name} has {size} accelerators, counted from 0", fix),)
    if backend in IN_ENGINE:
        rule = f"{backend} chooses the accelerators of a node itself, so one of them cannot be drained here"
        fix = f"drain the node ({name}); or {IN_ENGINE[backend]}"
        return (FieldProblem("accelerator", str(place), rule, fix),)
    return ()


def state_of(controller: Controller, node: int, place: int = NODE) -> str:
    """Return whether a node or an accelerator is `in service`, `draining`, `drained` or `removed`."""
    if controller.is_removed(node):
        return "removed"
    one = controller.drains.get((node, place))
    if one is not None:
        return "draining" if math.isnan(one.empty) else "drained"
    return "drained" if node in controller.drained else "in service"


def shown_drains(
    controller: Controller, shown: Iterable[int], may_see: Callable[[str], bool], origin: float
) -> dict[int, dict[str, Any]]:
    """Return what is drained and planned, by node; `origin` is the wall-clock time of second 0."""
    spans, places = planned(controller), defaultdict[int, list[Drain]](list)
    for one in controller.drains.values():
        if one.place != NODE:
            places[one.node].append(one)
    found: dict[int, dict[str, Any]] = {}
    for node in shown:
        whole, span = controller.drains.get((node, NODE)), spans.get(node)
        found[node] = {
            "drain": None if whole is None else _drain(controller, whole, may_see, origin),
            "drained_accelerators": {
                str(one.place): _drain(controller, one, may_see, origin)
                for one in sorted(places[node], key=lambda one: one.place)
            },
            "maintenance": None if span is None else span_shown(span, origin),
        }
    return found


def _drain(controller: Controller, one: Drain, may_see: Callable[[str], bool], origin: float) -> dict[str, Any]:
    jobs = [controller.rows.get(job_id) for job_id in users_of(controller, one)]
    return {
        "state": state_of(controller, *one.key),
        "reason": one.reason,
        "by": one.user,
        "since": iso(origin + one.since),
        "until": iso(origin + one.until) if math.isfinite(one.until) else None,
        "jobs_left": len(jobs),
        "jobs": [row.id for row in jobs if row is not None and may_see(row.tenant)],
    }


def span_shown(one: Maintenance, origin: float) -> dict[str, Any]:
    """Return a span of maintenance as the API shows it."""
    return {
        "id": one.number,
        "nodes": list(one.nodes),
        "from": iso(origin + one.begins),
        "to": iso(origin + one.ends),
        "reason": one.reason,
        "by": one.user,
        "state": one.state,
    }


def spans_shown(controller: Controller, origin: float) -> list[dict[str, Any]]:
    """Return the spans of maintenance that are not over, the next first."""
    spans = sorted(controller.maintenance.values(), key=lambda one: (one.begins, one.number))
    return [span_shown(one, origin) for one in spans]


# ---- what a drain would do -------------------------------------------------------------------------------------------


def drain_preview(
    controller: Controller, node: int, place: int, until: float, at: float, origin: float
) -> list[dict[str, Any]]:
    """Return the jobs that run there, and what each would lose if what is left at `until` were stopped.

    A job that can save is asked to, so it loses nothing; another one loses its time since its start.
    """
    rows = [controller.rows[job_id] for job_id in holders(controller, seats_of(controller, node, place))]
    return [_previewed(controller, row, until, at, origin) for row in rows]


def _previewed(controller: Controller, row: JobRow, until: float, at: float, origin: float) -> dict[str, Any]:
    started = row.started if row.launched_epoch == row.epoch else at
    kind = int(controller.site.setup.topology.type[row.seats[0]]) if row.seats else 0
    ends = at + believed_run_s(controller, [row], kind)[0]  # it runs there, so it can
    limit = row.spec.get("max_run_s")
    ends = ends if limit is None else min(ends, started + float(limit))
    is_stopped = max(until, at) < ends
    lost_s = 0.0 if row.can_save or not is_stopped else max(until, at) - started
    return {
        "id": row.id,
        "name": row.name,
        "user": row.owner,
        "tenant": row.tenant,
        "running_s": at - started,
        "can_save": row.can_save,
        "believed_end": iso(origin + ends),
        "stopped": is_stopped,
        "lost_s": lost_s,
        "lost_accelerator_s": lost_s * len(row.seats),
    }


# ---- why a job waits -------------------------------------------------------------------------------------------------


def drain_reasons(controller: Controller, row: JobRow, origin: float) -> list[Reason]:
    """Return what of the accelerators that a waiting job could use is drained, or kept free for a maintenance."""
    topology = controller.site.setup.topology
    wanted = row.spec.get("types") or topology.types

    def is_wanted(node: int) -> bool:
        return topology.types[int(topology.node_type[node])] in wanted

    found = [
        Reason("drained", names=(named(controller, *one.key), state_of(controller, *one.key)), text=one.reason)
        for one in controller.drains.values()
        if is_wanted(one.node) and not controller.is_removed(one.node)
    ]
    for node, span in planned(controller).items():
        if is_wanted(node) and seats_of(controller, node)[0] in controller.closed:
            names = controller.nodes[node], iso(origin + span.begins)
            found.append(Reason("maintenance", names=names, text=span.reason))
    return found
