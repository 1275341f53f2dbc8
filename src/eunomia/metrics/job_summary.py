"""The fields of summary.json about jobs, apps and tenants, from the columns of the CSV files."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from eunomia.metrics.fairness import jain
from eunomia.metrics.waits import COLUMNS
from eunomia.model.arrays import Array, Bools, Floats

LOSS, BENEFIT = 0.95, 1.05  # LTGF below and above which ASTRAEA's artifact counts a loss and a benefit of sharing
ENDS = ("finished", "failed", "cancelled", "rejected", "unfinished")


def job_numbers(jobs: Mapping[str, Array]) -> dict[str, float | int | None]:
    """Return the fields about jobs; None = no value. Completion times and makespan are of finished jobs."""
    status = jobs["status"]
    done = status == "finished"
    jct, finished = jobs["jct_s"][done], jobs["finished_s"][done]
    waits = (jobs["first_started_s"] - jobs["submitted_s"])[~np.isnan(jobs["first_started_s"])]
    rho = jobs["rho_themis"][_first_of_apps(jobs["app"])]
    rho = rho[~np.isnan(rho)]
    numbers: dict[str, float | int | None] = {"jobs_submitted": len(status)}
    numbers |= {f"jobs_{name}": int((status == name).sum()) for name in ENDS}
    numbers["jct_mean_s"] = mean(jct)
    for percent in (50, 95, 99):
        numbers[f"jct_p{percent}_s"] = value(np.percentile(jct, percent)) if len(jct) else None
    numbers["queueing_mean_s"] = mean(waits)
    numbers["makespan_s"] = value(finished.max() - jobs["submitted_s"].min()) if len(finished) else None
    numbers["preemptions"] = int(jobs["preemptions"].sum())
    numbers["rho_themis_max"] = value(rho.max()) if len(rho) else None
    numbers["rho_themis_mean"] = mean(rho)
    numbers["jain_rho"] = value(jain(rho))
    numbers["rho_isolated_max"] = value(jobs["rho_isolated"][done].max()) if done.any() else None
    numbers["rho_astraea_max"] = value(jobs["rho_astraea"][done].max()) if done.any() else None
    numbers["slowdown_mean"] = mean(jobs["slowdown"][done])
    numbers["sharing_loss_jobs"] = int((jobs["ltgf"] < LOSS).sum())
    numbers["sharing_benefit_jobs"] = int((jobs["ltgf"] > BENEFIT).sum())
    numbers |= {name: value(jobs[name].sum()) for name in COLUMNS}
    numbers["jobs_cancelled_by_tuner"] = int((jobs["cancelled_by"] == "tuner").sum())
    missed = jobs["deadline_missed"][~np.isnan(jobs["deadline_missed"])]
    numbers["deadlines_missed"] = int(missed.sum()) if len(missed) else None
    return numbers


def app_numbers(apps: Mapping[str, Array], empty: int) -> dict[str, float | int | None]:
    """Return the fields about apps, from the columns of apps.csv; None without apps.

    `empty` counts apps whose search ended without a model.
    """
    if not apps:
        return dict.fromkeys(("apps_submitted", "apps_finished", "apps_without_model", "app_jct_mean_s"))
    jct = apps["jct_s"][~np.isnan(apps["jct_s"])]
    return {
        "apps_submitted": len(apps["jct_s"]),
        "apps_finished": len(jct),
        "apps_without_model": empty,
        "app_jct_mean_s": mean(jct),
    }


def tenant_numbers(tenants: Mapping[str, Array]) -> dict[str, float | int | None]:
    """Return the fields about tenants, from the columns of tenants.csv; None with fewer than two that deserved any."""
    ltgf = tenants["ltgf"][~np.isnan(tenants["ltgf"])]
    several = len(ltgf) > 1 and ltgf.min() > 0
    return {"max_min_ratio": value(ltgf.max() / ltgf.min()) if several else None}


def _first_of_apps(app: Array) -> Bools:
    """Return whether each job is the first of its app, (job,); a job without an app is an app of its own."""
    first: dict[str, int] = {}
    return np.array([not name or first.setdefault(name, m) == m for m, name in enumerate(app.tolist())], dtype=bool)


def value(number: float) -> float | None:
    """Return a finite number, or None."""
    return float(number) if math.isfinite(number) else None


def mean(values: Floats) -> float | None:
    """Return the average, or None without values."""
    return value(values.mean()) if len(values) else None
