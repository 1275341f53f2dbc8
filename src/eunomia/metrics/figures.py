"""The figures of a run: the numbers of summary.json, the columns of jobs.csv, and curves over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.metrics.app_completion import AppOutcomes
from eunomia.metrics.collector import STATUSES, MetricsCollector
from eunomia.metrics.fairness import StandaloneSpeeds
from eunomia.metrics.job_timelines import CANCELLED, FAILED, FINISHED, REJECTED
from eunomia.metrics.registry import load_all
from eunomia.metrics.sharing import Sharing
from eunomia.metrics.step_functions import integral
from eunomia.metrics.summary import Metric, RunTables, summarise
from eunomia.metrics.tenant_usage import TenantUsage
from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Array, Floats
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.finish_time import SHARE, IdealTime
from eunomia.model.job_table import job_array, job_values
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.tolerance import is_at_most
from eunomia.model.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one run."""

    types: tuple[str, ...]
    summary: Mapping[str, float | int | None]  # fields of summary.json
    tables: RunTables  # from which the summary is computed
    jobs: Mapping[str, Array]  # columns of jobs.csv
    apps: Mapping[str, Array]  # columns of apps.csv; none where no app has several jobs
    tenants: Mapping[str, Array]  # columns of tenants.csv but `policy`
    rho_by_ideal: Mapping[
        IdealTime, Floats
    ]  # (app,) rho_themis by each reading of T_id, apps in order of first submission
    sharing: Sharing
    alone_s: Floats  # (job,) run time on the fastest type
    bin_start_s: Floats  # (bin,)
    utilization: Floats  # (type, bin) busy / available; nan where none was available
    running_jobs: Floats  # (bin,)
    waiting_jobs: Floats  # (bin,)


class Metrics(MetricsCollector):
    """The observer that returns the figures of a run.

    `prices` are US$ per accelerator-hour by type, None = unknown. With `waits` the waits of jobs are split by cause.
    `tenants` are the declared tenants by name, `metrics` those that compute the summary, `ideal` is the reading of
    `rho_themis`.
    """

    def __init__(
        self,
        topology: Topology,
        speeds: Speeds,
        prices: Mapping[str, float | None],
        waits: WaitCauses | None = None,
        tenants: Mapping[str, Tenant] | None = None,
        metrics: Mapping[str, Metric] | None = None,
        ideal: IdealTime = SHARE,
    ):
        super().__init__(topology)
        self._speeds, self._prices, self._waits, self._tenants = speeds, prices, waits, tenants or {}
        self.metrics = load_all() if metrics is None else metrics
        self._ideal = ideal

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Record the events of a moment and the decisions that followed."""
        super().observe(moment, decisions)
        if self._waits is not None:
            self._waits.observe(moment, decisions)

    def observe_batch(self, batch: MomentBatch) -> None:
        """Record many moments and their decisions."""
        super().observe_batch(batch)
        if self._waits is not None:
            for moment, decisions in batch:
                self._waits.observe(moment, decisions)

    def figures(self, bins: int = 400) -> Figures:
        """Return the figures of the run, which is over; curves have at most so many bins."""
        alone = StandaloneSpeeds.of(self.jobs, self._speeds, self.topology.capacity())
        apps, usage = _apps(self, alone, self._ideal), TenantUsage.of(self, self._tenants)
        jobs = _columns(self, apps)
        jobs |= usage.of_jobs(self, alone, jobs)
        jobs |= ({} if self._waits is None else self._waits.columns(self.end_s)) | _outcome_columns(self)
        jobs |= _estimate_columns(self)
        table = apps.table(self.jobs, self.app_ends, jobs["attained_service_s"])
        shown = jobs | _eligibility_columns(self, jobs)
        begin = float(np.min(shown["submitted_s"])) if self.jobs else 0.0
        edges = _bins(begin, max(self.end_s, begin), bins)
        types = range(len(self.topology.types))
        busy = np.stack([integral(self.busy(j), edges) for j in types])
        change = np.stack([integral(self.capacity_change(j), edges) for j in types])
        available = self.topology.capacity()[:, None] * (edges - begin) + change
        running, present = integral(self.running(), edges), integral(self.present(), edges)
        by_tenant, sharing = usage.table(self, alone, jobs | {"jct_s": shown["jct_s"]}, available[:, -1])
        width = max(edges[1] - edges[0], 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.diff(busy) / np.diff(available)
        tables = RunTables(
            jobs=shown,
            apps=table,
            tenants=by_tenant,
            types=self.topology.types,
            busy_s=busy[:, -1],
            available_s=available[:, -1],
            prices=self._prices,
            end_s=self.end_s,
            empty_apps=int(apps.empty.sum()),
        )
        return Figures(
            types=self.topology.types,
            summary=summarise(tables, self.metrics),
            tables=tables,
            jobs=shown,
            apps=table,
            tenants=by_tenant,
            rho_by_ideal=apps.rho_by_ideal,
            sharing=sharing,
            alone_s=alone.seconds,
            bin_start_s=edges[:-1],
            utilization=np.where(np.diff(available) > 0, share, np.nan),
            running_jobs=np.diff(running) / width,
            waiting_jobs=(np.diff(present) - np.diff(running)) / width,
        )


def _bins(begin: float, end: float, bins: int) -> Floats:
    """Return the edges of the bins: fewer where floats are too coarse, one bin for a run of no length."""
    edges = np.unique(np.linspace(begin, end, bins + 1))
    return edges if len(edges) > 1 else np.array([begin, end])


def _apps(collector: MetricsCollector, alone: StandaloneSpeeds, ideal: IdealTime) -> AppOutcomes:
    ended = collector.column("ended")
    return AppOutcomes.of_jobs(
        collector.jobs,
        collector.app_ends,
        ended=ended,
        finished=np.where(collector.column("status") == FINISHED, ended, np.nan),
        alone_s=alone.seconds,
        done_s=(collector.served()[0] * alone.worth).sum(axis=1),
        devices=collector.topology.devices,
        end_s=collector.end_s,
        ideal=ideal,
    )


def _columns(collector: MetricsCollector, apps: AppOutcomes) -> dict[str, Array]:
    """Return the columns of jobs.csv, jobs in order of submission."""
    jobs = collector.jobs
    submitted = job_array(jobs, "submitted", float).copy()
    status = collector.column("status")
    finished = np.where(status == FINISHED, collector.column("ended"), np.nan)
    size = job_array(jobs, "scale_factor", np.int64).copy()
    received, service = collector.served()
    columns: dict[str, Array] = {
        "job_id": _texts(job_values(jobs, "job_id")),
        "tenant": _texts(job_values(jobs, "tenant")),
        "app": _texts(job_values(jobs, "app")),
        "job_type": _texts(job_values(jobs, "job_type")),
        "scale_factor": size,
        "submitted_s": submitted,
        "first_started_s": collector.column("first").copy(),
        "finished_s": finished,
        "jct_s": finished - submitted,
        "attained_service_s": service,
        "preemptions": collector.column("preemptions").astype(np.int64),
        "status": np.array(STATUSES, dtype=object)[status],
        "rho_themis": apps.rho[apps.of],
    }
    return columns | {f"received_{name}_s": received[:, j] for j, name in enumerate(collector.topology.types)}


def _eligibility_columns(collector: MetricsCollector, jobs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of jobs.csv that count from the submission by the user, where jobs became eligible later.

    All other figures count from when a job is eligible: before, no policy could start it.
    """
    before_s = job_array(collector.jobs, "not_eligible_s", float)
    if not before_s.any():
        return {}
    return {
        "submitted_s": jobs["submitted_s"] - before_s,
        "jct_s": jobs["jct_s"] + before_s,
        "wait_not_eligible_s": before_s.copy(),
    }


def _outcome_columns(collector: MetricsCollector) -> dict[str, Array]:
    """Return the columns of jobs.csv on pauses, cancellations and deadlines.

    A deadline is missed by a job that finished later, failed, was refused, or was present at it; not by one that its
    user cancelled before.
    """
    status, ended = collector.column("status"), collector.column("ended")
    deadline = job_array(collector.jobs, "deadline", float)
    until = np.where(np.isnan(ended), np.nextafter(collector.end_s, math.inf), ended)  # nan: present at the end
    missed = ~is_at_most(until, deadline) | np.isin(status, (FAILED, REJECTED))
    cancelled_by = np.where(status == CANCELLED, "user", "").astype(object)
    cancelled_by[[row for row in collector.cancelled_by_tuner if status[row] == CANCELLED]] = "tuner"
    has_deadline = np.isfinite(deadline)
    return {
        "paused_s": collector.pauses.seconds(collector.end_s, len(collector.jobs)),
        "cancelled_by": cancelled_by,
        "deadline_s": np.where(has_deadline, deadline, np.nan),
        "deadline_missed": np.where(has_deadline, missed.astype(float), np.nan),
    }


def _estimate_columns(collector: MetricsCollector) -> dict[str, Array]:
    """Return the columns of jobs.csv on run times estimated at submission; none where no job's is."""
    if not collector.estimates:
        return {}
    table = np.full((4, len(collector.jobs)), np.nan)
    for row, each in collector.estimates.items():
        table[:, row] = each.run_s, each.low_s, each.high_s, each.measurements
    names = ("run_s", "run_p10_s", "run_p90_s", "measurements")
    return {f"estimated_{name}": column for name, column in zip(names, table, strict=True)}


def _texts(values: Iterable[str]) -> Array:
    return np.array(list(values), dtype=object)
