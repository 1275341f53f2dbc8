"""Entitlements of jobs, tenants and apps: sums over time that only some policies need.

    job       D_m = ∫ min(z_m, w_m / Σ w of the tenant's jobs · O_u) dt        accelerator-seconds deserved
    tenant    used, deserved = min(demand, O_u) and entitled = Q_u, an hour at a time; O_u as `model.fair_share` says
              U_u = ∫ used(s) · 2^(-(t - s) / half-life) ds, the sum over all its past
    app       ∫ apps alive dt / its life so far

Q_u is the quota in whole accelerators (`model.tenants`). U_u is one number: in Δt, while u holds n accelerators,

    U ← U · 2^(-Δt / h) + n · (1 - 2^(-Δt / h)) · h / ln 2,    h the half-life;    U + n · Δt where it is infinite

Z. Ye et al., "ASTRAEA", TPDS 2022, for jobs and tenants; K. Mahajan et al., "Themis", NSDI 2020, for apps.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.model import elementary, fair_share
from eunomia.model.apps import Apps, PausedJobs
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.tenants import Tenants

_OWED = frozenset({"fair_share_service", "tenant_hourly_usage"})  # columns made of what tenants own
OF_TENANTS = _OWED | {"tenant_usage"}  # columns that take a pass over all jobs at every moment
NEEDED_BY = OF_TENANTS | {"app", "apps", "past_service"}
HOURS = 168  # hours of tenants' sums that are kept
_HOUR = 3600.0
_LN_2 = 0.6931471805599453


class ActiveJobs(NamedTuple):
    """The jobs that wait or run, (job,) each."""

    active: Ints  # rows
    owner: Ints
    size: Ints  # accelerators asked for
    width: Ints  # accelerators held
    weight: Floats


class _Apps(GrowingColumns):
    submitted: Floats
    before: Floats  # ∫ apps alive dt until then
    service: Floats  # accelerator-seconds of its jobs that have ended
    present: Ints  # its jobs that wait or run

    def __init__(self) -> None:
        floats = dict.fromkeys(("submitted", "before", "service"), (np.float64, 0.0))
        super().__init__({**floats, "present": (np.int64, 0)})


class Entitlements(GrowingColumns):
    """The sums that the columns `kept` need, one row per job; `advance` must be called before anything changes.

    `half_life_s`: of tenants' usage, inf = nothing is forgotten.
    """

    app: Ints
    deserved: Floats  # accelerator-seconds

    def __init__(self, kept: frozenset[str] = NEEDED_BY, half_life_s: float = math.inf) -> None:
        super().__init__({"app": (np.int64, 0), "deserved": (np.float64, 0.0)})
        self.kept, self.half_life_s = kept, half_life_s
        self._at = 0.0
        self._apps = _Apps()
        self._names: list[str] = []
        self._asked: tuple[Ints, tuple[str, ...]] = NO_INTS, ()  # apps whose names were asked for last
        self._row_of_app: dict[str, int] = {}
        self._over: list[int] = []  # apps of one job that has ended, which none joins any more
        self._rivals = 0.0  # ∫ apps alive dt
        self._alive = 0  # apps of which a job waits or runs
        self._past: list[float] = []
        self._shares: fair_share.FairShares | None = None  # of the present tree
        self._usage = np.zeros(0)  # (tenant,) accelerator-seconds, decayed
        self._hours: deque[tuple[int, Floats]] = deque(maxlen=HOURS)  # number of the hour, (tenant, 3)
        self._table: tuple[tuple[int, int], Floats] = (0, 0), np.zeros((0, 0, 3))  # last hour and tenants of which

    def submit(self, job: Job) -> None:
        """Add a new job."""
        row, name = self.add(), job.app or job.job_id
        if name not in self._row_of_app:
            self._row_of_app[name] = app = self._apps.add()
            self._names.append(name)
            self._apps.submitted[app], self._apps.before[app] = job.submitted, self._rivals
        self.app[row] = self._row_of_app[name]
        self._activate(row)

    def end(self, row: int, service: float, *, finished: bool, job_id: str = "") -> None:
        """Add the service of a job that has ended. An app that has the job's name, and no other job, ends with it."""
        app = int(self.app[row])
        self._apps.service[app] += service
        self._deactivate(row)
        if self._names[app] == job_id and self._apps.present[app] == 0 and self._row_of_app.get(job_id) == app:
            del self._row_of_app[job_id]
            self._over.append(app)
        if finished:
            self._past.append(service)

    def take_over(self, old: Entitlements | None, names: Sequence[str], tree: Tenants, at: float) -> None:
        """Begin at a time, with what tenants of these names used and owned before."""
        self._at = at
        if old is None:
            return
        place = {name: row for row, name in enumerate(tree.names)}
        known = [(row, place[name]) for row, name in enumerate(names) if name in place]
        rows, mine = np.array(known, dtype=np.int64).reshape(-1, 2).T

        def moved(sums: Floats) -> Floats:
            found, here = np.zeros((len(place), *sums.shape[1:])), rows < len(sums)
            found[mine[here]] = sums[rows[here]]
            return found

        self._usage = moved(old.decayed_usage(len(names)))
        self._hours.extend((hour, moved(sums)) for hour, sums in old._hours)
        self._past = list(old._past)

    def forget(self, stays: Bools) -> None:
        """Drop rows of jobs that do not stay, (row,), and apps that are over with them."""
        self.compact(stays)
        kept = np.ones(len(self._apps), dtype=np.bool_)
        kept[self._over] = False
        kept[self.app[: len(self)]] = True
        row = np.where(kept, np.cumsum(kept) - 1, -1)
        self.app[: len(self)] = row[self.app[: len(self)]]
        self._apps.compact(kept)
        self._names = list(compress(self._names, kept.tolist()))
        self._over = [int(row[app]) for app in self._over if kept[app]]
        self._row_of_app = {name: int(row[app]) for name, app in self._row_of_app.items()}
        self._asked = NO_INTS, ()

    def pause(self, row: int) -> None:
        """Remove a job from the active ones until it is resumed."""
        self._deactivate(row)

    def resume(self, row: int) -> None:
        """Return a paused job to the active ones."""
        self._activate(row)

    def _activate(self, row: int) -> None:
        app = self.app[row]
        self._apps.present[app] += 1
        self._alive += self._apps.present[app] == 1

    def _deactivate(self, row: int) -> None:
        app = self.app[row]
        self._apps.present[app] -= 1
        self._alive -= self._apps.present[app] == 0

    def advance(self, at: float, present: ActiveJobs | None, tree: Tenants, capacity: float) -> None:
        """Add up the time since the last call, with these active jobs and this capacity.

        `present` may be left out where nothing of the tenants is kept.
        """
        seconds, since, self._at = at - self._at, self._at, at
        if seconds <= 0:
            return
        self._rivals += self._alive * seconds
        if present is None:
            return
        active, owner, size, width, weight = present
        tenants = len(tree.names)
        used = np.bincount(owner, width, minlength=tenants).astype(np.float64)
        if "tenant_usage" in self.kept:
            self._decay_usage(used, seconds)
        if self.kept.isdisjoint(_OWED):
            return
        if self._shares is None or self._shares.tree is not tree:
            self._shares = fair_share.FairShares(tree)
        demand = np.bincount(owner, size, minlength=tenants)
        own = self._shares.owned(capacity, demand)
        if len(active):
            together = np.bincount(owner, weight, minlength=tenants)
            self.deserved[active] += fair_share.of_jobs(size, weight, together[owner], own[owner]) * seconds
        owed = fair_share.of_tenants(demand, own)
        self._count_hours(since, at, np.stack((used, owed, tree.quota(capacity)), axis=1))

    def _decay_usage(self, used: Floats, seconds: float) -> None:
        """Add what tenants used in these seconds, and let the past decay."""
        past = self.decayed_usage(len(used))
        if math.isinf(self.half_life_s):
            self._usage = past + used * seconds
            return
        lasting_s = self.half_life_s / _LN_2
        forgotten = -float(elementary.expm1(-seconds / lasting_s))
        self._usage = past - past * forgotten + used * (lasting_s * forgotten)

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
        app = self.app[rows]
        named, first = _named(app)
        return np.asarray(np.cumsum(named)[app - first] - 1)

    def among(self, others: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Return which of the `others` belong to an app of these jobs, and its row in `apps` of these, (job,) each."""
        named, first = _named(self.app[rows])
        app = self.app[others] - first
        inside = (app >= 0) & (app < len(named))
        inside[inside] = named[app[inside]] > 0
        return others[inside], np.cumsum(named)[app[inside]] - 1

    def apps(self, at: float, rows: Ints, paused: PausedJobs) -> Apps:
        """Return the apps of these jobs, of which others are `paused`."""
        named, first = _named(self.app[rows])
        mine = np.flatnonzero(named) + first
        table = self._apps
        submitted, before, service = (column[mine] for column in table.floats)
        life = at - submitted
        now = np.full(len(mine), float(self._alive))  # of an app that has no past
        rivals = np.divide(self._rivals - before, life, out=now, where=life > 0)
        return Apps(self._names_of(mine), submitted, np.maximum(rivals, 1.0), service, paused)

    def _names_of(self, apps: Ints) -> tuple[str, ...]:
        """Return the names of apps; the last result is cached because apps seldom change."""
        if not np.array_equal(self._asked[0], apps):
            self._asked = apps, tuple(self._names[app] for app in apps.tolist())
        return self._asked[1]

    def hourly(self, tenants: int) -> Floats:
        """Return used, deserved and entitled accelerator-seconds, (hour, tenant, 3), the present hour last."""
        if not self._hours:
            return np.zeros((0, tenants, 3))
        hour, present = self._hours[-1]
        if self._table[0] != (hour, tenants):  # hours that are over stay as they are
            table = np.zeros((len(self._hours), tenants, 3))
            for place, (_, sums) in enumerate(self._hours):
                table[place, : len(sums)] = sums
            self._table = (hour, tenants), table
        shown = self._table[1].copy()
        shown[-1, : len(present)] = present
        return shown

    def decayed_usage(self, tenants: int) -> Floats:
        """Return the decayed accelerator-seconds that each tenant's own jobs used, (tenant,), until the last call."""
        usage = np.zeros(tenants)
        usage[: len(self._usage)] = self._usage
        return usage

    def past_service(self) -> Floats:
        """Return the accelerator-seconds of every job that has finished, (sample,)."""
        return np.array(self._past)


def _named(numbers: Ints) -> tuple[Ints, int]:
    """Return 1 for each number from the lowest to the highest that is among them, else 0; and the lowest."""
    if len(numbers) == 0:
        return np.zeros(0, dtype=np.int64), 0
    first = int(numbers.min())
    named = np.zeros(int(numbers.max()) - first + 1, dtype=np.int64)
    named[numbers - first] = 1
    return named, first
