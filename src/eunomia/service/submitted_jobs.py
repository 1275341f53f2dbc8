"""Submissions in the controller: whole or not at all, and those of many jobs in several turns.

One that fits into a turn is checked, accepted and entered in that turn. A longer one takes turns of bounded size, and
between them others have theirs: it is checked part by part, which changes nothing; then it is accepted by one commit,
which stores its documents, its key and its first jobs; then its other jobs are entered part by part. What is accepted
goes on after a restart, so of a submission there is nothing or, in the end, everything; its reply comes after the last
part. Jobs get their numbers as they are entered, so the order of submission is that of the log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from eunomia.service.controller import Controller
from eunomia.service.job_admission import Room, check_job
from eunomia.service.job_document import FieldProblem, JobDocument
from eunomia.service.job_row import JobRow
from eunomia.service.messages import AT_ONCE, JobPlan, LongSubmission, Principal, Reply, Request, Submit, ids_in
from eunomia.setup.policy_settings import DEFAULTS, noted


def submit(controller: Controller, action: Submit, who: Principal) -> Reply | LongSubmission:
    """Take a submission; of one that is too long for this turn, return what the next turns go on with."""
    if not action.is_unkeyed and (known := _known_key(controller, who.tenant, action.key)) is not None:
        return _repeated(controller, action, *known)
    if action.count > AT_ONCE:
        return LongSubmission.of(Request(action, who))
    plans = _plans(controller, action, who)
    if (refusal := _refusal(controller, action, plans)) is not None:
        return refusal
    rows = [_entered(controller, *one, who) for one in _jobs(zip(action.jobs, plans, strict=True))]
    ids = [row.id for row in rows]
    if not action.is_unkeyed:
        controller.turn.keys.append((who.tenant, action.key, action.digest, ids))
    said = _notes(controller, action.jobs)
    return Reply(201, {"ids": ids, **said} if action.several else {"id": ids[0], "row": rows[0], **said})


def go_on(controller: Controller, long: LongSubmission) -> Reply | LongSubmission:
    """Do the next part of a submission; return its reply, or what a later turn goes on with.

    What was checked for another site is checked again; jobs that were accepted and do not fit any more are set aside.
    """
    action, who = long.submit, long.request.who
    if long.site is not controller.site:
        long = replace(long, site=controller.site, plans=())
    if (done := len(long.plans)) < len(action.jobs):
        plans = _plans(controller, action, who, done, long.most)
        return replace(long, most=AT_ONCE, plans=(*long.plans, *plans))
    if not long.entered:  # what is urgent may have passed it with the same key
        if (known := _known_key(controller, who.tenant, action.key)) is not None:
            return _repeated(controller, action, *known)
        if (refusal := _refusal(controller, action, long.plans)) is not None:
            return refusal
    document = bisect_right(long.ends, long.entered)
    rest = zip(action.jobs[document:], long.plans[document:], strict=True)
    jobs = _jobs(rest, long.entered - (long.ends[document - 1] if document else 0))
    rows = [_entered(controller, *one, who, long.fault) for one in islice(jobs, 1 if long.fault else long.most)]
    span = f"{rows[0].number}..{rows[-1].number}-{controller.incarnation}"
    after = replace(
        long, most=AT_ONCE, entered=long.entered + len(rows), spans=(*long.spans, span), fault=""
    )  # fmt: skip
    controller.turn.long.append(after)
    said = _notes(controller, action.jobs) if after.is_complete else {}
    return Reply(201, {"ids": ids_in(after.spans), **said}) if after.is_complete else after


def _notes(controller: Controller, jobs: Iterable[JobDocument]) -> dict[str, list[str]]:
    """Return what an answer says of settings that change no decision; nothing if there are none."""
    given = dict[str, object]()
    for job in jobs:
        if job.weight != DEFAULTS["weight"]:
            given["weight"] = job.weight
        if job.deadline_s is not None:
            given["deadline_s"] = job.deadline_s
    notes = noted(controller.site.setup.policy.info, given)
    return {"notes": notes} if notes else {}


def _plans(
    controller: Controller, action: Submit, who: Principal, first: int = 0, most: int = AT_ONCE
) -> list[JobPlan]:
    """Check at most so many documents of a submission, from one on."""
    rooms, plans = dict[Any, Room](), []
    for place, job in islice(enumerate(action.jobs), first, first + most):
        tenant, prefix = job.tenant or who.tenant, f"[{place}]." if len(action.jobs) > 1 else ""
        found, total, estimated, shapes = check_job(controller, job, tenant, who, rooms)
        problems = tuple(replace(one, field=prefix + one.field) for one in found)
        group = f"{action.key}.{place}" if job.array is not None and "%" in job.array else ""
        plans.append(JobPlan(tenant, problems, total, estimated, shapes, group))
    return plans


def _refusal(controller: Controller, action: Submit, plans: Sequence[JobPlan]) -> Reply | None:
    """Return why a submission is not accepted, whole; None if it is."""
    if problems := [one for plan in plans for one in plan.problems]:
        return Reply(422, {"title": "the jobs cannot be accepted"}, tuple(problems))
    count = Counter[str]()
    for job, plan in zip(action.jobs, plans, strict=True):
        count[plan.tenant] += job.count
    most = controller.site.service.max_pending_per_tenant
    over = [tenant for tenant, more in count.items() if controller.waiting[tenant] + more > most]
    if over:
        return Reply(429, {"title": f"tenant {over[0]!r} may have {most:,} jobs waiting; wait until some have run"})
    return None


def _jobs(
    planned: Iterable[tuple[JobDocument, JobPlan]], first: int = 0
) -> Iterator[tuple[JobDocument, JobPlan, int | None]]:
    """Yield the jobs of documents, from that one of the first document on, each with its index in its array."""
    for job, plan in planned:
        for index in job.indices()[first:]:
            yield job, plan, index
        first = 0


def _entered(
    controller: Controller, job: JobDocument, plan: JobPlan, index: int | None, who: Principal, fault: str = ""
) -> JobRow:
    """Add a job; one that was accepted and cannot be scheduled is set aside."""
    fault = fault or "; ".join(f"{one.field}: {one.rule}" for one in plan.problems)
    row = controller.new_row(job, index, plan.tenant, who.user, plan.total_steps, plan.estimated, plan.other_sizes)
    row.array_group = plan.array_group
    if fault:
        controller.set_aside_unscheduled(row, f"it cannot be scheduled: {fault}")
    else:
        controller.add(row)
    return row


def _known_key(controller: Controller, tenant: str, key: str) -> tuple[str, list[str]] | None:
    """Return body digest and ids of an earlier submission with that key, also of this turn."""
    if (known := controller.lookup.key(tenant, key)) is not None:
        return known
    for owner, other, body, ids in controller.turn.keys:
        if (owner, other) == (tenant, key):
            return body, ids
    return None


def _repeated(controller: Controller, action: Submit, body: str, ids: list[str]) -> Reply:
    if body != action.digest:
        row = controller.row(ids[0])
        was, now = (row.spec if row else {}), action.jobs[0].spec()
        fields = [key for key in (*was, *now) if was.get(key) != now.get(key)] or ["body"]
        rule = "the same Idempotency-Key came with another body before"
        problem = FieldProblem(fields[0], str(now.get(fields[0])), rule, "send a new key, or the same body")
        return Reply(409, {"title": rule, "code": "idempotency_conflict", "ids": ids}, (problem,))
    if action.several:
        return Reply(200, {"ids": ids})
    row = controller.row(ids[0])
    return Reply(200, {"id": ids[0], "row": row})
