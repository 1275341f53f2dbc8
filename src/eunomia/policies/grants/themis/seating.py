"""Devices as they are given away, gang by gang: to winners, then in line what is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Ints
from eunomia.policies.grants.themis.auctioning import Won
from eunomia.policies.grants.themis.book import Book
from eunomia.policies.grants.themis.ground import Gangs, Ground, nearest
from eunomia.policies.grants.themis.seen import Seen


class Given(NamedTuple):
    """A gang and the devices that it is given, for a part of the lease."""

    job: int
    type: int
    devices: Ints
    part: float = 1.0


@dataclass(slots=True)
class Seats:
    """What is still free, and what was given."""

    seen: Seen
    free: Bools  # (device,)
    given: list[Given] = field(default_factory=list)

    def by_unit(self) -> Ints:
        """Return how many devices are free in each unit, (unit,)."""
        return self.seen.by_unit(self.free)

    def give(self, job: int, type: int, unit: Ints, count: Ints, *, own: bool, part: float = 1.0) -> None:
        """Give a gang its seats: those that it has, or others on these units. It wants no more."""
        sits = self.seen.view.holder >= 0
        devices = chosen(self.seen.ground, self.seen.gangs, job, self.free, sits, own, unit, count)
        self.free[devices] = False
        self.seen.wants[job] = False
        self.given.append(Given(job, type, devices, part))

    def give_won(self, book: Book, won: Won) -> None:
        """Give winners their gangs, those first that keep the seats that they have."""
        first = book.first
        for k in np.argsort(~book.own[won.gang], kind="stable").tolist():
            g = int(won.gang[k])
            part = slice(int(first[g]), int(first[g + 1]))
            job, type, own = int(book.job[g]), int(book.type[g]), bool(book.own[g])
            self.give(job, type, book.unit[part], book.amount[part], own=own, part=float(won.part[k]))

    def give_nearest(self, job: int) -> bool:
        """Give a gang the seats where it is done soonest, and count them as held; say whether there were any."""
        free = self.by_unit()
        unit, count = np.empty((2, len(free)), dtype=np.int64)
        n, type, time, own = nearest(self.seen.ground, self.seen.gangs, job, free, True, unit, count)
        if n > 0:
            self.give(job, type, unit[:n], count[:n], own=own)
            self.seen.held[job], self.seen.here[job] = True, time
        return n > 0

    def serve_overdue(self, patience_s: float) -> Bools:
        """Seat gangs that are overdue; keep what is offered of its type for who finds too little. Say for whom, (job,).

        What is kept is never enough for it, so that more than it needs is never kept.
        """
        view = self.seen.view
        kept_for = np.zeros(view.jobs, dtype=bool)
        for job in self.seen.overdue(patience_s).tolist():
            if not self.free.any():
                break
            if not self.give_nearest(job):
                mine = self.free & (view.topology.type == np.argmin(self.seen.gangs.time[job]))
                kept_for[job] = mine.any()
                self.free &= ~mine
        return kept_for

    def serve(self, line: Ints) -> None:
        """Give what is left to jobs in line, each where it is done soonest, first where nobody behind it sits."""
        if len(line) == 0 or not self.free.any():
            return
        holder, gangs = self.seen.view.holder, self.seen.gangs
        behind = np.zeros(self.seen.view.jobs, dtype=bool)  # sits on seats whose lease has ended, and stands behind
        behind[line] = self.seen.ended[line]
        job, type, first, devices = _served(self.seen.ground, gangs, line, self.free, holder, behind)
        self.free[devices] = False
        self.seen.wants[job] = False
        parts = np.split(devices, first[1:-1])
        self.given += [Given(m, j, part) for m, j, part in zip(job.tolist(), type.tolist(), parts, strict=False)]


@kernel()
def chosen(
    ground: Ground, gangs: Gangs, job: int, free: Bools, sits: Bools, own: bool, unit: Ints, count: Ints
) -> Ints:
    """Return the devices of a gang: its own if they are free, else in each unit those first on which nobody `sits`."""
    mine = gangs.device[gangs.own[job] : gangs.own[job + 1]]
    if own and free[mine].all():
        return mine.copy()
    devices, n = np.empty(count.sum(), dtype=np.int64), 0
    for e in range(len(unit)):
        left = count[e]
        for others in (False, True):
            for device in range(ground.seat[unit[e]], ground.seat[unit[e] + 1]):
                if left > 0 and free[device] and sits[device] == others:
                    devices[n] = device
                    n, left = n + 1, left - 1
    return devices


@kernel()
def _served(
    ground: Ground, gangs: Gangs, line: Ints, free: Bools, holder: Ints, behind: Bools
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return who is given something, its type, where its devices begin, (gang + 1,), and the devices."""
    free, sits = free.copy(), np.zeros(len(holder), dtype=np.bool_)
    for device in range(len(holder)):
        sits[device] = holder[device] >= 0 and behind[holder[device]]
    left = free.sum()
    job, type, first = np.empty(left, np.int64), np.empty(left, np.int64), np.zeros(left + 1, np.int64)
    devices, stuck = np.empty(left, np.int64), np.zeros((len(line), 2), np.int64)  # kinds that found no place
    unit, count = np.empty(len(ground.node), np.int64), np.empty(len(ground.node), np.int64)
    n, kinds, least = 0, 0, gangs.size[line].min()
    for m in line:
        if left < least:
            break
        mine = gangs.device[gangs.own[m] : gangs.own[m + 1]]
        sits[mine] = False
        own = bool(len(mine) > 0 and free[mine].all())
        kind = _kind(gangs, m)
        if gangs.size[m] > left or (not own and _among(stuck, kinds, gangs.size[m], kind)):
            continue
        for tried in (0, 1):
            room = np.zeros(len(ground.node), np.int64)
            for device in range(len(holder)):
                room[ground.unit[device]] += free[device] and (tried == 1 or not sits[device])
            entries, j, _, at_home = nearest(ground, gangs, m, room, own, unit, count)
            if entries > 0:
                break
        if entries == 0:
            stuck[kinds] = gangs.size[m], kind
            kinds += 1
            continue
        seats = chosen(ground, gangs, m, free, sits, at_home, unit[:entries], count[:entries])
        free[seats] = False
        devices[first[n] : first[n] + len(seats)] = seats
        job[n], type[n], first[n + 1] = m, j, first[n] + len(seats)
        left, n = left - len(seats), n + 1
    return job[:n], type[:n], first[: n + 1], devices[: first[n]]


@kernel()
def _kind(gangs: Gangs, job: int) -> int:
    """Return a number that tells on which types a gang can run."""
    kind = 0
    for j in range(gangs.time.shape[1]):
        kind = (2 * kind + (gangs.time[job, j] < np.inf)) % 2147483647
    return kind


@kernel()
def _among(stuck: Ints, kinds: int, size: int, kind: int) -> bool:
    found = False
    for k in range(kinds):
        found |= stuck[k, 0] == size and stuck[k, 1] == kind
    return found
