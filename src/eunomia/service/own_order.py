"""The order that users give their own waiting jobs by `priority`: a lower one waits until the higher ones have started.

A job that another one of its user with a higher priority precedes is held (cause `priority`), so it is no job for the
policy, whatever that is: before other users nothing is gained. Only jobs that ask for accelerators precede, and not one
that its user holds, that follows others, or that a limit holds. Of users that give no priority nothing is kept.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eunomia.model.events import JobPaused
from eunomia.service.job_row import WAITING, JobRow

if TYPE_CHECKING:
    from eunomia.service.controller import Controller

PRIORITY = "priority"  # the cause among the holds of a row


@dataclass(slots=True)
class _Line:
    """Waiting jobs of one user."""

    asking: dict[int, dict[str, None]] = field(default_factory=dict)  # ids by priority, in the order of coming
    level: dict[str, int] = field(default_factory=dict)  # of each of these
    held: list[tuple[int, int, str]] = field(default_factory=list)  # heap of −priority, number, id


class OwnOrder:
    """Who precedes whom among the jobs of one user. What changes is looked at, and no other user's jobs."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._lines: dict[tuple[str, str], _Line] = {}
        self._changed: dict[tuple[str, str], None] = {}
        for row in controller.rows.values():
            if PRIORITY in row.holds:
                self.queue(row)
            self.note(row)

    def note(self, row: JobRow) -> None:
        """Take in what has become of a job."""
        key = row.tenant, row.owner
        line = self._lines.get(key)
        if line is None:
            if priority_of(row):
                self._begin(key)
            return
        asks = not row.holds and row.state in WAITING
        now, known = priority_of(row) if asks else None, line.level.get(row.id)
        if now == known:
            return
        if known is not None:
            del line.level[row.id], line.asking[known][row.id]
            if not line.asking[known]:
                del line.asking[known]
        if now is not None:
            line.level[row.id] = now
            line.asking.setdefault(now, {})[row.id] = None
        self._changed[key] = None

    def _begin(self, key: tuple[str, str]) -> None:
        """Keep the order of one user more, from the first priority that it gives."""
        self._lines[key] = _Line()
        for row in list(self._controller.rows.values()):
            if (row.tenant, row.owner) == key:
                self.note(row)

    def before(self, row: JobRow) -> str:
        """Return a job of the same user that precedes a job now; "" for none."""
        line = self._lines.get((row.tenant, row.owner))
        if line is None or not line.asking or (top := max(line.asking)) <= priority_of(row):
            return ""
        return next(iter(line.asking[top]))

    def queue(self, row: JobRow) -> None:
        """Let a held job wait for those that precede it."""
        key = row.tenant, row.owner
        if key not in self._lines:
            self._begin(key)
        heapq.heappush(self._lines[key].held, (-priority_of(row), row.number, row.id))
        self._changed[key] = None

    def reason(self, row: JobRow) -> str:
        """Return what a job is held for."""
        earlier = self.before(row)
        return f"its user gave job {earlier} a higher priority" if earlier else "it is about to be let in"

    def settle(self) -> bool:
        """Hold what is preceded by now, let in what is not any more; return whether anything was."""
        acted = False
        changed, self._changed = list(self._changed), {}
        for key in changed:
            line = self._lines[key]
            if len(line.asking) > 1:
                top = max(line.asking)
                for job_id in [one for one, level in line.level.items() if level < top]:
                    self._hold(self._controller.rows[job_id])
                    acted = True
            acted |= self._let_in(line)
        return acted

    def _hold(self, row: JobRow) -> None:
        controller = self._controller
        controller.emit(row.id, JobPaused(row.id))
        controller.hold(row, PRIORITY)
        row.reason = self.reason(row)
        controller.changed(row, "")
        self.queue(row)

    def _let_in(self, line: _Line) -> bool:
        acted = False
        while line.held:
            priority, _, job_id = line.held[0]
            row = self._controller.rows.get(job_id)
            if row is not None and PRIORITY in row.holds and -priority == priority_of(row):
                if row.holds == [PRIORITY] and self.before(row):
                    break
                self._controller.unhold(row, PRIORITY)
                acted = True
            heapq.heappop(line.held)
        return acted


def priority_of(row: JobRow) -> int:
    """Return the priority of a job among those of its user."""
    return int(row.spec.get("priority", 0))
