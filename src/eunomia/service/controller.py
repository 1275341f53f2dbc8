"""The controller as a pure step: requests and reports in, replies and orders out, around the scheduling core.

It reads no clock, file or random number: the time is handed in, ids come from counters and from the incarnation, a text
that is new at every start of the service. What it returns has no effect until the store has committed it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence

from eunomia.backends.reports import BY_ENGINE
from eunomia.model.events import TimerFired
from eunomia.service import user_requests, world_reports
from eunomia.service.job_row import SEATED, WAITING, JobRow
from eunomia.service.live_jobs import LiveJobs
from eunomia.service.messages import DrainNode, Halt, Input, Order, PolicyAnswered, PolicyOverran, Reply, Request
from eunomia.service.solver_reports import take_solver_report
from eunomia.service.turn import Turn


class Controller(LiveJobs):
    """Jobs of users, the scheduler that decides for them, and what was ordered."""

    def adopt(
        self,
        rows: Iterable[JobRow],
        run_times: Iterable[tuple[str, str, float]] = (),
        memory_gib: Mapping[str, float] | None = None,
    ) -> None:
        """Take over the live jobs of the store after a restart, and what is known of earlier ones."""
        self.memory_gib.update(memory_gib or {})
        for row in rows:
            self.rows[row.id] = row
            self.waiting[row.tenant] += row.state in WAITING
            self.set_timers(row)
            if row.state == "stopping":
                self.end_soon(row, row.since)
            if "after" in row.holds:
                for earlier in row.spec.get("after", ()):
                    self.followers[earlier].append(row.id)
        for tenant, kind, run_s in run_times:
            self.run_times[tenant, kind].append(run_s)
        self.go_on_learning()

    def due(self) -> float:
        """Return when a step is due though nothing arrives."""
        return min(self.wake, self.timers[0][0] if self.timers else math.inf)

    def step(self, now: float, inputs: Sequence[Input]) -> Turn:
        """Take in what has arrived by `now`, decide, and return all that changes."""
        now = float(now)
        turn = self.turn = Turn(max(self.at, now))
        if self.wake <= now:
            at, self.wake = max(self.at, self.wake), math.inf
            self.emit("", TimerFired())
            self.flush(at)
        self.at = max(self.at, now)
        while self.timers and self.timers[0][0] <= now:
            world_reports.expire(self, *heapq.heappop(self.timers)[1:])
        for message in inputs:
            turn.replies.append(self._take(message))
        self.flush(self.at)
        turn.hours = self.fairness.to_store(self.scheduler, self.at)
        if turn.moments or turn.hours:
            turn.active_time = self.fairness.active_time
        return turn

    def resend(self, rows: Iterable[JobRow]) -> list[Order]:
        """Return the orders that a world which knows nothing needs for the processes of these jobs."""
        orders: list[Order] = []
        for row in rows:
            if row.ended_epoch < row.epoch:
                orders.append(self.launch_order(row, adopt_only=row.launched_epoch == row.epoch))
                if row.state not in SEATED:
                    self.next_order += 1
                    orders.append(Halt(self.next_order - 1, row.id, row.epoch))
        if self.site.setup.scenario.world.backend != "local":
            for node, reason in self.drained.items():
                if not reason.startswith(BY_ENGINE):  # else the engine itself reports it again
                    orders.append(DrainNode(self.next_order, node, reason))
                    self.next_order += 1
        return orders

    def _take(self, message: Input) -> Reply | None:
        if isinstance(message, Request):
            return user_requests.answer(self, message)
        if isinstance(message, PolicyAnswered | PolicyOverran):
            take_solver_report(self, message)
        else:
            world_reports.take_report(self, message)
        return None
