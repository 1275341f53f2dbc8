"""What users wanted of their jobs, and whether they got it: pauses, cancellations, deadlines.

A job has missed its deadline when it had not finished by then: it finished later, failed, was refused, or was still
there at its deadline. One that its user cancelled before its deadline has missed none.
"""

from __future__ import annotations

import math

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.job_timelines import CANCELLED, FAILED, REJECTED
from eunomia.model.arrays import Array


def of_jobs(heard: MetricsCollector) -> dict[str, Array]:
    """Return columns of jobs.csv of a run that is over."""
    status, ended = heard.column("status"), heard.column("ended")
    deadline = np.array([job.deadline for job in heard.jobs], dtype=float)
    until = np.where(np.isnan(ended), np.nextafter(heard.end_s, math.inf), ended)  # still there at the end of the run
    missed = (until > deadline) | np.isin(status, (FAILED, REJECTED))
    who = np.where(status == CANCELLED, "user", "").astype(object)
    who[[row for row in heard.given_up if status[row] == CANCELLED]] = "tuner"
    has = np.isfinite(deadline)
    return {
        "paused_s": heard.pauses.seconds(heard.end_s, len(heard.jobs)),
        "cancelled_by": who,
        "deadline_s": np.where(has, deadline, np.nan),
        "deadline_missed": np.where(has, missed.astype(float), np.nan),
    }
