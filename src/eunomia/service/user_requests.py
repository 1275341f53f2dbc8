"""The pure step of a service, and what users ask for in it: submissions, changes of jobs, drained nodes."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from eunomia.backends.reports import StepsSaved
from eunomia.inputs.problems import InvalidInput
from eunomia.model.events import JobCancelled, JobPaused, JobUpdated, TenantChanged, TimerFired
from eunomia.service import world_reports
from eunomia.service.controller import REMOVED, Controller
from eunomia.service.draining import advance, drain, named, resume, users_of
from eunomia.service.interactive import check_interactive, refuse_session
from eunomia.service.job_admission import beyond_limits
from eunomia.service.job_document import FieldProblem, InvalidRequest, declared_end, parse_job
from eunomia.service.job_row import SEATED, JobRow, ended_as
from eunomia.service.limits import LIMIT
from eunomia.service.maintenance import advance_maintenance, cancel_maintenance, plan_maintenance
from eunomia.service.messages import (
    JOB_ROLE,
    Attach,
    Cancel,
    CancelMaintenance,
    ChangeJob,
    ChangeNode,
    ChangeTenant,
    Hold,
    Input,
    LongSubmission,
    PlanMaintenance,
    PolicyAnswered,
    PolicyOverran,
    Principal,
    Release,
    Reply,
    Request,
    SaveProgress,
    Submit,
)
from eunomia.service.node_states import accelerator_problems, state_of
from eunomia.service.out_of_service import NODE
from eunomia.service.own_order import PRIORITY
from eunomia.service.solver_reports import take_solver_report
from eunomia.service.submitted_jobs import go_on, submit
from eunomia.service.turn import Turn
from eunomia.setup.policy_settings import noted

CHANGEABLE = ("weight", "deadline_s", "name", "labels", "max_run_s", "priority")


def step(controller: Controller, now: float, inputs: Sequence[Input]) -> Turn:
    """Take in what has arrived by `now`, decide, and return all that changes."""
    now, controller.subject = float(now), ""
    turn = controller.turn = Turn(max(controller.at, now))
    if controller.wake <= now:
        at, controller.wake = max(controller.at, controller.wake), math.inf
        controller.emit("", TimerFired())
        controller.flush(at)
    controller.at = max(controller.at, now)
    while controller.timers and controller.timers[0][0] <= now:
        world_reports.expire(controller, *heapq.heappop(controller.timers)[1:])
    for message in inputs:
        turn.replies.append(_take(controller, message))
    controller.limits.begin_turn()
    controller.own_order.begin_turn()
    controller.flush(controller.at)
    if controller.drains or controller.maintenance or controller.closed:
        advance(controller)
        advance_maintenance(controller)
        controller.flush(controller.at)
    controller.settle_limits()
    controller.forget_ended()
    turn.orders = controller.driver.take_orders()
    turn.hours = controller.fairness.to_store(controller.scheduler, controller.at)
    controller.usage.count_running(controller.rows.values(), controller.at)
    turn.usage, turn.usage_counted = controller.usage.take(), controller.usage.counted
    if turn.moments or turn.hours:
        turn.active_time = controller.fairness.active_time
    return turn


def _take(controller: Controller, message: Input) -> Reply | LongSubmission | None:
    if isinstance(message, Request | LongSubmission):
        return answer(controller, message)
    if isinstance(message, PolicyAnswered | PolicyOverran):
        take_solver_report(controller, message)
    else:
        world_reports.take_report(controller, message)
    return None


def answer(controller: Controller, asked: Request | LongSubmission) -> Reply | LongSubmission:
    """Do what a user asks for, if it is allowed; what was done goes into the audit log.

    Of a submission that is too long for one turn, what is to be done next comes back instead of a reply.
    """
    request = asked.request if isinstance(asked, LongSubmission) else asked
    action, who = request.action, request.who
    reply: Reply | LongSubmission
    try:
        if isinstance(asked, LongSubmission):
            reply = go_on(controller, asked)
        else:
            reply = HANDLERS[type(action)](controller, action, who)
    except InvalidInput as error:  # a damaged row of the store, which is looked up before anything changes
        one = error.problems[0]
        return Reply(500, {"title": f"{one.rule}; {one.fix}", "code": "damaged"})
    if isinstance(reply, LongSubmission):
        return replace(reply, request=request)
    if reply.status < 300 and who.role != JOB_ROLE:  # jobs report progress too often for the audit log
        node = reply.body["name"] if isinstance(action, ChangeNode) else None
        about = getattr(action, "job_id", None) or node or ",".join(_ids(reply))[:200]
        controller.turn.audit.append((who.user, who.role, request.source, type(action).__name__.lower(), about))
    return reply


def _found(controller: Controller, job_id: str, who: Principal) -> JobRow | Reply:
    """Return a job that the principal may change, or the refusal: ids of others answer as unknown ones."""
    row = controller.row(job_id)
    if row is None or not who.may_see(row.tenant):
        return Reply(404, {"title": "there is no such job"})
    if not who.owns(row.owner, row.tenant):
        return Reply(403, {"title": "only its submitter, an administrator of its tenant or an operator may do that"})
    return row


def _cancel(controller: Controller, action: Cancel, who: Principal) -> Reply:
    row = _found(controller, action.job_id, who)
    if isinstance(row, Reply):
        return row
    if row.is_over:
        status = 200 if row.state == "cancelled" else 409
        return Reply(status, {"id": row.id, "row": row, "title": f"the job {ended_as(row.state, already=True)}"})
    controller.emit(row.id, JobCancelled(row.id))
    controller.end(row, "cancelled", f"cancelled by {who.user}")
    return Reply(200, {"id": row.id, "row": row})


def _hold(controller: Controller, action: Hold, who: Principal) -> Reply:
    row = _found(controller, action.job_id, who)
    if isinstance(row, Reply):
        return row
    if row.is_over:
        return Reply(409, {"title": f"the job {ended_as(row.state, already=True)}"})
    if "user" not in row.holds:
        if not row.holds:
            controller.emit(row.id, JobPaused(row.id))
        controller.hold(row, "user")
        controller.move(row, "held", f"held by {who.user}")
    return Reply(200, {"id": row.id, "row": row})


def _release(controller: Controller, action: Release, who: Principal) -> Reply:
    row = _found(controller, action.job_id, who)
    if isinstance(row, Reply):
        return row
    if "user" not in row.holds or row.is_over:
        return Reply(409, {"title": "the job is not held"})
    controller.unhold(row, "user")
    return Reply(200, {"id": row.id, "row": row})


def _change(controller: Controller, action: ChangeJob, who: Principal) -> Reply:
    row = _found(controller, action.job_id, who)
    if isinstance(row, Reply):
        return row
    if row.is_over:
        return Reply(409, {"title": f"the job {ended_as(row.state, already=True)}"})
    wrong = [key for key in action.values if key not in CHANGEABLE]
    try:
        parsed = parse_job({**row.spec, **action.values}) if not wrong else None
    except InvalidRequest as error:
        return Reply(422, {"title": "the job cannot be changed so"}, error.problems)
    if parsed is not None and "max_run_s" in action.values and not who.is_operator:
        over = [*beyond_limits(controller, parsed, row.owner, row.tenant), *check_interactive(controller, parsed)]
        if over := [one for one in over if one.field == "max_run_s"]:
            return Reply(422, {"title": "the job cannot be changed so"}, tuple(over))
    if parsed is None:
        fix = f"change one of {', '.join(CHANGEABLE)}, or cancel the job and submit it again"
        problems = tuple(FieldProblem(key, None, "cannot be changed", fix) for key in wrong)
        return Reply(422, {"title": "the job cannot be changed so"}, problems)
    is_bounded = "max_run_s" in action.values and not who.is_operator
    row.spec = controller.limited_spec(parsed, row.owner) if is_bounded else parsed.spec()
    controller.rename(row, parsed.name or row.name)
    if not action.values.keys().isdisjoint({"weight", "deadline_s"}):
        weight = float(parsed.weight) if "weight" in action.values else math.nan
        end = declared_end(row.spec, row.submitted) if "deadline_s" in action.values else math.nan
        controller.emit(row.id, JobUpdated(row.id, weight=weight, deadline=end))
    if "max_run_s" in action.values:
        controller.set_timers(row)
    if "priority" in action.values:
        if row.holds == [LIMIT]:
            controller.limits.queue(row)
        if PRIORITY in row.holds:
            controller.own_order.queue(row)
    controller.changed(row, "changed")
    notes = noted(controller.site.setup.policy.info, action.values)
    return Reply(200, {"id": row.id, "row": row, **({"notes": notes} if notes else {})})


def _attach(controller: Controller, action: Attach, who: Principal) -> Reply:
    row = controller.row(action.job_id)
    if row is None or not who.may_see(row.tenant):
        return Reply(404, {"title": "there is no such job", "code": "no_such_job"})
    return refuse_session(row, who) or Reply(200, {"id": row.id, "epoch": row.epoch})


def _change_node(controller: Controller, action: ChangeNode, who: Principal) -> Reply:
    if not who.is_operator:
        return Reply(403, {"title": "only an operator may do that"})
    if action.node not in controller.nodes:
        return Reply(404, {"title": "there is no such node"})
    node, place = controller.nodes.index(action.node), action.accelerator
    if wrong := accelerator_problems(controller, node, place):
        return Reply(422, {"title": "the accelerator cannot be changed so"}, wrong)
    moved: list[str] = []
    known = controller.drains.get((node, place))
    is_out = place == NODE and node in controller.drained
    if action.action == "drain" and (not is_out or (known is not None and known.maintenance)):
        reason = action.reason.removeprefix(REMOVED)
        moved = drain(controller, node, place, reason=reason, user=who.user, until=action.until,
                      maintenance=action.maintenance)  # fmt: skip
    elif action.action == "remove" and not controller.is_removed(node):
        reason = action.reason.removeprefix(REMOVED) or f"by {who.user}"
        moved = controller.remove(node, f"{REMOVED}{reason}")
        controller.order_node(node)
    elif action.action == "resume":
        resume(controller, node, place)
    state, one = state_of(controller, node, place), controller.drains.get((node, place))
    why = controller.drained.get(node) if place == NODE else None
    why = one.reason if why is None and one is not None else why
    left = [] if one is None else users_of(controller, one)
    shown = {"name": named(controller, node, place), "state": state, "drained": why, "moved": moved}
    return Reply(
        200, {**shown, "jobs_left": [] if state == "in service" else [job for job in left if job not in moved]}
    )


def _plan_maintenance(controller: Controller, action: PlanMaintenance, who: Principal) -> Reply:
    if not who.is_operator:
        return Reply(403, {"title": "only an operator may do that"})
    unknown = [name for name in action.nodes if name not in controller.nodes]
    if unknown:
        fix = f"name nodes of this cluster: {', '.join(controller.nodes[:20])}"
        wrong = tuple(FieldProblem("nodes", name, "is no node", fix) for name in unknown)
        return Reply(422, {"title": "the maintenance cannot be planned"}, wrong)
    begins = max(action.begins, controller.at)
    span = plan_maintenance(controller, action.nodes, begins, begins + action.span_s, action.reason, who.user)
    return Reply(201, {"id": str(span.number), "span": span})


def _cancel_maintenance(controller: Controller, action: CancelMaintenance, who: Principal) -> Reply:
    if not who.is_operator:
        return Reply(403, {"title": "only an operator may do that"})
    span = cancel_maintenance(controller, action.number)
    if span is None:
        return Reply(404, {"title": "there is no such maintenance, or it is over"})
    return Reply(200, {"id": str(span.number), "span": span})


def _change_tenant(controller: Controller, action: ChangeTenant, who: Principal) -> Reply:
    if not who.is_operator:
        return Reply(403, {"title": "only an operator may do that"})
    controller.flush(controller.at)
    controller.emit("", TenantChanged(action.name, action.tenant))
    detail = {"reason": f"changed by {who.user}", "epoch": 0, "tenant": action.name}
    controller.turn.news.append(("", action.name, "TenantChanged", json.dumps(detail)))
    return Reply(200, {"id": action.name})


def _save_progress(controller: Controller, action: SaveProgress, who: Principal) -> Reply:
    row = controller.rows.get(action.job_id)
    if row is None or (who.user, who.epoch) != (row.id, row.epoch) or row.ended_epoch >= row.epoch:
        controller.stale_reports += 1
        return Reply(409, {"title": "this start of the job is over", "code": "stale_epoch"})
    steps = action.steps if row.estimated else min(action.steps, row.total_steps)
    if steps < row.steps:
        rule = f"a checkpoint with {row.steps:g} steps was reported before"
        problem = FieldProblem("steps", f"{steps:g}", rule, "report what the newest checkpoint holds")
        return Reply(409, {"title": "progress does not go back", "code": "goes_back"}, (problem,))
    world_reports.take_report(controller, StepsSaved(row.id, row.epoch, steps))
    return Reply(200, {"id": row.id, "epoch": row.epoch, "steps": row.steps, "stop": row.state not in SEATED})


def _ids(reply: Reply) -> list[str]:
    return list(reply.body.get("ids") or [reply.body.get("id", "")])


HANDLERS: dict[type, Callable[..., Reply | LongSubmission]] = {
    Submit: submit,
    SaveProgress: _save_progress,
    Cancel: _cancel,
    Hold: _hold,
    Release: _release,
    ChangeJob: _change,
    Attach: _attach,
    ChangeNode: _change_node,
    PlanMaintenance: _plan_maintenance,
    CancelMaintenance: _cancel_maintenance,
    ChangeTenant: _change_tenant,
}
