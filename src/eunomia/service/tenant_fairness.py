"""What tenants received of what they deserved (LTGF), and how fair their jobs' finish times were (ρ), by hour.

    LTGF_u = ∫ accelerators held by u dt / ∫ min(demand_u, O_u) dt        O_u as `model.fair_share` has it
    ρ = T_sh / (T_alone · N_avg)                                          of a job that succeeded

LTGF is `metrics.sharing.ltgf_over_time` of the living. ρ is that of Themis (`metrics.fairness.rho_themis`) with each
job an app of its own: T_sh is the time in which the job waited or ran, N_avg the mean number of jobs that did so
meanwhile. T_alone is the time for which its processes ran, as on its fastest type: what it declared may be a guess.
Time in which a job was held does not count in its ρ, and time in which no service ran not in LTGF.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model import fair_share
from eunomia.model.arrays import Floats
from eunomia.model.tenants import Tenants

HOURS = 24  # kept in memory: the present one and those before it
KEEP_EVERY_S = 60.0  # so much of the sums may be missing after a kill
MOST_PERIODS = 30  # of a curve
HOUR_S = 3600.0
_LEAST = 1e-6  # accelerator-seconds; less is a rounding error


@dataclass(slots=True)
class TenantSums:
    """What a tenant received and deserved in accelerator-seconds, and ρ of its jobs that succeeded, over some time."""

    received: float = 0.0
    deserved: float = 0.0
    succeeded: int = 0  # jobs whose ρ is known
    rho_sum: float = 0.0
    rho_max: float = 0.0

    def add(self, other: TenantSums) -> None:
        """Add what was in another stretch of time."""
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

    hour: int  # its number
    tenant: str
    sums: TenantSums


class TenantFairness:
    """Sums of each hour by tenant; `advance` is called before anything changes."""

    def __init__(self) -> None:
        self.elapsed = (0.0, 0.0)  # seconds, and ∫ jobs that wait or run dt
        self._at: float | None = None
        self._hours: dict[int, dict[str, TenantSums]] = {}  # by number
        self._changed: set[tuple[int, str]] = set()  # not stored yet
        self._ended: set[tuple[int, str]] = set()  # those of them in which a job has ended: stored with it
        self._kept_at = 0.0

    def restore(self, at: float, elapsed: tuple[float, float], hours: Iterable[TenantHour]) -> None:
        """Go on from what was stored, the last of it at time `at`."""
        self._at, self.elapsed = at, elapsed
        for hour, name, sums in hours:
            self._of(hour, name).add(sums)
        self._changed.clear()

    def advance(self, scheduler: Scheduler, at: float) -> None:
        """Add up the time since the last call, in which the state was as it is."""
        since = self._at
        self._at = at if since is None else max(at, since)
        if since is None or at <= since:
            return
        tree, rates = _rates(scheduler)
        self._elapse(scheduler, at - since)
        names = tree.names
        some = np.flatnonzero(rates.any(axis=1)).tolist()
        first, last = int(since // HOUR_S), int(at // HOUR_S)
        for hour in range(max(first, last - HOURS), last + 1):
            part = min(at, (hour + 1) * HOUR_S) - max(since, hour * HOUR_S)
            if part > 0:
                for row in some:
                    self._of(hour, names[row]).add(TenantSums(float(rates[row, 0]) * part, float(rates[row, 1]) * part))

    def resume(self, scheduler: Scheduler, at: float) -> None:
        """Begin to count at time `at`. Until then no service ran: jobs waited on, and tenants deserved nothing."""
        self._elapse(scheduler, max(at - (self._at or 0.0), 0.0))
        self._at = at

    def _elapse(self, scheduler: Scheduler, seconds: float) -> None:
        seen, jobs = self.elapsed
        self.elapsed = (seen + seconds, jobs + seconds * len(scheduler.state.active))

    def succeeded(self, name: str, rho: float) -> None:
        """Count ρ of a job of a tenant that has ended; `advance` was called for the moment."""
        hour = int((self._at or 0.0) // HOUR_S)
        self._of(hour, name).add(TenantSums(succeeded=1, rho_sum=rho, rho_max=rho))
        self._ended.add((hour, name))

    def _of(self, hour: int, name: str) -> TenantSums:
        """Return the sums of an hour, which are about to change."""
        if hour not in self._hours:
            self._hours[hour] = {}
            for old in [one for one in self._hours if one <= hour - HOURS - 1]:  # the last of them may not be stored
                del self._hours[old]
        self._changed.add((hour, name))
        return self._hours[hour].setdefault(name, TenantSums())

    def to_store(self, scheduler: Scheduler, at: float) -> list[TenantHour]:
        """Return the hours that are due to be stored: those in which jobs ended at once, all once a minute."""
        if at - self._kept_at >= KEEP_EVERY_S:
            self.advance(scheduler, at)
            self._ended, self._kept_at = self._changed, at
        found = [
            TenantHour(hour, name, self._hours[hour][name]) for hour, name in sorted(self._ended) if hour in self._hours
        ]
        self._changed = self._changed - self._ended
        self._ended = set()
        return found

    def ltgf(self) -> dict[str, float]:
        """Return the LTGF of each tenant that deserved anything in the last day."""
        day = {name: sums for name, (sums,) in self.periods(HOURS, 1).items()}
        return {name: sums.ltgf for name, sums in day.items() if sums.ltgf is not None}

    @property
    def hour(self) -> int:
        """Return the number of the present hour, counted from the service's second 0."""
        return int((self._at or 0.0) // HOUR_S)

    def periods(self, width: int, count: int) -> dict[str, list[TenantSums]]:
        """Return each tenant's sums in the last `count` stretches of `width` hours, the oldest first.

        They have the last day only: add what the store has of earlier hours.
        """
        found: dict[str, list[TenantSums]] = {}
        for hour, tenants in self._hours.items():
            ago = (self.hour - hour) // width
            for name, sums in tenants.items() if hour > self.hour - HOURS and ago < count else ():
                found.setdefault(name, empty(count))[-1 - ago].add(sums)
        return found


def empty(count: int) -> list[TenantSums]:
    """Return sums of nothing."""
    return [TenantSums() for _ in range(count)]


def stretches(days: int) -> tuple[int, int]:
    """Return how many hours each of the at most `MOST_PERIODS` parts of that many days has, and how many there are."""
    width = -(-days * 24 // MOST_PERIODS)
    return width, -(-days * 24 // width)


def rho(run_alone_s: float, asked_s: float, beside_s: float) -> float | None:
    """Return T_sh / (T_alone · N_avg) of a job; None where it took no time.

    It asked for `asked_s`; ∫ jobs that asked dt over that time is `beside_s`.
    """
    if run_alone_s <= 0 or asked_s <= 0:
        return None
    return asked_s / (run_alone_s * max(beside_s / asked_s, 1.0))


def _rates(scheduler: Scheduler) -> tuple[Tenants, Floats]:
    """Return the tenants, and the accelerators that each holds and deserves now, (tenant, 2)."""
    state, tree = scheduler.state, scheduler.state.owners.tree
    rows, count = state.active, len(tree.names)
    owner = state.jobs.owner[rows]
    demand = np.bincount(owner, state.jobs.scale_factor[rows], minlength=count)
    held = np.bincount(owner, scheduler.ledger.width[rows], minlength=count)
    own = fair_share.owned(demand, tree.quota(float(state.capacity.sum())), fair_share.rows_below(tree.parent))
    return tree, np.stack((held, fair_share.of_tenants(demand, own)), axis=1)
