"""The numbers of summary.json that are about jobs, from the columns of jobs.csv: of all jobs, or of those measured."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from eunomia.model.arrays import Array, Floats

ENDS = ("finished", "failed", "cancelled", "rejected", "unfinished")


def job_numbers(jobs: Mapping[str, Array]) -> dict[str, float | int | None]:
    """Return the numbers; what has no value is None. Completion times and makespan are of finished jobs."""
    status = jobs["status"]
    done = status == "finished"
    jct, finished = jobs["jct_s"][done], jobs["finished_s"][done]
    waits = (jobs["first_started_s"] - jobs["submitted_s"])[~np.isnan(jobs["first_started_s"])]
    rho = jobs["rho_themis"][~np.isnan(jobs["rho_themis"])]
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
    return numbers


def value(number: float) -> float | None:
    """Return a finite number, or None."""
    return float(number) if math.isfinite(number) else None


def mean(values: Floats) -> float | None:
    """Return the average, or None of nothing."""
    return value(values.mean()) if len(values) else None
