"""The service as a pure step: requests and reports go into the controller, replies and orders come out."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from eunomia.model.events import TimerFired
from eunomia.service import user_requests, world_reports
from eunomia.service.controller import Controller
from eunomia.service.messages import Input, PolicyAnswered, PolicyOverran, Reply, Request
from eunomia.service.solver_reports import take_solver_report
from eunomia.service.turn import Turn


def step(controller: Controller, now: float, inputs: Sequence[Input]) -> Turn:
    """Take in what has arrived by `now`, decide, and return all that changes."""
    now = float(now)
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
    controller.flush(controller.at)
    turn.orders = controller.driver.take_orders()
    turn.hours = controller.fairness.to_store(controller.scheduler, controller.at)
    if turn.moments or turn.hours:
        turn.active_time = controller.fairness.active_time
    return turn


def _take(controller: Controller, message: Input) -> Reply | None:
    if isinstance(message, Request):
        return user_requests.answer(controller, message)
    if isinstance(message, PolicyAnswered | PolicyOverran):
        take_solver_report(controller, message)
    else:
        world_reports.take_report(controller, message)
    return None
