"""One decision while it is made: who sits where, who holds which seats, and who has to go."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Rows
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.grants.philly.clusters import Clusters
from eunomia.policies.grants.philly.room import SMALL, TOGETHER, Room

NOBODY = -1.0  # has marked this seat


class Deciding:
    """Scratch paper on which gangs are seated one after the other."""

    def __init__(self, view: View, clusters: Clusters, room: Room, marks: Floats, moves: int):
        self.view, self.clusters, self.room = view, clusters, room
        self.marks = marks  # (device,) ticket of the job that holds this free seat
        self.seated: dict[int, tuple[int, Ints]] = {}  # job -> type, devices
        self.stopped: list[int] = []
        self._moves = moves  # gangs that may still be moved
        self._gone: set[int] = set()  # running gangs that left their seats
        self._hopeless: set[tuple[int, int, int]] = set()  # (type, size, level) that have no place
        self._kept: set[tuple[int, int, int]] = set()  # (type, size, level) for which stopping borrowers is not enough
        self._able = (view.throughput > 0) & (view.capacity >= clusters.size[:, None])  # (job, type)
        self._up = int((view.holder != -2).sum())
        self._busy = int((view.holder >= 0).sum())

    def place(self, job: int, level: int, ticket: float) -> bool:
        """Seat a waiting gang on the type that it is fastest on among those that have a place for it."""
        held = np.flatnonzero(self.marks == ticket) if ticket >= 0 else NO_INTS
        if len(held):
            self._free(held)
            self.marks[held] = NOBODY
        size = int(self.clusters.size[job])
        for type in self.wishes(job):
            if (type, size, level) in self._hopeless:
                continue
            found = self.room.find(type, size, level)
            if found is not None:
                self._seat(job, type, found)
                return True
            self._hopeless.add((type, size, level))
        return False

    def place_all(self, jobs: Ints, levels: Ints, tickets: Floats) -> None:
        """Seat those of the waiting gangs, (job,) each, that have a place; who is like one that has none is passed by.

        Alike are gangs of one size and level that can run on the same types and hold nothing.
        """
        kinds = self._able[jobs, 0]
        if self._able.shape[1] > 1:
            kinds = np.unique(self._able[jobs], axis=0, return_inverse=True)[1].reshape(-1)
        alike = (kinds * (int(self.clusters.size.max(initial=0)) + 1) + self.clusters.size[jobs]) * 3 + levels
        open_ = np.ones(len(jobs), dtype=bool)
        place = 0
        while place < len(jobs):
            ahead = int(np.argmax(open_[place:]))
            place += ahead
            if not open_[place]:
                return
            if tickets[place] >= 0:
                open_[place:] = True  # what it holds comes free
            if not self.place(int(jobs[place]), int(levels[place]), float(tickets[place])):
                open_ &= (alike != alike[place]) | (tickets >= 0)
            place += 1

    def hold(self, job: int, level: int, ticket: float) -> None:
        """Mark the free seats of a gang's best place, so that nobody else takes them."""
        for type in self.wishes(job)[:1]:
            seats = self.room.gather(type, int(self.clusters.size[job]), level)
            if len(seats):
                self.room.take(seats)
                self.marks[seats] = ticket

    def preempt(self, job: int, level: int, above: float) -> bool:
        """Seat a gang by stopping who has borrowed, the youngest first, if so much of the cluster is in use."""
        if self._busy < above * self._up:
            return False
        size = int(self.clusters.size[job])
        for type in self.wishes(job):
            if (type, size, level) in self._kept:
                continue
            scratch, left, used = self.room.copy(), [], self.clusters.used.copy()
            for other in self._borrowers(type):
                mine = self.clusters.of[other]
                if used[mine] <= self.clusters.quota[mine]:
                    continue
                used[mine] -= self.clusters.size[other]
                scratch.give_back(self.seats_of(other))
                left.append(other)
                found = scratch.find(type, size, level)
                if found is not None:
                    self._stop([other for other in left if np.isin(self.seats_of(other), found).any()])
                    self._seat(job, type, found)
                    return True
            self._kept.add((type, size, level))
        return False

    def defragment(self, job: int) -> bool:
        """Seat a gang on one machine by moving a few small gangs off it, if they have places elsewhere."""
        size = int(self.clusters.size[job])
        for type in self.wishes(job) if self._moves else []:
            topology = self.view.topology
            nodes = np.flatnonzero((topology.node_type == type) & (self.room.size >= size))
            for node in nodes[np.argsort(-self.room.free[nodes], kind="stable")].tolist():
                moves = self._moved_off(node, type, size - int(self.room.free[node]))
                if moves:
                    for other, seats in moves:
                        self._free(self.seats_of(other))
                        self._gone.add(other)
                        self.room.take(seats)
                        self.seated[other] = (type, seats)
                    self._moves -= len(moves)
                    free = topology.first[node] + np.arange(topology.size[node])
                    self._seat(job, type, self.room.free_of(free)[:size])
                    return True
        return False

    def wishes(self, job: int) -> list[int]:
        """Return the types that could hold a gang, the fastest first."""
        able = self._able[job]
        if len(able) == 1:
            return [0] if able[0] else []
        return [type for type in np.argsort(-self.view.throughput[job], kind="stable").tolist() if able[type]]

    def seats_of(self, job: int) -> Ints:
        """Return the devices that a gang held when the question was asked."""
        return np.flatnonzero(self.view.holder == job)

    def renew(self, jobs: Ints) -> None:
        """Let gangs whose leases have ended go on where they are, unless they have left."""
        for job in jobs.tolist():
            if job not in self._gone:
                self.seated[job] = (int(self.view.on_type[job]), self.seats_of(job))

    def grants(self) -> tuple[Rows, Ints, Ints]:
        """Return the rows of the answer, and for each seat its row and its device."""
        jobs = sorted(self.seated)
        types, seats = [self.seated[m][0] for m in jobs], [self.seated[m][1] for m in jobs]
        row = np.repeat(np.arange(len(jobs)), [len(mine) for mine in seats]).astype(np.int64)
        device = np.concatenate(seats).astype(np.int64) if seats else NO_INTS
        return Rows(np.array(jobs, dtype=np.int64), np.array(types, dtype=np.int64)), row, device

    def _seat(self, job: int, type: int, devices: Ints) -> None:
        self.room.take(devices)
        self.seated[job] = (type, devices)
        self.clusters.add(job)
        self._busy += len(devices)

    def _stop(self, jobs: list[int]) -> None:
        for job in jobs:
            self._free(self.seats_of(job))
            self.clusters.add(job, -1)
            self._busy -= int(self.clusters.size[job])
        self.stopped += jobs
        self._gone.update(jobs)

    def _free(self, devices: Ints) -> None:
        self.room.give_back(devices)
        self._hopeless.clear()
        self._kept.clear()

    def _borrowers(self, type: int) -> list[int]:
        """Return the running gangs of virtual clusters over their quotas, the youngest first."""
        running = np.flatnonzero(self.view.on_type == type)
        young = running[np.lexsort((-running, -self.view.started[running]))]
        return [m for m in young.tolist() if self.clusters.over(m) and m not in self._gone]

    def _moved_off(self, node: int, type: int, missing: int) -> list[tuple[int, Ints]]:
        """Return which gangs leave a machine for which seats, to free `missing` more; nobody if they are too many."""
        topology, scratch = self.view.topology, self.room.copy()
        found: list[tuple[int, Ints]] = []
        devices = topology.first[node] + np.arange(topology.size[node])
        scratch.take(scratch.free_of(devices))
        here = np.unique(self.view.holder[devices])
        sizes = {m: int(self.clusters.size[m]) for m in here[here >= 0].tolist() if m not in self._gone}
        for other in sorted(sizes, key=lambda m: (-sizes[m], m)):
            if missing <= 0 or len(found) == self._moves:
                break
            if sizes[other] <= SMALL and np.isin(self.seats_of(other), devices).all():
                seats = scratch.find(type, sizes[other], TOGETHER)
                if seats is not None:
                    scratch.take(seats)
                    found.append((other, seats))
                    missing -= sizes[other]
        return found if missing <= 0 else []
