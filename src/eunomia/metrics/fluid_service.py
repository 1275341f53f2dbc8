"""What jobs receive without seats: shares of time, constant from one `SetShares` to the next."""

from __future__ import annotations

import numpy as np

from eunomia.metrics.step_functions import Steps
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.decisions import SetShares

_NO_FLOATS: Floats = np.empty(0)


class FluidService:
    """Service by job, and accelerators in use by type over time. False where there was no `SetShares`."""

    def __init__(self, types: int):
        self._types = types
        self._job = self._type = NO_INTS  # (entry,)
        self._x = self._size = _NO_FLOATS  # (entry,)
        self._since = 0.0
        self._received, self._service = np.zeros((0, types)), np.zeros(0)  # (job, type), (job,)
        self._times: list[float] = []
        self._used: list[Floats] = []  # (type,) accelerators from each of these times on
        self._held: list[Floats] = []  # (tenant, type) likewise, of the tenants at that time

    def __bool__(self) -> bool:
        return bool(self._times)

    def set_shares(self, order: SetShares, at: float, job: Ints, owner: Ints, owners: int) -> tuple[Ints, Ints]:
        """Apply the shares of `order` from `at` on; return the jobs that begin and that cease to receive service.

        `job` and `owner` (entry,) are its job rows and their tenants, of `owners` tenants.
        """
        self._advance_to(at)
        before, now = np.unique(self._job), np.unique(job)
        self._reserve(int(now.max(initial=-1)) + 1)
        self._job, self._type, self._x, self._size = job, order.types, order.x, order.sizes.astype(float)
        held = order.x * order.sizes * np.where(order.partners.rows >= 0, 0.5, 1.0)  # both of a pair name its seats
        if self._times and self._times[-1] == at:
            del self._times[-1], self._used[-1], self._held[-1]
        self._times.append(at)
        self._used.append(np.asarray(np.bincount(order.types, held, minlength=self._types), dtype=float))
        by_owner = np.bincount(owner * self._types + order.types, order.x * order.sizes, owners * self._types)
        self._held.append(by_owner.astype(float).reshape(owners, self._types))
        return np.setdiff1d(now, before), np.setdiff1d(before, now)

    def remove(self, job: int, at: float) -> bool:
        """Remove a job that has ended; return whether it received service. `busy` changes with the next order."""
        own = self._job == job
        if not own.any():
            return False
        self._advance_to(at)
        self._job, self._type, self._x, self._size = (
            column[~own] for column in (self._job, self._type, self._x, self._size)
        )
        return True

    def served(self, at: float, jobs: int) -> tuple[Floats, Floats]:
        """Return seconds by type, (job, type), and accelerator-seconds, (job,), of the first jobs up to `at`."""
        self._reserve(jobs)
        received, service = self._received[:jobs].copy(), self._service[:jobs].copy()
        seconds = self._x * max(at - self._since, 0.0)
        np.add.at(received, (self._job, self._type), seconds)
        np.add.at(service, self._job, seconds * self._size)
        return received, service

    def busy(self, type: int) -> Steps:
        """Return how many accelerators of a type were in use."""
        return np.array(self._times), np.array([used[type] for used in self._used])

    def held(self, owner: int, type: int) -> Steps:
        """Return how many accelerators of a type a tenant's jobs used."""
        values = [float(held[owner, type]) if owner < len(held) else 0.0 for held in self._held]
        return np.array(self._times), np.array(values)

    def _advance_to(self, at: float) -> None:
        seconds, self._since = self._x * (at - self._since), at
        np.add.at(self._received, (self._job, self._type), seconds)
        np.add.at(self._service, self._job, seconds * self._size)

    def _reserve(self, jobs: int) -> None:
        if jobs > len(self._service):
            more = max(jobs - len(self._service), len(self._service))
            self._received = np.concatenate((self._received, np.zeros((more, self._types))))
            self._service = np.concatenate((self._service, np.zeros(more)))
