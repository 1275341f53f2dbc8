"""The metrics that are shipped: fields of summary.json from the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eunomia.metrics.fairness import jain
from eunomia.metrics.summary import Numbers, RunTables
from eunomia.metrics.waits import COLUMNS
from eunomia.model.arrays import Array, Bools, Floats
from eunomia.model.tolerance import is_at_most

LOSS, BENEFIT = 0.95, 1.05  # LTGF below and above which ASTRAEA's artifact counts a loss and a benefit of sharing
HOUR_S = 3600.0
ENDS = ("finished", "failed", "cancelled", "rejected", "unfinished")


def completion(run: RunTables) -> Numbers:
    """Return counts of jobs by end, times of finished jobs, and their makespan."""
    jobs, status = run.jobs, run.jobs["status"]
    done = status == "finished"
    jct, finished = jobs["jct_s"][done], jobs["finished_s"][done]
    waits = (jobs["first_started_s"] - eligible_s(jobs))[~np.isnan(jobs["first_started_s"])]
    numbers: Numbers = {"jobs_submitted": len(status)}
    numbers |= {f"jobs_{name}": int((status == name).sum()) for name in ENDS}
    numbers["jct_mean_s"] = mean(jct)
    for percent in (50, 95, 99):
        numbers[f"jct_p{percent}_s"] = float(np.percentile(jct, percent)) if len(jct) else None
    numbers["queueing_mean_s"] = mean(waits)
    if "wait_not_eligible_s" in jobs:
        numbers["not_eligible_mean_s"] = mean(jobs["wait_not_eligible_s"])
    numbers["total_wait_mean_s"] = mean(jobs["total_wait_s"][status != "rejected"])
    numbers["makespan_s"] = float(finished.max() - jobs["submitted_s"].min()) if len(finished) else None
    return numbers


def eligible_s(jobs: Mapping[str, Array]) -> Floats:
    """Return (job,) when each job was eligible to start: its submission, unless the trace says otherwise."""
    submitted = jobs["submitted_s"]
    return np.asarray(submitted + jobs["wait_not_eligible_s"]) if "wait_not_eligible_s" in jobs else submitted


def utilization(run: RunTables) -> Numbers:
    """Return busy over available accelerator-seconds, and the cost of the busy ones in US$."""
    numbers: Numbers = {"end_s": run.end_s, "utilization": _ratio(run.busy_s.sum(), run.available_s.sum())}
    for j, name in enumerate(run.types):
        numbers[f"utilization_{name}"] = _ratio(run.busy_s[j], run.available_s[j])
    return numbers | {"cost_usd": _cost(run)}


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _cost(run: RunTables) -> float | None:
    """Return the cost of the busy accelerators, US$; None when a type that was used has no price."""
    total = 0.0
    for name, seconds in zip(run.types, run.busy_s.tolist(), strict=True):
        price = run.prices.get(name)
        if seconds > 0 and price is None:
            return None
        total += (price or 0.0) * seconds / HOUR_S
    return total


def service(run: RunTables) -> Numbers:
    """Return preemptions, fairness, waits by cause and deadlines of jobs."""
    jobs = run.jobs
    done = jobs["status"] == "finished"
    rho = jobs["rho_themis"][_first_of_apps(jobs["app"])]
    rho = rho[~np.isnan(rho)]
    numbers: Numbers = {"preemptions": int(jobs["preemptions"].sum())}
    numbers["rho_themis_max"] = float(rho.max()) if len(rho) else None
    numbers["rho_themis_mean"] = mean(rho)
    numbers["sharing_loss_apps"] = int((~is_at_most(rho, 1 / LOSS)).sum())
    numbers["jain_rho"] = float(jain(rho))
    numbers["rho_isolated_max"] = float(jobs["rho_isolated"][done].max()) if done.any() else None
    numbers["rho_astraea_max"] = float(jobs["rho_astraea"][done].max()) if done.any() else None
    numbers["slowdown_mean"] = mean(jobs["slowdown"][done])
    numbers["sharing_loss_jobs"] = int((jobs["ltgf"] < LOSS).sum())
    numbers["sharing_benefit_jobs"] = int((jobs["ltgf"] > BENEFIT).sum())
    numbers |= {name: float(jobs[name].sum()) for name in COLUMNS}
    numbers["jobs_cancelled_by_tuner"] = int((jobs["cancelled_by"] == "tuner").sum())
    missed = jobs["deadline_missed"][~np.isnan(jobs["deadline_missed"])]
    numbers["deadlines_missed"] = int(missed.sum()) if len(missed) else None
    return numbers


def of_apps(run: RunTables) -> Numbers:
    """Return the fields about apps; None without apps."""
    if not run.apps:
        return dict.fromkeys(("apps_submitted", "apps_finished", "apps_without_model", "app_jct_mean_s"))
    jct = run.apps["jct_s"][~np.isnan(run.apps["jct_s"])]
    return {
        "apps_submitted": len(run.apps["jct_s"]),
        "apps_finished": len(jct),
        "apps_without_model": run.empty_apps,
        "app_jct_mean_s": mean(jct),
    }


def of_tenants(run: RunTables) -> Numbers:
    """Return the largest LTGF of a tenant over the smallest; None with fewer than two that deserved any."""
    ltgf = run.tenants["ltgf"][~np.isnan(run.tenants["ltgf"])]
    several = len(ltgf) > 1 and ltgf.min() > 0
    return {"max_min_ratio": float(ltgf.max() / ltgf.min()) if several else None}


def _first_of_apps(app: Array) -> Bools:
    """Return whether each job is the first of its app, (job,); a job without an app is an app of its own."""
    first: dict[str, int] = {}
    return np.array([not name or first.setdefault(name, m) == m for m, name in enumerate(app.tolist())], dtype=bool)


def mean(values: Floats) -> float | None:
    """Return the average, or None without values."""
    return float(values.mean()) if len(values) else None
