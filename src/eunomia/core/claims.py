"""What jobs, tenants and apps could lay claim to so far: sums over time that only some policies look at.

    job       D_m = ∫ min(z_m, w_m / Σ w of the tenant's jobs · Q_u) dt        accelerator-seconds deserved
    tenant    used, deserved = min(demand, Q_u) and entitled = Q_u, an hour at a time
    app       ∫ apps alive dt / its life so far

Z. Ye et al., "ASTRAEA", TPDS 2022, for jobs and tenants; K. Mahajan et al., "Themis", NSDI 2020, for apps.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from eunomia.core.columns import Columns
from eunomia.model import deserved
from eunomia.model.apps import Apps
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.tenants import Tenants

NEEDED_BY = frozenset({"deserved", "hourly", "app", "apps", "past_service"})
HOURS = 168  # hours of tenants' sums that are kept
_HOUR = 3600.0


class Present(NamedTuple):
    """The jobs that wait or run, (job,) each."""

    active: Ints  # rows
    owner: Ints
    size: Ints  # accelerators asked for
    width: Ints  # accelerators held
    weight: Floats


class _Apps(Columns):
    submitted: Floats
    before: Floats  # ∫ apps alive dt until then
    service: Floats  # accelerator-seconds of its jobs that have ended

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("submitted", "before", "service"), (np.float64, 0.0)))


class Claims(Columns):
    """The sums, one row per job; `advance` must be called before anything changes."""

    app: Ints
    deserved: Floats  # accelerator-seconds

    def __init__(self) -> None:
        super().__init__({"app": (np.int64, 0), "deserved": (np.float64, 0.0)})
        self._at = 0.0
        self._apps = _Apps()
        self._names: list[str] = []
        self._row_of_app: dict[str, int] = {}
        self._rivals = 0.0  # ∫ apps alive dt
        self._past: list[float] = []
        self._quotas: tuple[Tenants, float, Floats] | None = None  # of which tree and capacity
        self._hours: deque[tuple[int, Floats]] = deque(maxlen=HOURS)  # number of the hour, (tenant, 3)

    def submit(self, job: Job) -> None:
        """Take in a new job."""
        row, name = self.add(), job.app or job.job_id
        if name not in self._row_of_app:
            self._row_of_app[name] = app = self._apps.add()
            self._names.append(name)
            self._apps.submitted[app], self._apps.before[app] = job.submitted, self._rivals
        self.app[row] = self._row_of_app[name]

    def end(self, row: int, service: float, *, finished: bool) -> None:
        """Note what a job attained that has ended."""
        self._apps.service[self.app[row]] += service
        if finished:
            self._past.append(service)

    def advance(self, at: float, present: Present, tree: Tenants, capacity: float) -> None:
        """Add up the time since the last call, in which these jobs were there on so many accelerators."""
        seconds, since, self._at = at - self._at, self._at, at
        if seconds <= 0:
            return
        active, owner, size, width, weight = present
        tenants, quota = len(tree.names), self._quota_in(tree, capacity)
        if len(active):
            together = np.bincount(owner, weight, minlength=tenants)
            self.deserved[active] += deserved.of_jobs(size, weight, together[owner], quota[owner]) * seconds
            self._rivals += len(np.unique(self.app[active])) * seconds
        demand, used = (np.bincount(owner, of, minlength=tenants) for of in (size, width))
        self._count_hours(since, at, np.stack((used * 1.0, deserved.of_tenants(demand, quota), quota), axis=1))

    def _quota_in(self, tree: Tenants, capacity: float) -> Floats:
        """Return the tenants' quotas, (tenant,), which seldom change."""
        if self._quotas is None or self._quotas[0] is not tree or self._quotas[1] != capacity:
            self._quotas = tree, capacity, tree.quota(capacity)
        return self._quotas[2]

    def _count_hours(self, since: float, at: float, rate: Floats) -> None:
        first, last = int(since // _HOUR), int(at // _HOUR)
        for hour in range(max(first, last - HOURS), last + 1):
            part = min(at, (hour + 1) * _HOUR) - max(since, hour * _HOUR)
            if not self._hours or self._hours[-1][0] != hour:
                self._hours.append((hour, np.zeros_like(rate)))
            number, sums = self._hours[-1]
            if len(sums) < len(rate):
                sums = np.concatenate((sums, np.zeros((len(rate) - len(sums), 3))))
            self._hours[-1] = number, sums + rate * part

    # ---- what a view shows -----------------------------------------------------------------------------------

    def apps_of(self, rows: Ints) -> Ints:
        """Return the row of each job's app in `apps` of the same jobs, (job,)."""
        return np.unique(self.app[rows], return_inverse=True)[1].reshape(-1)

    def apps(self, at: float, rows: Ints) -> Apps:
        """Return the apps of these jobs."""
        mine = np.unique(self.app[rows])
        table = self._apps
        submitted, before, service = (column[mine] for column in table.floats)
        life = at - submitted
        rivals = np.divide(self._rivals - before, life, out=np.ones(len(mine)), where=life > 0)
        return Apps(tuple(self._names[app] for app in mine.tolist()), submitted, np.maximum(rivals, 1.0), service)

    def hourly(self, tenants: int) -> Floats:
        """Return used, deserved and entitled accelerator-seconds, (hour, tenant, 3), the present hour last."""
        table = np.zeros((len(self._hours), tenants, 3))
        for place, (_, sums) in enumerate(self._hours):
            table[place, : len(sums)] = sums
        return table

    def past_service(self) -> Floats:
        """Return the accelerator-seconds of every job that has finished, (sample,)."""
        return np.array(self._past)
