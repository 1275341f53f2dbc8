"""What jobs received without seats: shares of time, each from one order to the next."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.decisions import Flow

_NO_FLOATS: Floats = np.empty(0)


class FluidService:
    """Sums of what flowed, by job, and how much of each type was in use when. Nothing, where everybody sits."""

    def __init__(self, types: int):
        self._types = types
        self._job = self._type = NO_INTS  # (entry,)
        self._x = self._size = _NO_FLOATS  # (entry,)
        self._since = 0.0
        self._received, self._service = np.zeros((0, types)), np.zeros(0)  # (job, type), (job,)
        self._times: list[float] = []
        self._used: list[Floats] = []  # (type,) accelerators from each of these times on
        self._held: list[Floats] = []  # (tenant, type) likewise, by who was there then

    def __bool__(self) -> bool:
        return bool(self._times)

    def turn(self, order: Flow, at: float, job: Ints, owner: Ints, owners: int) -> tuple[Ints, Ints]:
        """Let an order about these jobs hold from now on; return who begins and who ceases to receive.

        `owner` says whose each job is, of so many tenants.
        """
        self._flow_to(at)
        before, now = np.unique(self._job), np.unique(job)
        self._make_room(int(now.max(initial=-1)) + 1)
        self._job, self._type, self._x, self._size = job, order.types, order.x, order.sizes.astype(float)
        held = order.x * order.sizes * np.where(order.partners.rows >= 0, 0.5, 1.0)  # both of a pair name its seats
        if self._times and self._times[-1] == at:
            del self._times[-1], self._used[-1], self._held[-1]
        self._times.append(at)
        self._used.append(np.asarray(np.bincount(order.types, held, minlength=self._types), dtype=float))
        mine = np.bincount(owner * self._types + order.types, order.x * order.sizes, owners * self._types)
        self._held.append(mine.astype(float).reshape(owners, self._types))
        return np.setdiff1d(now, before), np.setdiff1d(before, now)

    def leave_out(self, job: int, at: float) -> bool:
        """A job has ended; say whether it received something. What is in use now, the next order says."""
        mine = self._job == job
        if not mine.any():
            return False
        self._flow_to(at)
        self._job, self._type, self._x, self._size = (
            column[~mine] for column in (self._job, self._type, self._x, self._size)
        )
        return True

    def served(self, at: float, jobs: int) -> tuple[Floats, Floats]:
        """Return seconds by type, (job, type), and accelerator-seconds, (job,), of so many jobs up to `at`."""
        self._make_room(jobs)
        received, service = self._received[:jobs].copy(), self._service[:jobs].copy()
        flowed = self._x * max(at - self._since, 0.0)
        np.add.at(received, (self._job, self._type), flowed)
        np.add.at(service, self._job, flowed * self._size)
        return received, service

    def busy(self, type: int) -> tuple[Floats, Floats]:
        """Return how many accelerators of a type were in use: times, and the number from each on."""
        return np.array(self._times), np.array([used[type] for used in self._used])

    def held(self, owner: int, type: int) -> tuple[Floats, Floats]:
        """Return how many accelerators of a type a tenant's jobs used: times, and the number from each on."""
        found = [float(held[owner, type]) if owner < len(held) else 0.0 for held in self._held]
        return np.array(self._times), np.array(found)

    def _flow_to(self, at: float) -> None:
        flowed, self._since = self._x * (at - self._since), at
        np.add.at(self._received, (self._job, self._type), flowed)
        np.add.at(self._service, self._job, flowed * self._size)

    def _make_room(self, jobs: int) -> None:
        more = max(jobs, 2 * len(self._service)) - len(self._service) if jobs > len(self._service) else 0
        if more:
            self._received = np.concatenate((self._received, np.zeros((more, self._types))))
            self._service = np.concatenate((self._service, np.zeros(more)))
