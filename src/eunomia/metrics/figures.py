"""The figures of a run: the numbers of summary.json, the columns of jobs.csv, and curves over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.metrics.fairness import rho_themis
from eunomia.metrics.heard import FINISHED, STATUSES, Heard, Life
from eunomia.metrics.steps import integral, steps
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
    heard.settle()
    lives = list(heard.lives.values())
    capacity = heard.topology.capacity()
    alone_s = np.array([_alone(life.job, speeds, capacity) for life in lives])
    jobs = _columns(heard, lives, alone_s)
    begin = float(np.min(jobs["submitted_s"])) if lives else 0.0
    edges = np.linspace(begin, max(heard.end_s, begin), bins + 1)
    types = range(len(heard.topology.types))
    busy = np.stack([integral(_of_type(heard.busy, j), edges) for j in types])
    change = np.stack([integral(_of_type(heard.service, j), edges) for j in types])
    available = heard.topology.capacity()[:, None] * (edges - begin) + change
    running, present = integral(steps(heard.running), edges), integral(steps(heard.present), edges)
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


def _of_type(changes: list[tuple[float, int, int]], type: int) -> tuple[Floats, Floats]:
    return steps([(at, change) for at, j, change in changes if j == type])


def _alone(job: Job, speeds: Speeds, capacity: Floats) -> float:
    """Return the seconds the job needs with nobody around on the fastest type that can hold its gang."""
    holds = capacity >= job.scale_factor
    best = float(np.where(holds, speeds.alone(job.job_type, job.scale_factor), 0.0).max())
    return job.total_steps / best if best > 0 else math.inf


def _columns(heard: Heard, lives: list[Life], alone_s: Floats) -> dict[str, Array]:
    """Return the columns of jobs.csv, jobs in order of submission."""
    jobs = [life.job for life in lives]
    submitted = np.array([job.submitted for job in jobs])
    status = np.array([life.status for life in lives], dtype=np.int64)
    finished = np.where(status == FINISHED, np.array([life.ended for life in lives]), np.nan)
    size = np.array([job.scale_factor for job in jobs], dtype=np.int64)
    received = np.array([life.received for life in lives]).reshape(len(lives), len(heard.topology.types))
    columns: dict[str, Array] = {
        "job_id": _texts(job.job_id for job in jobs),
        "tenant": _texts(job.tenant for job in jobs),
        "app": _texts(job.app for job in jobs),
        "job_type": _texts(job.job_type for job in jobs),
        "scale_factor": size,
        "submitted_s": submitted,
        "first_started_s": np.array([life.first for life in lives]),
        "finished_s": finished,
        "jct_s": finished - submitted,
        "attained_service_s": np.array([life.service for life in lives]),
        "preemptions": np.array([life.preemptions for life in lives], dtype=np.int64),
        "status": _texts(STATUSES[code] for code in status.tolist()),
        "rho_themis": rho_themis(
            _apps(jobs), submitted, finished, size.astype(float), alone_s, heard.topology.devices, heard.end_s
        ),
    }
    return columns | {f"received_{name}_s": received[:, j] for j, name in enumerate(heard.topology.types)}


def _texts(values: Iterable[str]) -> Array:
    return np.array(list(values), dtype=object)


def _apps(jobs: list[Job]) -> Ints:
    """Number the apps; a job that names none is one by itself."""
    keys: dict[str | int, int] = {}
    return np.array([keys.setdefault(job.app or m, len(keys)) for m, job in enumerate(jobs)], dtype=np.int64)


def _summary(
    heard: Heard, jobs: Mapping[str, Array], busy_s: Floats, available_s: Floats, prices: Mapping[str, float | None]
) -> dict[str, float | int | None]:
    """Return the numbers of summary.json; what has no value is None."""
    status = jobs["status"]
    done = status == "finished"
    jct, finished = jobs["jct_s"][done], jobs["finished_s"][done]
    waits = (jobs["first_started_s"] - jobs["submitted_s"])[~np.isnan(jobs["first_started_s"])]
    rho = jobs["rho_themis"][~np.isnan(jobs["rho_themis"])]
    summary: dict[str, float | int | None] = {"jobs_submitted": len(status)}
    for name in ("finished", "failed", "cancelled", "rejected", "unfinished"):
        summary[f"jobs_{name}"] = int((status == name).sum())
    summary["jct_mean_s"] = _mean(jct)
    for percent in (50, 95, 99):
        summary[f"jct_p{percent}_s"] = _value(np.percentile(jct, percent)) if len(jct) else None
    summary["queueing_mean_s"] = _mean(waits)
    summary["makespan_s"] = _value(finished.max() - jobs["submitted_s"].min()) if len(finished) else None
    summary["end_s"] = heard.end_s
    summary["utilization"] = _ratio(busy_s.sum(), available_s.sum())
    for j, name in enumerate(heard.topology.types):
        summary[f"utilization_{name}"] = _ratio(busy_s[j], available_s[j])
    summary["cost_usd"] = _cost(heard.topology.types, busy_s, prices)
    summary["preemptions"] = int(jobs["preemptions"].sum())
    summary["rho_themis_max"] = _value(rho.max()) if len(rho) else None
    summary["rho_themis_mean"] = _mean(rho)
    return summary


def _cost(types: tuple[str, ...], busy_s: Floats, prices: Mapping[str, float | None]) -> float | None:
    """Return what the busy accelerators cost; None when a type that was used has no price."""
    total = 0.0
    for name, seconds in zip(types, busy_s.tolist(), strict=True):
        price = prices.get(name)
        if seconds > 0 and price is None:
            return None
        total += (price or 0.0) * seconds / HOUR_S
    return total


def _value(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _mean(values: Floats) -> float | None:
    return _value(values.mean()) if len(values) else None


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None
