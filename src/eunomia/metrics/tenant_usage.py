"""The tenants of a run that is over: the columns of jobs.csv that depend on them, and those of tenants.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.entitlement import OwnedShares, demand_of, deserved_service, weight_intervals
from eunomia.metrics.fairness import StandaloneSpeeds, rho_astraea, rho_isolated
from eunomia.metrics.job_summary import BENEFIT, LOSS
from eunomia.metrics.job_timelines import REJECTED
from eunomia.metrics.sharing import Hours, Sharing, envy, hours_of, sharing_of
from eunomia.metrics.step_functions import Steps
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.fair_share import FairShares
from eunomia.model.job_table import job_array, job_values
from eunomia.model.tenants import NO_TENANT, Tenant, Tenants
from eunomia.model.tolerance import RELATIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUsage:
    """The tenants of a run's jobs, their demand and entitlement."""

    tree: Tenants
    owner: Ints  # (job,) row of the tenant
    ended: Floats  # (job,) end of its presence, s
    demand: list[Steps]  # (tenant) accelerators that its jobs asked for
    owned: OwnedShares

    @classmethod
    def of(cls, collector: MetricsCollector, declared: Mapping[str, Tenant]) -> TenantUsage:
        """Return the tenants of the collected jobs; `declared` are tenants by name."""
        names = job_values(collector.jobs, "tenant")
        tree = Tenants.of(dict.fromkeys(names), declared)
        row_of = {name: row for row, name in enumerate(tree.names)}
        owner = np.array([row_of[name or NO_TENANT] for name in names], dtype=np.int64)
        ended, began = collector.column("ended"), job_array(collector.jobs, "submitted", float)
        until = np.maximum(np.where(np.isnan(ended), collector.end_s, ended), began)
        demand = demand_of(collector, owner, until, len(tree.names))
        owned = OwnedShares(tree, _in_service(collector), demand)
        return cls(tree=tree, owner=owner, ended=until, demand=demand, owned=owned)

    def of_jobs(
        self, collector: MetricsCollector, alone: StandaloneSpeeds, jobs: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return further columns of jobs.csv."""
        size, service = jobs["scale_factor"].astype(float), jobs["attained_service_s"]
        ltgf = ratio(service, self._deserved(collector, size))
        run_s = running(jobs, collector.topology.types)
        capacity, present = collector.topology.capacity(), collector.present()
        isolated = rho_isolated(
            jobs["submitted_s"], jobs["finished_s"], size, alone.steps, alone.rate, capacity, present
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            slowdown = jobs["jct_s"] / run_s
        waited = self._waited(collector, jobs)
        return {
            "rho_isolated": isolated,
            "rho_astraea": rho_astraea(jobs["jct_s"], run_s, ltgf),
            "ltgf": ltgf,
            "slowdown": slowdown,
            "wait_fair_share_s": np.full(len(run_s), np.nan),  # unknown, unless the policy explains waits
            "wait_fragmentation_s": np.full(len(run_s), np.nan),
            "wait_other_s": waited,
            "total_wait_s": waited.copy(),
        }

    def _deserved(self, collector: MetricsCollector, size: Floats) -> Floats:
        """Return the accelerator-seconds that each job deserved, (job,)."""
        intervals = weight_intervals(collector.jobs, self.ended, collector.weights)
        return deserved_service(intervals, size, self.owner, self.owned)

    def table(
        self, collector: MetricsCollector, alone: StandaloneSpeeds, jobs: Mapping[str, Array], available_s: Floats
    ) -> tuple[dict[str, Array], Sharing]:
        """Return the columns of tenants.csv, and what tenants shared; `available_s` (type,) accelerator-seconds."""
        tree, count = self.tree, len(self.tree.names)
        jobs_of = np.bincount(self.owner, minlength=count)
        parents = np.isin(np.arange(count), tree.parent)
        shown = np.flatnonzero((jobs_of > 0) | ~parents)
        row = np.zeros(count, dtype=np.int64)
        row[shown] = np.arange(len(shown))
        owner, count = row[self.owner], len(shown)
        hours = _among(hours_of(collector, tree, self.demand, self.owned), shown)
        refused = collector.column("status") == REJECTED
        sharing = sharing_of(
            tuple(tree.names[u] for u in shown.tolist()), hours, np.bincount(owner[refused], minlength=count)
        )
        everyone = np.ones(len(tree.names), dtype=bool)
        quota = FairShares(tree).shares(float(collector.topology.capacity().sum()), everyone)[shown]
        waits = np.where(refused, np.nan, jobs["total_wait_s"])
        with np.errstate(divide="ignore", invalid="ignore"):
            of_type = np.nan_to_num(hours.held.sum(axis=0) / available_s)  # 0 of a type that was never in service
        columns: dict[str, Array] = {
            "tenant": np.array(sharing.names, dtype=object),
            "weight": tree.weight[shown],
            "quota": quota,
            "deserved_gpu_s": sharing.deserved,
            "received_gpu_s": sharing.received,
            "ltgf": ratio(sharing.received, sharing.deserved),
            "rho_themis_max": _worst(jobs["rho_themis"], owner, count),
            "jct_mean_s": _mean(jobs["jct_s"], owner, count),
            "queueing_mean_s": _mean(jobs["first_started_s"] - jobs["submitted_s"], owner, count),
            "total_wait_mean_s": _mean(waits, owner, count),
            "sharing_loss_jobs": np.bincount(owner[jobs["ltgf"] < LOSS], minlength=count),
            "envy_max": envy(hours, quota, _worth(alone, jobs["scale_factor"], owner, count)),
            "sharing_benefit_jobs": np.bincount(owner[jobs["ltgf"] > BENEFIT], minlength=count),
            "dominant_share": np.max(of_type, axis=1, initial=0.0),
            "jobs": jobs_of[shown],
        }
        return columns, sharing

    def _waited(self, collector: MetricsCollector, jobs: Mapping[str, Array]) -> Floats:
        """Return the seconds that each job waited in all: present, not running and not paused, (job,)."""
        paused_s = collector.pauses.seconds(collector.end_s, len(self.ended))
        present_s = self.ended - jobs["submitted_s"]
        waited = present_s - running(jobs, collector.topology.types) - paused_s
        return np.where(waited <= RELATIVE * self.ended, 0.0, waited)  # what is left by rounding is no wait


def running(jobs: Mapping[str, Array], types: tuple[str, ...]) -> Floats:
    """Return the seconds that each job ran, (job,)."""
    return np.asarray(sum(jobs[f"received_{name}_s"] for name in types) + np.zeros(len(jobs["job_id"])))


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return part ÷ whole; nan where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def _in_service(collector: MetricsCollector) -> Steps:
    """Return the number of accelerators in service."""
    curves = [collector.capacity_change(type) for type in range(len(collector.topology.types))]
    times = np.unique(np.concatenate([[0.0], *(at for at, _ in curves)]))
    change = sum(value[np.maximum(np.searchsorted(at, times, side="right") - 1, 0)] for at, value in curves)
    before = sum(np.where(times < at[0], value[0], 0.0) for at, value in curves)  # no change yet
    return times, np.asarray(float(collector.topology.capacity().sum()) + change - before)


def _worth(alone: StandaloneSpeeds, size: Ints, owner: Ints, tenants: int) -> Floats:
    """Return the worth of an accelerator-second to each tenant's jobs, averaged by their work, (tenant, type)."""
    work = np.where(np.isfinite(alone.seconds), alone.seconds, 0.0) * size
    total = np.zeros((tenants, alone.rate.shape[1]))
    np.add.at(total, owner, alone.worth * work[:, None])
    whole = np.bincount(owner, work, minlength=tenants)[:, None]
    return np.divide(total, whole, out=np.zeros_like(total), where=whole > 0)


def _worst(values: Floats, owner: Ints, tenants: int) -> Floats:
    worst = np.full(tenants, -np.inf)
    known = ~np.isnan(values)
    np.maximum.at(worst, owner[known], values[known])
    return np.where(np.isinf(worst), np.nan, worst)


def _mean(values: Floats, owner: Ints, tenants: int) -> Floats:
    known = ~np.isnan(values)
    count = np.bincount(owner[known], minlength=tenants).astype(float)
    return ratio(np.bincount(owner[known], values[known], minlength=tenants).astype(float), count)


def _among(hours: Hours, shown: Ints) -> Hours:
    """Return the hours of these tenants."""
    return Hours(hours.edges, *(column[:, shown] for column in hours[1:]))
