"""Interactive jobs: what the site allows, who is let in, and what becomes of those that are idle."""

from __future__ import annotations

import heapq
import math

from eunomia.backends.reports import SessionIdle
from eunomia.model.events import JobCancelled
from eunomia.service.controller import Controller
from eunomia.service.job_document import FieldProblem, JobDocument
from eunomia.service.job_row import JobRow, ended_as
from eunomia.service.messages import Principal, Reply
from eunomia.verdict.number_format import duration

IDLE = "idle for "  # begins the reason of a job that is idle
INSTEAD = {  # what is typed where an engine runs the jobs
    "slurm": "srun --jobid NUMBER --overlap --pty bash, for a job that runs (squeue shows its NUMBER)",
    "kubernetes": "kubectl exec -it POD -- bash, for a job that runs (kubectl get pods)",
    "ray": "ray attach, or ssh to the node of a job that runs (eunomia job ID)",
}


def check_interactive(controller: Controller, job: JobDocument, tenant: str = "", mine: str = "") -> list[FieldProblem]:
    """Return what is wrong with an interactive job for a tenant at this site; `mine` is that of its submitter."""
    if job.interactive is None:
        return []
    found, site = list[FieldProblem](), controller.site
    backend = site.setup.scenario.world.backend
    if backend != "local":
        rule = f"the jobs of this site run under {backend}, which has a way of its own"
        fix = f"type {INSTEAD.get(backend, 'what it has for that')}"
        found.append(FieldProblem("interactive", job.interactive, rule, fix))
    if tenant != mine:
        rule = "an interactive job is for the tenant of its submitter"
        found.append(FieldProblem("tenant", tenant, rule, f"leave it out for {mine!r}"))
    longest_s = site.interactive.longest_s
    if (job.max_run_s or 0.0) > longest_s:
        rule = f"an interactive job runs for at most {longest_s:g} s here"
        found.append(FieldProblem("max_run_s", f"{job.max_run_s:g}", rule, "ask for less"))
    return found


def refuse_session(row: JobRow, who: Principal) -> Reply | None:
    """Return why a user is not let into a job; None for its submitter, while it runs. No role is above that."""
    if (row.owner, row.tenant) != (who.user, who.tenant):
        return Reply(403, {"title": "only who submitted it is let into an interactive job", "code": "forbidden"})
    if "interactive" not in row.spec:
        fix = "eunomia logs shows its output; submit one with eunomia shell or eunomia notebook"
        problem = FieldProblem("id", row.id, "is no interactive job", fix)
        return Reply(409, {"title": "the job is not interactive", "code": "not_interactive"}, (problem,))
    if row.is_over:
        return Reply(409, {"title": f"the job {ended_as(row.state, already=True)}", "code": "over"})
    if row.state != "running":
        return Reply(409, {"title": f"the job is {row.state}", "code": "not_running"})
    return None


def take_idle(controller: Controller, row: JobRow, report: SessionIdle) -> None:
    """Take in that an interactive job is idle, or is not idle any more."""
    since = math.nan if report.idle_s is None else controller.at - max(report.idle_s, 0.0)
    if "interactive" not in row.spec or (math.isnan(since) and math.isnan(row.idle_since)):
        return
    row.idle_since = max(since, row.started) if not math.isnan(since) and not math.isnan(row.started) else since
    is_short = math.isnan(since) or controller.at - row.idle_since < controller.site.interactive.idle_warn_s
    if is_short and row.reason.startswith(IDLE):  # it was used, perhaps between two looks
        row.reason = ""
    controller.changed(row, "")
    set_idle_timer(controller, row)


def set_idle_timer(controller: Controller, row: JobRow) -> None:
    """Let it fall due that a job is named as idle, or that it is ended, whichever is next."""
    terms = controller.site.interactive
    spans = (0.0 if row.reason.startswith(IDLE) else terms.idle_warn_s, terms.idle_end_s)
    due = min((row.idle_since + after_s for after_s in spans if after_s), default=math.inf)
    if row.state == "running" and due < controller.idle_dues.get(row.id, math.inf):  # one timer a job, the next one
        controller.idle_dues[row.id] = due
        heapq.heappush(controller.timers, (due, "idle", row.id, row.epoch))


def renew_idle_timers(controller: Controller) -> None:
    """Go by other times of the site."""
    for row in controller.rows.values():
        set_idle_timer(controller, row)


def expire_idle(controller: Controller, row: JobRow) -> None:
    """Name a job that has been idle for long, and end one that has been for too long."""
    terms, idle_s = controller.site.interactive, controller.at - row.idle_since
    controller.idle_dues.pop(row.id, None)
    if row.state != "running" or math.isnan(idle_s):
        return
    what = "no input, no output, and hardly any computing"
    if terms.idle_end_s and idle_s >= terms.idle_end_s:
        controller.emit(row.id, JobCancelled(row.id))
        controller.end(row, "cancelled", f"{IDLE}{duration(terms.idle_end_s)}: {what}")
        return
    if terms.idle_warn_s and idle_s >= terms.idle_warn_s and not row.reason.startswith(IDLE):
        ends = f"; it is ended after {duration(terms.idle_end_s)}" if terms.idle_end_s else ""
        row.reason = f"{IDLE}{duration(terms.idle_warn_s)} and longer: {what}{ends}"
        controller.changed(row, "session_idle")
    set_idle_timer(controller, row)
