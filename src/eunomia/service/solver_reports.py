"""What comes of an ask that a solver answers later: its answer, that of its fallback, or that there will be none."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import numpy as np

from eunomia.core.answer_check import check_kind
from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.events import Answered, AskAbandoned, Moment
from eunomia.policies import build
from eunomia.service.live_jobs import LiveJobs
from eunomia.service.messages import PolicyAnswered, PolicyOverran

PAUSE_S = 1.0  # after an ask without an answer, before the policy is asked again
SOON_S = 0.01
_log = logging.getLogger(__name__)
OURS = "eunomia.policies."


def take_solver_report(jobs: LiveJobs, message: PolicyAnswered | PolicyOverran) -> None:
    """Take in an answer, or go on with the last one; what is about an earlier ask changes nothing."""
    jobs.flush(jobs.at)
    pending = jobs.scheduler.asks.pending
    is_ours = message.runner is None or message.runner is jobs.runner
    if pending is None or pending.asked != message.asked or not is_ours:
        return
    is_new = True
    if isinstance(message, PolicyAnswered):
        reason = _wrong(jobs, message.asked, message.answer)
        if reason:
            jobs.refused_answers += 1
            is_new = reason != jobs.policy_problem  # such a mistake comes again with each answer
            if is_new:
                _log.warning("the last answer goes on: %s", reason)
        else:
            jobs.emit("", Answered(message.asked, _in_time(jobs, message.answer)))
    else:
        reason = message.reason
    jobs.policy_problem = reason
    if reason:
        instead = _fallback_answer(jobs, message.asked)
        kind = "solver_overrun" if instead is None else "policy_fallback"
        if is_new:
            jobs.turn.news.append(("", "", kind, json.dumps({"reason": reason, "epoch": 0})))
        if instead is None:
            jobs.emit("", AskAbandoned(message.asked, jobs.at + PAUSE_S))
        else:
            jobs.fallbacks += 1
            jobs.emit("", Answered(message.asked, instead))
    jobs.flush(jobs.at)


def _fallback_answer(jobs: LiveJobs, asked: int) -> Answer | None:
    """Return what the policy's fallback answers to the same view; None without one, or where it cannot be used.

    The policy is asked again after a pause, and finds the memory of its last answer.
    """
    policy, ask = jobs.site.setup.policy, jobs.asked
    if not policy.info.fallback or ask is None or ask.asked != asked:
        return None
    heuristic, view = build(policy.info.fallback), ask.view
    fresh = {name: np.full(view.jobs, value) for name, value in heuristic.info.memory_columns.items()}
    answer = heuristic.decide(replace(view, memory={**fresh, **view.memory}))
    answer = replace(answer, memory={}, again_at=min(answer.again_at, jobs.at + PAUSE_S))
    return None if _wrong(jobs, asked, answer) else _in_time(jobs, answer)


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
        check_kind(answer, jobs.scheduler.info, jobs.scheduler.asks.last_at)
        jobs.scheduler.copy().handle(Moment(jobs.at, (Answered(asked, answer),)))
    except InvalidAnswer as error:
        fix = f"; {error.fix}" if error.fix else ""
        return f"the answer of policy {jobs.scheduler.info.name!r} cannot be carried out: {error.rule}{fix}"
    return ""
