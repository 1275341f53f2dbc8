"""Gavel's rounds the obvious way: dictionaries, lists and loops over jobs. Slow, and easy to hold against its page.

Written from the description of the published simulator alone (docs/gavel-mechanism.md); shares no code with the clock.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from eunomia.mechanisms.gavel_rounds import GavelRounds
from eunomia.model.job import Job

Members = tuple[int, ...]  # rows of a job, or of two that share
Allocation = Mapping[Members, Mapping[str, float]]
MOST_ROUNDS = 3000


@dataclass
class Reported:
    """What happened: each round's time and who sat where, and when each job ended; None = dropped."""

    rounds: list[tuple[float, dict[Members, tuple[int, ...]]]] = field(default_factory=list)
    ended: dict[int, float | None] = field(default_factory=dict)
    busy: float = 0.0


class Obvious:
    """The simulation itself. `rate(members, type)` gives steps/s of each member there, 0 = cannot run."""

    def __init__(
        self,
        jobs: Sequence[Job],
        devices: Sequence[str],
        rate: Callable[[Members, str], tuple[float, ...]],
        allocate: Callable[[float, list[int]], Allocation],
        rounds: GavelRounds,
        seed: int = 0,
    ):
        self.jobs, self.devices, self.rate, self.allocate, self.rules = jobs, devices, rate, allocate, rounds
        self.types = sorted(set(devices), key=devices.index)
        self.shuffler = random.Random(seed + 5)
        self.left = {row: job.total_steps for row, job in enumerate(jobs)}
        self.entries: list[Members] = []
        self.received: dict[Members, dict[str, float]] = {}
        self.deficit: dict[Members, dict[str, float]] = {}
        self.received_by_all = dict.fromkeys(self.types, 0.0)
        self.allocation: dict[Members, Mapping[str, float]] = {}
        self.failures = dict.fromkeys(range(len(jobs)), 0)
        self.sat: dict[Members, tuple[int, ...]] = {}
        self.stale, self.last_reset = True, 0.0
        self.reported = Reported()

    def play(self) -> Reported:
        """Run until every job has ended, or nothing can happen any more."""
        running: list[tuple[Members, tuple[float, ...], float]] = []
        now, ended, came = 0.0, 0.0, 0
        while len(self.reported.ended) < len(self.jobs) and len(self.reported.rounds) < MOST_ROUNDS:
            if running:
                now = max(finish for _, _, finish in running)
                began = ended if self.rules.charge_gaps else self.reported.rounds[-1][0]
                ended = now
                for members, steps, finish in sorted(running, key=lambda one: -one[2]):
                    self._book(members, steps, finish, began)
            elif came < len(self.jobs):
                now = self.jobs[came].submitted
            elif self.last_reset == 0.0 and not self.stale:
                break  # the published program goes round for ever
            else:
                self.last_reset = 0.0
            while came < len(self.jobs) and self.jobs[came].submitted <= now:
                self._admit(came)
                came += 1
            if len(self.reported.ended) == len(self.jobs):
                break
            running = self._round(now)
        return self.reported

    def _admit(self, row: int) -> None:
        mates = [entry[0] for entry in self.entries if len(entry) == 1] if self.rules.pairs else []
        alike = [mate for mate in mates if self.jobs[mate].scale_factor == self.jobs[row].scale_factor]
        for members in [(row,), *((mate, row) for mate in alike)]:
            self.entries.append(members)
            first = self.rules.credit if len(members) == 1 else 0.0
            self.received[members] = dict.fromkeys(self.types, first)
            self.deficit[members] = dict.fromkeys(self.types, 0.0)
        self.stale = True

    def _leave(self, row: int) -> None:
        self.entries = [members for members in self.entries if row not in members]
        self.stale = True

    def _book(self, members: Members, steps: tuple[float, ...], finish: float, began: float) -> None:
        seats = self.sat[members]
        kind, size, time = self.devices[seats[0]], len(seats), finish - began
        workers = size if self.rules.split_steps else 1
        parts = [[n // workers] * (workers - 1) + [n - n // workers * (workers - 1)] for n in steps]
        if self.rules.most_failures and (time <= 0 or any(part <= 0 for each in parts for part in each)):
            self.stale = True
            if len(members) == 1:
                self.failures[members[0]] += 1
                if self.failures[members[0]] == self.rules.most_failures:
                    self.reported.ended[members[0]] = None
                    self._leave(members[0])
            return
        if len(members) == 1:
            self.failures[members[0]] = 0
        self.received[members][kind] += time
        self.received_by_all[kind] += time
        self.reported.busy += time * size
        for row, n in zip(members, steps, strict=True):
            self.left[row] -= n
            if self.left[row] <= 0:
                self.reported.ended[row] = finish
                self._leave(row)

    def _round(self, now: float) -> list[tuple[Members, tuple[float, ...], float]]:
        if self.stale and (now - self.last_reset >= self.rules.solve_gap_s or self.last_reset == 0):
            self._ask(now)
        visit = [kind for kind in (self.rules.visit or self.types) if kind in self.types]
        if self.rules.shuffled:
            self.shuffler.shuffle(visit)
        self.sat = self._seats(self._chosen(visit))
        self.reported.rounds.append((now, self.sat))
        running = []
        for members, seats in self.sat.items():
            rates = self.rate(members, self.devices[seats[0]])
            steps = tuple(
                min(float(int(rate * self.rules.round_s)), self.left[row])
                for row, rate in zip(members, rates, strict=True)
            )
            running.append((members, steps, now + max(n / rate for n, rate in zip(steps, rates, strict=True))))
        return running

    def _ask(self, now: float) -> None:
        elapsed = now - self.last_reset
        for kind in self.types:
            self.received_by_all[kind] = 0.0
            for members in self.entries:
                owed = self.allocation.get(members, {}).get(kind, 0.0) * elapsed
                self.deficit[members][kind] += owed - (self.received[members][kind] - self.rules.credit)
                self.received[members][kind] = self.rules.credit
                self.received_by_all[kind] += self.rules.credit
        self.last_reset, self.stale = now, False
        rows = [members[0] for members in self.entries if len(members) == 1]
        given = self.allocate(now, rows)
        self.allocation = {members: given.get(members, {}) for members in self.entries}

    def _priority(self, members: Members, kind: str) -> float:
        x = self.allocation.get(members, {}).get(kind, 0.0)
        if x == 0 or min(self.rate(members, kind)) <= 0:
            return 0.0
        fraction = self.received[members][kind] / self.received_by_all[kind] if self.received_by_all[kind] else 0.0
        return x / fraction if fraction > 0 else x * 1e9

    def _chosen(self, visit: list[str]) -> dict[str, list[Members]]:
        lists = [[(members, kind) for members in self.entries] for kind in visit]
        if self.rules.global_queue:
            lists = [[one for each in lists for one in each]]
        free = {kind: self.devices.count(kind) for kind in self.types}
        taken: set[int] = set()
        chosen: dict[str, list[Members]] = {kind: [] for kind in self.types}
        for each in lists:
            blocked: set[str] = set()
            for members, kind in sorted(each, key=lambda one: self._rank(*one), reverse=True):
                size = self.jobs[members[0]].scale_factor
                if taken & set(members) or min(self.rate(members, kind)) <= 0 or kind in blocked or free[kind] == 0:
                    continue
                if not self.rules.fill and self._priority(members, kind) <= 0:
                    continue
                if size > free[kind]:
                    if not self.rules.overtake:
                        blocked.add(kind)
                    continue
                free[kind] -= size
                taken |= set(members)
                chosen[kind].append(members)
        return chosen

    def _rank(self, members: Members, kind: str) -> tuple[float, float, float]:
        x = self.allocation.get(members, {}).get(kind, 0.0)
        return self._priority(members, kind), self.deficit[members][kind], x

    def _seats(self, chosen: Mapping[str, list[Members]]) -> dict[Members, tuple[int, ...]]:
        seats: dict[Members, tuple[int, ...]] = {}
        for kind, entries in chosen.items():
            free = [device for device, name in enumerate(self.devices) if name == kind]
            for size in sorted({self.jobs[members[0]].scale_factor for members in entries}, reverse=True):
                alike = [members for members in entries if self.jobs[members[0]].scale_factor == size]
                for members in alike:
                    if self.rules.sticky and set(self.sat.get(members, (-1,))) <= set(free):
                        seats[members] = self.sat[members]
                        free = [device for device in free if device not in seats[members]]
                for members in alike:
                    known = members in self.allocation or not self.rules.idle_arrivals
                    if members not in seats and known:
                        seats[members] = tuple(free[:size])
                        free = free[size:]
        return seats
