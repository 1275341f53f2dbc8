"""The figures of a run: the numbers of summary.json, the columns of jobs.csv, and curves over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.metrics.fairness import rho_themis
from eunomia.metrics.heard import STATUSES, Heard
from eunomia.metrics.job_numbers import job_numbers
from eunomia.metrics.lives import FINISHED
from eunomia.metrics.steps import integral
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.job import Job
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Everything that was measured of one run; `jobs` has one column per name of jobs.csv."""

    types: tuple[str, ...]
    summary: Mapping[str, float | int | None]
    jobs: Mapping[str, Array]
    alone_s: Floats  # (job,) run time on the fastest type
    bin_start_s: Floats  # (bin,)
    utilization: Floats  # (type, bin) busy / available; nan where none was available
    running_jobs: Floats  # (bin,)
    waiting_jobs: Floats  # (bin,)


class Metrics(Heard):
    """The observer that most runs want: it hears, and then gives figures.

    `prices` are US$ per accelerator-hour by type, None = not known.
    """

    def __init__(self, topology: Topology, speeds: Speeds, prices: Mapping[str, float | None]):
        super().__init__(topology)
        self._speeds, self._prices = speeds, prices

    def figures(self, bins: int = 400) -> Figures:
        """Return the figures of the run, which is over."""
        return figures_of(self, self._speeds, self._prices, bins)


def figures_of(heard: Heard, speeds: Speeds, prices: Mapping[str, float | None], bins: int) -> Figures:
    """Return the figures of a run that is over."""
    alone_s = _alone(heard.jobs, speeds, heard.topology.capacity())
    jobs = _columns(heard, alone_s)
    begin = float(np.min(jobs["submitted_s"])) if heard.jobs else 0.0
    edges = np.linspace(begin, max(heard.end_s, begin), bins + 1)
    types = range(len(heard.topology.types))
    busy = np.stack([integral(heard.busy(j), edges) for j in types])
    change = np.stack([integral(heard.gone(j), edges) for j in types])
    available = heard.topology.capacity()[:, None] * (edges - begin) + change
    running, present = integral(heard.running(), edges), integral(heard.present(), edges)
    width = max(edges[1] - edges[0], 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.diff(busy) / np.diff(available)
    return Figures(
        types=heard.topology.types,
        summary=_summary(heard, jobs, busy[:, -1], available[:, -1], prices),
        jobs=jobs,
        alone_s=alone_s,
        bin_start_s=edges[:-1],
        utilization=np.where(np.diff(available) > 0, share, np.nan),
        running_jobs=np.diff(running) / width,
        waiting_jobs=(np.diff(present) - np.diff(running)) / width,
    )


def _alone(jobs: Sequence[Job], speeds: Speeds, capacity: Floats) -> Floats:
    """Return the seconds each job needs with nobody around on the fastest type that can hold its gang, (job,)."""
    best = {
        (kind, size): float(np.where(capacity >= size, speeds.alone(kind, size), 0.0).max())
        for kind, size in {(job.job_type, job.scale_factor) for job in jobs}
    }
    rate = np.array([best[job.job_type, job.scale_factor] for job in jobs])
    with np.errstate(divide="ignore"):
        return np.asarray(np.array([job.total_steps for job in jobs]) / rate)


def _columns(heard: Heard, alone_s: Floats) -> dict[str, Array]:
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
        "rho_themis": rho_themis(
            _apps(jobs), submitted, finished, size.astype(float), alone_s, heard.topology.devices, heard.end_s
        ),
    }
    return columns | {f"received_{name}_s": received[:, j] for j, name in enumerate(heard.topology.types)}


def _texts(values: Iterable[str]) -> Array:
    return np.array(list(values), dtype=object)


def _apps(jobs: Sequence[Job]) -> Ints:
    """Number the apps; a job that names none is one by itself."""
    keys: dict[str | int, int] = {}
    return np.array([keys.setdefault(job.app or m, len(keys)) for m, job in enumerate(jobs)], dtype=np.int64)


def _summary(
    heard: Heard, jobs: Mapping[str, Array], busy_s: Floats, available_s: Floats, prices: Mapping[str, float | None]
) -> dict[str, float | int | None]:
    """Return the numbers of summary.json; what has no value is None."""
    of_jobs = job_numbers(jobs)
    last = {name: of_jobs.pop(name) for name in ("preemptions", "rho_themis_max", "rho_themis_mean")}
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
