"""The last events, for the message of an internal error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eunomia.model.decisions import Decision
from eunomia.model.events import JobSubmitted, Moment
from eunomia.model.moment_batch import MomentBatch

Happened = tuple[Moment, Sequence[Decision]] | MomentBatch
MOMENTS = 40  # that are kept
SHOWN = 6  # of what concerns one job


def last_events(moments: Iterable[Happened], job_id: str) -> str:
    """Return the last events and decisions that name a job, in words."""
    found = [
        f"{type(one).__name__} at {moment.at:,.9g} s"
        for entry in moments
        for moment, decisions in (entry if isinstance(entry, MomentBatch) else (entry,))
        for one in (*moment.events, *decisions)
        if _names(one, job_id)
    ]
    return ", ".join(found[-SHOWN:]) or f"none in the last {MOMENTS} moments"


def _names(one: Any, job_id: str) -> bool:
    """Return whether an event or a decision names the job."""
    if isinstance(one, JobSubmitted):
        return one.job.job_id == job_id
    alone = (getattr(one, name, None) for name in ("job_id", "partner_id"))
    many = (getattr(one, name, None) for name in ("job_ids", "jobs", "partners"))
    return job_id in alone or any(job_id in names for names in many if names is not None)
