"""One pass over the queues of the virtual clusters: which pending jobs start where, and which jobs are preempted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.model.answers import Grants
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.placement.grants_builder import LOST, GrantsBuilder, devices_by_job
from eunomia.policies.grants.philly.free_devices import SMALL, TOGETHER, FreeDevices
from eunomia.policies.order.decayed_usage import top_of

UNMARKED = -1.0


@dataclass(slots=True)
class VirtualClusters:
    """The tenants at the top of the tree; a tenant below one counts as part of it."""

    of: Ints  # (job,) rows of the tenants
    quota: Floats  # (tenant,) accelerators
    used: Floats  # (tenant,) accelerators, kept up to date during the pass
    said: Bools  # (tenant,) the quota was given, and will not change
    borrows: Bools  # (tenant,)
    size: Ints  # (job,) accelerators of each gang

    @classmethod
    def seen(cls, view: View) -> VirtualClusters:
        """Read them from the view."""
        of = top_of(view.tenants)[view.tenant]
        used = np.bincount(of[view.holder[view.holder >= 0]], minlength=len(view.tenants.names)).astype(float)
        quota = view.tenants.quota(float(view.capacity.sum()))
        return cls(of, quota, used, ~np.isnan(view.tenants.said_quota), view.tenants.borrows, view.scale_factor)

    def within(self, job: int) -> bool:
        """Say whether a gang that starts now stays within its quota."""
        mine = self.of[job]
        return bool(self.used[mine] + self.size[job] <= self.quota[mine])

    def all_within(self) -> Bools:
        """Say of every job whether it would stay within its quota if it started now, (job,)."""
        return np.asarray(self.used[self.of] + self.size <= self.quota[self.of])

    def never(self) -> Bools:
        """Say of every job whether it could not start even if it were alone, (job,)."""
        bound = self.said & ~self.borrows
        return np.asarray(bound[self.of] & (self.size > self.quota[self.of]))

    def over(self, job: int) -> bool:
        """Say whether a job's virtual cluster uses more than its quota."""
        return bool(self.used[self.of[job]] > self.quota[self.of[job]])

    def add(self, job: int, sign: int = 1) -> None:
        """Count a gang that starts, or with -1 one that stops."""
        self.used[self.of[job]] += sign * self.size[job]


class QueuePass:
    """Places gangs one after the other, on scratch copies of what is free and used."""

    def __init__(self, view: View, clusters: VirtualClusters, free: FreeDevices, marks: Floats, moves: int):
        self.view, self.clusters, self.free = view, clusters, free
        self.marks = marks  # (device,) ticket of the job that holds this free device
        self.placed: dict[int, tuple[int, Ints]] = {}  # job -> type, devices
        self.stopped: list[int] = []
        self._moves = moves  # gangs that may still be moved
        self._gone: set[int] = set()  # running gangs that left their devices
        self._hopeless: set[tuple[int, int, int]] = set()  # (type, size, level) that have no place
        self._kept: set[tuple[int, int, int]] = set()  # (type, size, level) for which stopping borrowers is not enough
        self._able = (view.throughput > 0) & (view.capacity >= clusters.size[:, None])  # (job, type)
        self._up = int((view.holder != LOST).sum())
        self._busy = int((view.holder >= 0).sum())
        self._seats: tuple[Ints, Ints] | None = None  # see `devices_by_job`

    def serve_within(self, job: int, level: int, ticket: float, preempt_above: float) -> bool:
        """Place a job within its quota, also by moving or preempting others; say whether that could be."""
        return self.place(job, level, ticket) or self._defragment(job) or self._preempt(job, level, above=preempt_above)

    def place(self, job: int, level: int, ticket: float) -> bool:
        """Place a pending gang on its fastest type among those that have a place for it."""
        held = np.flatnonzero(self.marks == ticket) if ticket >= 0 else NO_INTS
        if len(held):
            self._free(held)
            self.marks[held] = UNMARKED
        size = int(self.clusters.size[job])
        for type in self._fastest_first(job):
            if (type, size, level) in self._hopeless:
                continue
            found = self.free.find(type, size, level)
            if found is not None:
                self._start(job, type, found)
                return True
            self._hopeless.add((type, size, level))
        return False

    def place_all(self, jobs: Ints, levels: Ints, tickets: Floats) -> None:
        """Place those of the pending gangs, (job,) each, that have a place; skip those like one that has none.

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
        """Mark the free devices of a gang's best place, so that no other gang takes them."""
        for type in self._fastest_first(job)[:1]:
            devices = self.free.gather(type, int(self.clusters.size[job]), level)
            if len(devices):
                self.free.take(devices)
                self.marks[devices] = ticket

    def renew(self, jobs: Ints) -> None:
        """Let gangs whose leases have ended continue on their devices, unless they have left."""
        for job in jobs.tolist():
            if job not in self._gone:
                self.placed[job] = (int(self.view.on_type[job]), self._devices_of(job))

    def could_borrow(self) -> Bools:
        """Say of every job whether it may borrow, and as many accelerators of a type are free as it wants, (job,)."""
        topology, clusters = self.view.topology, self.clusters
        idle = np.bincount(topology.type[self.free.device_free], minlength=len(self.view.types))
        enough = (self._able & (idle >= clusters.size[:, None])).any(axis=1)
        return np.asarray(enough & clusters.borrows[clusters.of])

    def grants(self, **more: Any) -> Grants:
        """Return the answer, job by job."""
        builder = GrantsBuilder()
        for job in sorted(self.placed):
            builder.give(job, *self.placed[job])
        return builder.build(stop=np.array(sorted(self.stopped), dtype=np.int64), **more)

    def _preempt(self, job: int, level: int, above: float) -> bool:
        """Place a gang by stopping borrowers, the youngest first, if that part of the cluster is in use."""
        if self._busy < above * self._up:
            return False
        size = int(self.clusters.size[job])
        for type in self._fastest_first(job):
            if (type, size, level) in self._kept:
                continue
            found, left, used = None, [], self.clusters.used.copy()
            with self.free.trial():
                for other in self._borrowers(type):
                    mine = self.clusters.of[other]
                    if used[mine] <= self.clusters.quota[mine]:
                        continue
                    used[mine] -= self.clusters.size[other]
                    self.free.give_back(self._devices_of(other))
                    left.append(other)
                    found = self.free.find(type, size, level)
                    if found is not None:
                        break
            if found is not None:
                self._stop([other for other in left if np.isin(self._devices_of(other), found).any()])
                self._start(job, type, found)
                return True
            self._kept.add((type, size, level))
        return False

    def _defragment(self, job: int) -> bool:
        """Place a gang on one machine by moving a few small gangs off it, if there are places for them elsewhere."""
        size = int(self.clusters.size[job])
        for type in self._fastest_first(job) if self._moves else []:
            topology = self.view.topology
            nodes = np.flatnonzero((topology.node_type == type) & (self.free.in_service >= size))
            for node in self.free.emptiest(nodes).tolist():
                moves = self._moved_off(node, type, size - int(self.free.free_by_node[node]))
                if moves:
                    for other, devices in moves:
                        self._free(self._devices_of(other))
                        self._gone.add(other)
                        self.free.take(devices)
                        self.placed[other] = (type, devices)
                    self._moves -= len(moves)
                    self._start(job, type, self.free.free_on(np.array([node]), size))
                    return True
        return False

    def _moved_off(self, node: int, type: int, missing: int) -> list[tuple[int, Ints]]:
        """Return which gangs move off a machine to which devices, to free `missing` more; none if that is too many."""
        topology = self.view.topology
        found: list[tuple[int, Ints]] = []
        devices = topology.first[node] + np.arange(topology.size[node])
        here = np.unique(self.view.holder[devices])
        sizes = {m: int(self.clusters.size[m]) for m in here[here >= 0].tolist() if m not in self._gone}
        with self.free.trial():
            self.free.take(devices[self.free.device_free[devices]])
            for other in sorted(sizes, key=lambda m: (-sizes[m], m)):
                if missing <= 0 or len(found) == self._moves:
                    break
                if sizes[other] <= SMALL and np.isin(self._devices_of(other), devices).all():
                    place = self.free.find(type, sizes[other], TOGETHER)
                    if place is not None:
                        self.free.take(place)
                        found.append((other, place))
                        missing -= sizes[other]
        return found if missing <= 0 else []

    def _fastest_first(self, job: int) -> list[int]:
        """Return the types that could hold a gang, the fastest first."""
        able = self._able[job]
        if len(able) == 1:
            return [0] if able[0] else []
        return [type for type in np.argsort(-self.view.throughput[job], kind="stable").tolist() if able[type]]

    def _devices_of(self, job: int) -> Ints:
        """Return the devices that a gang held when the policy was asked."""
        if self._seats is None:
            self._seats = devices_by_job(self.view.holder, np.ones(self.view.jobs, dtype=bool))
        device, first = self._seats
        return device[first[job] : first[job + 1]]

    def _borrowers(self, type: int) -> list[int]:
        """Return the running gangs of virtual clusters over their quotas, the youngest first."""
        running = np.flatnonzero(self.view.on_type == type)
        young = running[np.lexsort((-running, -self.view.started[running]))]
        return [m for m in young.tolist() if self.clusters.over(m) and m not in self._gone]

    def _start(self, job: int, type: int, devices: Ints) -> None:
        self.free.take(devices)
        self.placed[job] = (type, devices)
        self.clusters.add(job)
        self._busy += len(devices)

    def _stop(self, jobs: list[int]) -> None:
        for job in jobs:
            self._free(self._devices_of(job))
            self.clusters.add(job, -1)
            self._busy -= int(self.clusters.size[job])
        self.stopped += jobs
        self._gone.update(jobs)

    def _free(self, devices: Ints) -> None:
        self.free.give_back(devices)
        self._hopeless.clear()
        self._kept.clear()
