"""What users used, by hour, tenant, user and accelerator type: time on accelerators, waits, ends, failures, energy.

Time counts from the decision that gives a job its accelerators until the one that takes them back. What a gang holds is
kept in the row of its job, and added up when it ends; of gangs that run on, each hour that is over. So a turn changes
these sums in its own transaction, and the store has all of them, however it was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from eunomia.service.job_row import FIRST_S, LAST_S, SEATED, JobRow

HOUR_S = 3600
ENDS = {"succeeded": "succeeded", "failed": "failed", "cancelled": "cancelled"}  # all others: `refused`


class UsageKey(NamedTuple):
    """An hour, by the wall-clock second at which it begins, and who used what; "" for a job without accelerators."""

    hour: int
    tenant: str
    user: str
    type: str


@dataclass(slots=True)
class UsageSums:
    """What was used in some time."""

    accelerator_s: float = 0.0
    starts: int = 0  # jobs whose processes began for the first time
    wait_s: float = 0.0  # of these, since their submissions
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0  # rejected or quarantined
    failures: int = 0  # ends of gangs with an error, also of jobs that were tried again
    lost_s: float = 0.0  # accelerator-seconds whose work no checkpoint had
    energy_j: float = 0.0
    metered_s: float = 0.0  # accelerator-seconds in which `energy_j` was measured

    def add(self, other: UsageSums) -> None:
        """Add the sums of another time."""
        for name in NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


NAMES = tuple(one.name for one in fields(UsageSums))


def hour_at(wall: float, zone: tzinfo) -> int:
    """Return when the hour of a wall-clock time began, by the clocks of a zone, in wall-clock seconds."""
    offset = 0
    if zone is not UTC:
        shift = datetime.fromtimestamp(min(max(wall, FIRST_S), LAST_S), zone).utcoffset()
        offset = 0 if shift is None else int(shift.total_seconds())
    return int((wall + offset) // HOUR_S) * HOUR_S - offset


def hours_between(begin: float, end: float, zone: tzinfo) -> Iterator[tuple[int, float]]:
    """Yield the hours from one wall-clock time to another, and how many seconds of each lie between them."""
    hour = hour_at(begin, zone)
    while begin < end:
        until = min(float(hour + HOUR_S), end)
        if until > begin:
            yield hour, until - begin
        begin, hour = until, hour + HOUR_S


class UsageCounter:
    """Counts what jobs use; `take` returns what is to be stored. Times are seconds of the service's time."""

    def __init__(self, origin: float = 0.0, zone: tzinfo = UTC, counted: float = 0.0) -> None:
        self.origin, self.zone = origin, zone  # wall-clock time of second 0
        self.counted = counted  # up to here the time of gangs that run is added up
        self._sums: dict[UsageKey, UsageSums] = {}

    def _at(self, at: float, row: JobRow) -> UsageSums:
        key = UsageKey(hour_at(self.origin + at, self.zone), row.tenant, row.owner, row.held_type)
        return self._sums.setdefault(key, UsageSums())

    # ---- what jobs do ----------------------------------------------------------------------------------------

    def moves(self, row: JobRow, state: str, at: float, types: tuple[str, ...]) -> None:
        """Count the time up to now, and begin to count anew if the job holds accelerators in its next state.

        `types` are those of all seats; the row has the seats of the next state.
        """
        has_seats = state in SEATED and len(row.seats) > 0
        kind, count = (types[row.seats[0]], float(len(row.seats))) if has_seats else ("", 0.0)
        if row.held and has_seats and (row.held_type, row.held[1]) == (kind, count):
            return
        if row.held:
            self._close(row, at)
        if has_seats:
            row.held_type, row.held = kind, (at, count)

    def _close(self, row: JobRow, at: float) -> None:
        since, count = row.held
        for key, sums in held(row, since, count, max(since, self.counted), at, self.origin, self.zone):
            self._sums.setdefault(key, UsageSums()).add(sums)
        row.held = ()

    def starts(self, row: JobRow, at: float) -> None:
        """Count a job whose processes have begun for the first time."""
        sums = self._at(at, row)
        sums.starts += 1
        sums.wait_s += max(at - row.submitted, 0.0)

    def ends(self, row: JobRow, state: str, at: float) -> None:
        """Count a job that is over."""
        sums, name = self._at(at, row), ENDS.get(state, "refused")
        setattr(sums, name, getattr(sums, name) + 1)

    def fails(self, row: JobRow, at: float) -> None:
        """Count a gang that ended with an error."""
        self._at(at, row).failures += 1

    def loses(self, row: JobRow, seconds: float, at: float) -> None:
        """Count work of a gang that is lost."""
        self._at(at, row).lost_s += max(seconds, 0.0) * row.spec.get("accelerators", 1)

    def consumes(self, row: JobRow, energy_j: float, metered_s: float, at: float) -> None:
        """Count energy of a gang's accelerators, which was measured for so many accelerator-seconds."""
        sums = self._at(at, row)
        sums.energy_j += energy_j
        sums.metered_s += metered_s

    # ---- what is stored --------------------------------------------------------------------------------------

    def next_hour(self) -> float:
        """Return when the hour ends up to whose begin gangs that run are counted."""
        return hour_at(self.origin + self.counted, self.zone) + HOUR_S - self.origin

    def count_running(self, rows: Iterable[JobRow], at: float) -> None:
        """Add up the time of gangs that run on, until the last whole hour; nothing within one."""
        if at < self.next_hour():
            return
        until = hour_at(self.origin + at, self.zone) - self.origin
        together: dict[tuple[str, str, str, float], tuple[JobRow, float]] = {}
        for row in rows:
            if row.held and row.held[0] < until:
                key = (row.tenant, row.owner, row.held_type, max(row.held[0], self.counted))
                together[key] = row, together.get(key, (row, 0.0))[1] + row.held[1]
        for (*_, since), (row, count) in together.items():
            for hour, sums in held(row, since, count, since, until, self.origin, self.zone):
                self._sums.setdefault(hour, UsageSums()).add(sums)
        self.counted = until

    def take(self) -> list[tuple[UsageKey, UsageSums]]:
        """Return the sums since the last call."""
        found, self._sums = [(key, self._sums[key]) for key in sorted(self._sums)], {}
        return found


def held(
    row: JobRow, since: float, count: float, begin: float, end: float, origin: float, zone: tzinfo
) -> Iterator[tuple[UsageKey, UsageSums]]:
    """Yield by hour what a gang that began at `since` used from one time to another."""
    if math.isnan(since) or not count >= 0:
        return
    for hour, seconds in hours_between(origin + begin, origin + end, zone):
        yield UsageKey(hour, row.tenant, row.owner, row.held_type), UsageSums(seconds * count)


def running(
    rows: Iterable[JobRow], counted: float, now: float, origin: float, zone: tzinfo
) -> Iterator[tuple[UsageKey, UsageSums]]:
    """Yield what gangs that run have used since they were added up last."""
    for row in rows:
        if row.held:
            since, count = row.held
            yield from held(row, since, count, max(since, counted), now, origin, zone)


def stored(key: UsageKey, sums: UsageSums) -> tuple[object, ...]:
    """Return a row of the store."""
    return (*key, *astuple(sums))
