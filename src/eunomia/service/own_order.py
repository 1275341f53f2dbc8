"""The order that users give their own waiting jobs by `priority`: a lower one waits until the higher ones have started.

A job that another one of its user with a higher priority precedes is held (cause `priority`), so it is no job for the
policy, whatever that is: before other users nothing is gained. Only jobs that ask for accelerators precede, and not one
that its user holds, that follows others, or that a limit holds. Of users that give no priority nothing is kept.

A change costs little however many jobs wait: of one user and priority at most `WINDOW` ask at once, and a turn holds at
most `PART` jobs; where more asked before the user's first priority, the next turns go on.
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
WINDOW = 250  # jobs of one user and priority that ask at once, of users that give priorities
PART = 50  # jobs that a turn holds: each costs up to 10 ms where much waits and kernels are not compiled yet


@dataclass(slots=True)
class _Line:
    """Waiting jobs of one user."""

    asking: dict[int, dict[str, None]] = field(default_factory=dict)  # ids by priority, in the order of coming
    level: dict[str, int] = field(default_factory=dict)  # of each of these
    held: list[tuple[int, int, str]] = field(default_factory=list)  # heap of −priority, number, id


class OwnOrder:
    """The order among the jobs of each user that gives priorities. Those of other users are not looked at."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._lines: dict[tuple[str, str], _Line] = {}
        self._changed: dict[tuple[str, str], None] = {}
        self._left = PART  # jobs that this turn may still hold
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

    def is_closed(self, row: JobRow) -> bool:
        """Say whether a job that does not ask yet has to wait for others of its user."""
        line = self._lines.get((row.tenant, row.owner))
        if line is None or not line.asking:
            return False
        return max(line.asking) > priority_of(row) or len(line.asking.get(priority_of(row), ())) >= WINDOW

    @property
    def goes_on(self) -> bool:
        """Whether a further turn has to hold jobs, without a reason of its own."""
        return self._left <= 0 and bool(self._changed)

    def begin_turn(self) -> None:
        """Let a turn hold as many jobs as one may, and do what is due before it decides."""
        self._left = PART
        self.settle()

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
        if earlier:
            return f"its user gave job {earlier} a higher priority"
        return f"{WINDOW} jobs of its user with the same priority ask for accelerators already"

    def settle(self) -> bool:
        """Hold what is preceded by now, let in what is not any more; return whether anything was."""
        acted = False
        changed, self._changed = list(self._changed), {}
        for key in changed:
            line = self._lines[key]
            if len(line.asking) > 1:
                top = max(line.asking)
                lower = [self._controller.rows[one] for one, level in line.level.items() if level < top]
                for row in heapq.nsmallest(self._left, lower, key=lambda one: one.number):
                    self._hold(row)
                    acted = True
                self._left -= len(lower)
                if self._left < 0:
                    self._left = 0
                    self._changed[key] = None
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
                if row.holds == [PRIORITY] and self.is_closed(row):
                    break
                self._controller.unhold(row, PRIORITY)
                acted = True
            heapq.heappop(line.held)
        return acted


def priority_of(row: JobRow) -> int:
    """Return the priority of a job among those of its user."""
    return int(row.spec.get("priority", 0))
