"""What comes of an ask that a solver answers later: its answer, that of its fallback, or that there will be none."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import numpy as np

from eunomia.model.answers import Answer, InvalidAnswer
from eunomia.model.events import Answered, AskAbandoned
from eunomia.policies import build
from eunomia.service.controller import Controller
from eunomia.service.messages import PolicyAnswered, PolicyOverran

PAUSE_S = 1.0  # after an ask without an answer, before the policy is asked again
SOON_S = 0.01
_log = logging.getLogger(__name__)
OURS = "eunomia.policies."


def take_solver_report(controller: Controller, message: PolicyAnswered | PolicyOverran) -> None:
    """Take in an answer, or go on with the last one; what is about an earlier ask changes nothing."""
    controller.flush(controller.at)
    pending = controller.scheduler.asks.pending
    is_ours = message.runner is None or message.runner is controller.runner
    if pending is None or pending.asked != message.asked or not is_ours:
        return
    is_new = True
    if isinstance(message, PolicyAnswered):
        reason = _wrong(controller, message.answer)
        if reason:
            controller.refused_answers += 1
            is_new = reason != controller.policy_problem  # such a mistake comes again with each answer
            if is_new:
                _log.warning("the last answer goes on: %s", reason)
        else:
            controller.emit("", Answered(message.asked, _in_time(controller, message.answer)))
    else:
        reason = message.reason
    controller.policy_problem = reason
    if reason:
        instead = _fallback_answer(controller, message.asked)
        kind = "solver_overrun" if instead is None else "policy_fallback"
        if is_new:
            controller.turn.news.append(("", "", kind, json.dumps({"reason": reason, "epoch": 0})))
        if instead is None:
            controller.emit("", AskAbandoned(message.asked, controller.at + PAUSE_S))
        else:
            controller.fallbacks += 1
            controller.emit("", Answered(message.asked, instead))
    controller.flush(controller.at)


def _fallback_answer(controller: Controller, asked: int) -> Answer | None:
    """Return what the policy's fallback answers to the same view; None without one, or where it cannot be used.

    The policy is asked again after a pause, and finds the memory of its last answer.
    """
    policy, ask = controller.site.setup.policy, controller.asked
    if not policy.info.fallback or ask is None or ask.asked != asked:
        return None
    heuristic, view = build(policy.info.fallback), ask.view
    fresh = {name: np.full(view.jobs, value) for name, value in heuristic.info.memory_columns.items()}
    answer = heuristic.decide(replace(view, memory={**fresh, **view.memory}))
    answer = replace(answer, memory={}, again_at=min(answer.again_at, controller.at + PAUSE_S))
    return None if _wrong(controller, answer) else _in_time(controller, answer)


def _in_time(controller: Controller, answer: Answer) -> Answer:
    """Return an answer whose policy wants to be asked again; a time that has passed since the ask is now."""
    if controller.scheduler.asks.last_at < answer.again_at <= controller.at:
        return replace(answer, again_at=controller.at + SOON_S)
    return answer


def _wrong(controller: Controller, answer: Answer) -> str:
    """Return what is wrong with an answer: the rows that it names are checked, and nothing is changed.

    The package's own policies are tested to give none for the state that they were asked about.
    """
    asks = controller.scheduler.asks
    is_known = type(controller.site.setup.policy).__module__.startswith(OURS)
    if is_known and not asks.is_stale:
        return ""
    try:
        asks.check_pending(answer, controller.at)
    except InvalidAnswer as error:
        fix = f"; {error.fix}" if error.fix else ""
        return f"the answer of policy {controller.scheduler.info.name!r} cannot be carried out: {error.rule}{fix}"
    return ""
