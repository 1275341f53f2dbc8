"""The figures of a run: the numbers of summary.json, the columns of jobs.csv, and curves over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.metrics import user_outcomes
from eunomia.metrics.apps import AppOutcomes
from eunomia.metrics.collector import STATUSES, MetricsCollector
from eunomia.metrics.job_summary import app_numbers, job_numbers, tenant_numbers
from eunomia.metrics.job_timelines import FINISHED
from eunomia.metrics.sharing import Sharing
from eunomia.metrics.standalone_speed import StandaloneSpeeds
from eunomia.metrics.step_functions import integral
from eunomia.metrics.tenants import TenantUsage
from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Array, Floats
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Topology

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything that was measured of one run; `jobs` has one column per name of jobs.csv."""

    types: tuple[str, ...]
    summary: Mapping[str, float | int | None]
    jobs: Mapping[str, Array]
    apps: Mapping[str, Array]  # a column for each name of apps.csv; none where no app has several jobs
    tenants: Mapping[str, Array]  # a column for each name of tenants.csv but `policy`
    sharing: Sharing
    alone_s: Floats  # (job,) run time on the fastest type
    bin_start_s: Floats  # (bin,)
    utilization: Floats  # (type, bin) busy / available; nan where none was available
    running_jobs: Floats  # (bin,)
    waiting_jobs: Floats  # (bin,)


class Metrics(MetricsCollector):
    """The observer that most runs want: it hears, and then gives figures.

    `prices` are US$ per accelerator-hour by type, None = not known. With `waits` the waits of jobs are split by cause.
    `tenants` are what is known of who owns jobs.
    """

    def __init__(
        self,
        topology: Topology,
        speeds: Speeds,
        prices: Mapping[str, float | None],
        waits: WaitCauses | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ):
        super().__init__(topology)
        self._speeds, self._prices, self._waits, self._tenants = speeds, prices, waits, tenants or {}

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note what happened and what was decided."""
        super().hear(moment, decisions)
        if self._waits is not None:
            self._waits.hear(moment, decisions)

    def figures(self, bins: int = 400) -> Figures:
        """Return the figures of the run, which is over."""
        split = {} if self._waits is None else self._waits.columns(self.end_s)
        return figures_of(self, self._speeds, self._prices, bins, split, self._tenants)


def _bins(begin: float, end: float, bins: int) -> Floats:
    """Return the edges of so many bins, fewer where numbers are too coarse; a run of no length has one bin."""
    edges = np.unique(np.linspace(begin, end, bins + 1))
    return edges if len(edges) > 1 else np.array([begin, end])


def figures_of(
    heard: MetricsCollector,
    speeds: Speeds,
    prices: Mapping[str, float | None],
    bins: int,
    split: Mapping[str, Array],
    tenants: Mapping[str, Tenant],
) -> Figures:
    """Return the figures of a run that is over; `split` are further columns of jobs.csv."""
    alone = StandaloneSpeeds.of(heard.jobs, speeds, heard.topology.capacity())
    apps = _apps(heard, alone)
    jobs, accounts = _columns(heard, apps), TenantUsage.of(heard, tenants)
    jobs |= accounts.of_jobs(heard, alone, jobs) | dict(split) | user_outcomes.of_jobs(heard)
    table = apps.table(heard.jobs, heard.app_ends, jobs["attained_service_s"])
    begin = float(np.min(jobs["submitted_s"])) if heard.jobs else 0.0
    edges = _bins(begin, max(heard.end_s, begin), bins)
    types = range(len(heard.topology.types))
    busy = np.stack([integral(heard.busy(j), edges) for j in types])
    change = np.stack([integral(heard.gone(j), edges) for j in types])
    available = heard.topology.capacity()[:, None] * (edges - begin) + change
    running, present = integral(heard.running(), edges), integral(heard.present(), edges)
    by_tenant, sharing = accounts.table(heard, alone, jobs, available[:, -1])
    width = max(edges[1] - edges[0], 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.diff(busy) / np.diff(available)
    return Figures(
        types=heard.topology.types,
        summary=_summary(heard, jobs, busy[:, -1], available[:, -1], prices)
        | app_numbers(table, int(apps.empty.sum()))
        | tenant_numbers(by_tenant),
        jobs=jobs,
        apps=table,
        tenants=by_tenant,
        sharing=sharing,
        alone_s=alone.seconds,
        bin_start_s=edges[:-1],
        utilization=np.where(np.diff(available) > 0, share, np.nan),
        running_jobs=np.diff(running) / width,
        waiting_jobs=(np.diff(present) - np.diff(running)) / width,
    )


def _apps(heard: MetricsCollector, alone: StandaloneSpeeds) -> AppOutcomes:
    """Return the apps, judged by what their jobs needed."""
    ended = heard.column("ended")
    return AppOutcomes.judged(
        heard.jobs,
        heard.app_ends,
        ended=ended,
        finished=np.where(heard.column("status") == FINISHED, ended, np.nan),
        alone_s=alone.seconds,
        done_s=(heard.served()[0] * alone.worth).sum(axis=1),
        devices=heard.topology.devices,
        end_s=heard.end_s,
    )


def _columns(heard: MetricsCollector, apps: AppOutcomes) -> dict[str, Array]:
    """Return the columns of jobs.csv, jobs in order of submission."""
    jobs = heard.jobs
    submitted = np.array([job.submitted for job in jobs])
    status = heard.column("status")
    finished = np.where(status == FINISHED, heard.column("ended"), np.nan)
    size = np.array([job.scale_factor for job in jobs], dtype=np.int64)
    received, service = heard.served()
    columns: dict[str, Array] = {
        "job_id": _texts(job.job_id for job in jobs),
        "tenant": _texts(job.tenant for job in jobs),
        "app": _texts(job.app for job in jobs),
        "job_type": _texts(job.job_type for job in jobs),
        "scale_factor": size,
        "submitted_s": submitted,
        "first_started_s": heard.column("first").copy(),
        "finished_s": finished,
        "jct_s": finished - submitted,
        "attained_service_s": service,
        "preemptions": heard.column("preemptions").astype(np.int64),
        "status": np.array(STATUSES, dtype=object)[status],
        "rho_themis": apps.rho[apps.of],
    }
    return columns | {f"received_{name}_s": received[:, j] for j, name in enumerate(heard.topology.types)}


def _texts(values: Iterable[str]) -> Array:
    return np.array(list(values), dtype=object)


def _summary(
    heard: MetricsCollector,
    jobs: Mapping[str, Array],
    busy_s: Floats,
    available_s: Floats,
    prices: Mapping[str, float | None],
) -> dict[str, float | int | None]:
    """Return the numbers of summary.json; what has no value is None."""
    of_jobs = job_numbers(jobs)
    names = list(of_jobs)
    last = {name: of_jobs.pop(name) for name in names[names.index("preemptions") :]}
    summary = of_jobs
    summary["end_s"] = heard.end_s
    summary["utilization"] = _ratio(busy_s.sum(), available_s.sum())
    for j, name in enumerate(heard.topology.types):
        summary[f"utilization_{name}"] = _ratio(busy_s[j], available_s[j])
    summary["cost_usd"] = _cost(heard.topology.types, busy_s, prices)
    return summary | last


def _cost(types: tuple[str, ...], busy_s: Floats, prices: Mapping[str, float | None]) -> float | None:
    """Return what the busy accelerators cost; None when a type that was used has no price."""
    total = 0.0
    for name, seconds in zip(types, busy_s.tolist(), strict=True):
        price = prices.get(name)
        if seconds > 0 and price is None:
            return None
        total += (price or 0.0) * seconds / HOUR_S
    return total


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None
