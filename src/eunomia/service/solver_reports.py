"""What comes of an ask that a solver answers later: its answer, or that there will be none."""

from __future__ import annotations

import json

from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.events import Answered, AskAbandoned, Moment
from eunomia.service.live_jobs import LiveJobs
from eunomia.service.messages import PolicyAnswered, PolicyOverran

PAUSE_S = 1.0  # after an ask without an answer, before the policy is asked again


OURS = "eunomia.policies."


def take_solver_report(jobs: LiveJobs, message: PolicyAnswered | PolicyOverran) -> None:
    """Take in an answer, or go on with the last one; what is about an earlier ask changes nothing."""
    jobs.flush(jobs.at)
    pending = jobs.scheduler.asks.pending
    is_ours = message.runner is None or message.runner is jobs.runner
    if pending is None or pending.asked != message.asked or not is_ours:
        return
    reason = message.reason if isinstance(message, PolicyOverran) else _wrong(jobs, message.asked, message.answer)
    if isinstance(message, PolicyAnswered) and not reason:
        jobs.emit("", Answered(message.asked, message.answer))
    else:
        jobs.turn.news.append(("", "", "solver_overrun", json.dumps({"reason": reason, "epoch": 0})))
        jobs.emit("", AskAbandoned(message.asked, jobs.at + PAUSE_S))
    jobs.flush(jobs.at)


def _wrong(jobs: LiveJobs, asked: int, answer: Answer) -> str:
    """Return what is wrong with an answer; the package's own policies, which are tested for it, give no wrong ones."""
    if type(jobs.site.setup.policy).__module__.startswith(OURS):
        return ""
    try:
        jobs.scheduler.copy().handle(Moment(jobs.at, (Answered(asked, answer),)))
    except InvalidAnswer as error:
        return f"the policy's answer cannot be carried out: {error}"
    return ""
