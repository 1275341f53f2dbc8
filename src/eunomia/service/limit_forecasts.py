"""What a forecast assumes of jobs that a limit or their user's priorities hold: which jobs have to end before each.

A limit of n accelerators is n places. Held jobs take them in the order in which they are let in, each after those that
came to its places before it. So at no time of a future more is at work than the limit allows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import pairwise

from eunomia.service.job_row import WAITING, JobRow
from eunomia.service.limits import LIMIT, Holder, LimitBook, LimitsSection, size_of
from eunomia.service.own_order import PRIORITY, priority_of


class _Places:
    """The places of one limit, and who came to them last."""

    def __init__(self, most: int) -> None:
        self._free, self._taken = most, deque[tuple[str, int]]()  # id and places of each, the first to leave first

    def take(self, job_id: str, size: int) -> set[str]:
        """Give a job its places; return which jobs have to end before."""
        self._free -= size
        waits_for = set[str]()
        while self._free < 0 and self._taken:
            earlier, kept = self._taken.popleft()
            given = min(kept, -self._free)
            waits_for.add(earlier)
            self._free += given
            if kept > given:
                self._taken.appendleft((earlier, kept - given))
        self._taken.append((job_id, size))
        return waits_for

    def keep(self, job_id: str, size: int) -> None:
        """Note a job that has its places, though it may be above the limit."""
        self._free -= size
        self._taken.append((job_id, size))


def jobs_to_end_first(section: LimitsSection, rows: Sequence[JobRow]) -> dict[str, frozenset[str]]:
    """Return for each live job that only a limit or a priority holds the jobs that have to end before it starts."""
    book, places = LimitBook(section), dict[Holder, list[tuple[bool, _Places]]]()

    def places_of(row: JobRow) -> list[tuple[bool, _Places]]:
        found = []
        for holder in book.holders(row):
            if holder not in places:
                bounds = ((False, holder.most_jobs), (True, holder.most_accelerators))
                places[holder] = [(by_size, _Places(most)) for by_size, most in bounds if most is not None]
            found += places[holder]
        return found

    for row in sorted((row for row in rows if not row.holds), key=lambda row: (row.started, row.number)):
        for by_size, taken in places_of(row):
            taken.keep(row.id, (len(row.seats) or size_of(row)) if by_size else 1)
    found, above = dict[str, frozenset[str]](), _next_higher(rows)
    for row in sorted(rows, key=lambda row: (-priority_of(row), row.number)):
        if row.holds in ([LIMIT], [PRIORITY]):
            waits_for = frozenset[str]()
            if row.holds == [PRIORITY]:
                waits_for = above.get((row.tenant, row.owner, priority_of(row)), waits_for)
            for by_size, taken in places_of(row):
                waits_for |= taken.take(row.id, size_of(row) if by_size else 1)
            found[row.id] = waits_for
    return found


def _next_higher(rows: Sequence[JobRow]) -> dict[tuple[str, str, int], frozenset[str]]:
    """Return by tenant, user and priority the jobs of the next higher one that wait: what starts after they ended."""
    levels: defaultdict[tuple[str, str], defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        if row.state in WAITING and row.holds in ([], [LIMIT], [PRIORITY]):
            levels[row.tenant, row.owner][priority_of(row)].add(row.id)
    found = dict[tuple[str, str, int], frozenset[str]]()
    for owner, by_priority in levels.items():
        ordered = sorted(by_priority, reverse=True)
        for high, low in pairwise(ordered):
            found[(*owner, low)] = frozenset(by_priority[high])
    return found
