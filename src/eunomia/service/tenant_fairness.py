"""What tenants received of what they deserved (LTGF), and how fair their jobs' finish times were (ρ), by hour.

    LTGF_u = ∫ accelerators held by u dt / ∫ min(demand_u, O_u) dt        O_u as `model.fair_share` has it
    ρ = T_sh / T_id,  T_id as `model.finish_time` has it by `share`       of a job that succeeded

LTGF is `metrics.sharing.ltgf_over_time` while the service runs. ρ is the ratio of `metrics.fairness.rho_themis` with
each job an app of its own: T_sh is the time for which the job was active, that is waited or ran, N the mean number of
active jobs meanwhile. Its time alone is measured, as what it declares may be a guess: the time for which its processes
ran, as on its fastest type. Work that was lost and repeated counts in it, so ρ is too low for jobs that lost much.
Time in which a job was held does not count in its ρ, and time in which no service ran not in LTGF.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model import fair_share
from eunomia.model.arrays import Floats
from eunomia.model.finish_time import SHARE, ideal_time
from eunomia.model.tenants import Tenants

HOURS = 24  # kept in memory: the present one and those before it
HISTORY_DAYS = 366  # for which hours are stored at least
STORE_EVERY_S = 60.0  # so much of the sums may be missing after a kill
MOST_PERIODS = 30  # of a curve
HOUR_S = 3600.0
_LEAST = 1e-6  # accelerator-seconds; less is a rounding error


@dataclass(slots=True)
class TenantSums:
    """What a tenant received and deserved in accelerator-seconds, and ρ of its jobs that succeeded, in some period."""

    received: float = 0.0
    deserved: float = 0.0
    succeeded: int = 0  # jobs whose ρ is known
    rho_sum: float = 0.0
    rho_max: float = 0.0

    def add(self, other: TenantSums) -> None:
        """Add the sums of another period."""
        self.received += other.received
        self.deserved += other.deserved
        self.succeeded += other.succeeded
        self.rho_sum += other.rho_sum
        self.rho_max = max(self.rho_max, other.rho_max)

    @property
    def ltgf(self) -> float | None:
        """Return received ÷ deserved; None where nothing was deserved."""
        return self.received / self.deserved if self.deserved > _LEAST else None

    def shown(self) -> dict[str, Any]:
        """Return it as the API has it."""
        return {
            "received_accelerator_s": self.received,
            "deserved_accelerator_s": self.deserved,
            "ltgf": self.ltgf,
            "succeeded": self.succeeded,
            "rho_mean": self.rho_sum / self.succeeded if self.succeeded else None,
            "rho_max": self.rho_max if self.succeeded else None,
        }


class TenantHour(NamedTuple):
    """What the store has of one hour of one tenant."""

    hour: int  # its number, counted from the service's second 0
    tenant: str
    sums: TenantSums


class ActiveTime(NamedTuple):
    """Sums up to a time, from which the mean number of active jobs follows."""

    at: float
    seconds: float = 0.0
    job_s: float = 0.0  # ∫ active jobs dt


class TenantFairness:
    """Sums of each hour by tenant; `advance` is called before anything changes."""

    def __init__(self) -> None:
        self.active_time = ActiveTime(0.0)
        self._hours: dict[int, dict[str, TenantSums]] = {}  # by number
        self._changed: set[tuple[int, str]] = set()  # not stored yet
        self._ended: set[tuple[int, str]] = set()  # those of them in which a job has ended: stored with it
        self._stored_at = 0.0
        self._shares: fair_share.FairShares | None = None  # of the present tree

    def restore(self, active_time: ActiveTime, hours: Iterable[TenantHour]) -> None:
        """Go on from what was stored."""
        self.active_time = active_time
        for hour, name, sums in hours:
            self._changing(hour, name).add(sums)
        self._changed.clear()

    def resume(self, scheduler: Scheduler, at: float) -> None:
        """Begin to count at time `at`: until then no service ran. Jobs were active, and tenants deserved nothing."""
        before, jobs = self.active_time, len(scheduler.state.active)
        seconds = max(at - before.at, 0.0)
        self.active_time = ActiveTime(at, before.seconds + seconds, before.job_s + seconds * jobs)

    def advance(self, scheduler: Scheduler, at: float) -> None:
        """Add up the time since the last call, in which the state was as it is."""
        since = self.active_time.at
        if at <= since:
            return
        self.resume(scheduler, at)
        tree, rates = self._rates(scheduler)
        first, last = int(since // HOUR_S), int(at // HOUR_S)
        for row in np.flatnonzero(rates.any(axis=1)).tolist():
            held, due = rates[row].tolist()
            for hour in range(max(first, last - HOURS), last + 1):
                seconds = min(at, (hour + 1) * HOUR_S) - max(since, hour * HOUR_S)
                if seconds > 0:
                    self._changing(hour, tree.names[row]).add(TenantSums(held * seconds, due * seconds))

    def _rates(self, scheduler: Scheduler) -> tuple[Tenants, Floats]:
        """Return the tenants, and the accelerators that each holds and deserves now, (tenant, 2)."""
        state, tree = scheduler.state, scheduler.state.owners.tree
        if self._shares is None or self._shares.tree is not tree:
            self._shares = fair_share.FairShares(tree)
        rows, count = state.active, len(tree.names)
        owner = state.jobs.owner[rows]
        demand = np.bincount(owner, state.jobs.scale_factor[rows], minlength=count)
        held = np.bincount(owner, scheduler.ledger.width[rows], minlength=count)
        own = self._shares.owned(float(state.capacity.sum()), demand)
        return tree, np.stack((held, fair_share.of_tenants(demand, own)), axis=1)

    def count_success(self, name: str, rho: float) -> None:
        """Count ρ of a tenant's job that has just succeeded; `advance` was called for the moment."""
        self._changing(self.hour, name).add(TenantSums(succeeded=1, rho_sum=rho, rho_max=rho))
        self._ended.add((self.hour, name))

    def _changing(self, hour: int, name: str) -> TenantSums:
        """Return the sums of an hour, made if there are none, which the caller changes; forget those of old hours."""
        if hour not in self._hours:
            self._hours[hour] = {}
            for old in [one for one in self._hours if one < hour - HOURS]:  # the one at `hour - HOURS` may be unstored
                del self._hours[old]
        self._changed.add((hour, name))
        return self._hours[hour].setdefault(name, TenantSums())

    def to_store(self, scheduler: Scheduler, at: float) -> list[TenantHour]:
        """Return the hours that are due to be stored: those in which jobs ended at once, all once a minute."""
        if at - self._stored_at >= STORE_EVERY_S:
            self.advance(scheduler, at)
            self._ended, self._stored_at = self._changed, at
        found = [
            TenantHour(hour, name, replace(self._hours[hour][name]))
            for hour, name in sorted(self._ended)
            if hour in self._hours
        ]
        self._changed = self._changed - self._ended
        self._ended = set()
        return found

    def store_now(self) -> None:
        """Let everything be due to be stored."""
        self._stored_at = -math.inf

    def ltgf(self) -> dict[str, float]:
        """Return the LTGF of each tenant that deserved anything in the last day."""
        day = {name: sums for name, (sums,) in self.periods(HOURS, 1).items()}
        return {name: sums.ltgf for name, sums in day.items() if sums.ltgf is not None}

    @property
    def hour(self) -> int:
        """Return the number of the present hour, counted from the service's second 0."""
        return int(self.active_time.at // HOUR_S)

    def periods(self, width: int, count: int) -> dict[str, list[TenantSums]]:
        """Return each tenant's sums in the last `count` periods of `width` hours, the oldest first.

        They have the last day only: add what the store has of earlier hours.
        """
        found: dict[str, list[TenantSums]] = {}
        for hour, tenants in self._hours.items():
            back = self.hour - hour
            if back >= min(HOURS, width * count):
                continue
            for name, sums in tenants.items():
                found.setdefault(name, empty_periods(count))[-1 - back // width].add(sums)
        return found


def empty_periods(count: int) -> list[TenantSums]:
    """Return sums of nothing."""
    return [TenantSums() for _ in range(count)]


def split_days(days: int) -> tuple[int, int]:
    """Return the hours of a period, and how many periods, `MOST_PERIODS` at most, cover that many days."""
    width = -(-days * 24 // MOST_PERIODS)
    return width, -(-days * 24 // width)


def finish_time_fairness(
    run_alone_s: float, active_s: float, active_job_s: float, size: int, devices: float
) -> float | None:
    """Return ρ = T_sh / T_id of a job of `size` accelerators in a cluster of `devices`; None where it took no time.

    It was active for `active_s`; ∫ active jobs dt over that time is `active_job_s`.
    """
    if run_alone_s <= 0 or active_s <= 0:
        return None
    longest, demand, rivals = np.array([run_alone_s]), np.array([float(size)]), np.array([active_job_s / active_s])
    return active_s / ideal_time(longest, longest * demand, demand, rivals, devices, SHARE).item()
