"""What comes of an ask that a solver answers later: its answer, or that there will be none."""

from __future__ import annotations

import json
from dataclasses import replace

from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.events import Answered, AskAbandoned, Moment
from eunomia.service.live_jobs import LiveJobs
from eunomia.service.messages import PolicyAnswered, PolicyOverran

PAUSE_S = 1.0  # after an ask without an answer, before the policy is asked again


SOON_S = 0.01
OURS = "eunomia.policies."


def take_solver_report(jobs: LiveJobs, message: PolicyAnswered | PolicyOverran) -> None:
    """Take in an answer, or go on with the last one; what is about an earlier ask changes nothing."""
    jobs.flush(jobs.at)
    pending = jobs.scheduler.asks.pending
    is_ours = message.runner is None or message.runner is jobs.runner
    if pending is None or pending.asked != message.asked or not is_ours:
        return
    if isinstance(message, PolicyAnswered):
        answer = _in_time(jobs, message.answer)
        reason = _wrong(jobs, message.asked, answer)
        if not reason:
            jobs.emit("", Answered(message.asked, answer))
    else:
        reason = message.reason
    if reason:
        jobs.turn.news.append(("", "", "solver_overrun", json.dumps({"reason": reason, "epoch": 0})))
        jobs.emit("", AskAbandoned(message.asked, jobs.at + PAUSE_S))
    jobs.flush(jobs.at)


def _in_time(jobs: LiveJobs, answer: Answer) -> Answer:
    """Return an answer whose policy wants to be asked again; a time that has passed since the ask is now."""
    if jobs.scheduler.asks.last_at < answer.again_at <= jobs.at:
        return replace(answer, again_at=jobs.at + SOON_S)
    return answer


def _wrong(jobs: LiveJobs, asked: int, answer: Answer) -> str:
    """Return what is wrong with an answer: it is tried on a copy of the state.

    The package's own policies are tested to give none for the state that they were asked about.
    """
    is_known = type(jobs.site.setup.policy).__module__.startswith(OURS)
    if is_known and not jobs.scheduler.asks.is_stale:
        return ""
    try:
        jobs.scheduler.copy().handle(Moment(jobs.at, (Answered(asked, answer),)))
    except InvalidAnswer as error:
        return f"the policy's answer cannot be carried out: {error}"
    return ""
