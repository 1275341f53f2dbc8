"""A job of a user as the scheduling core knows it."""

from __future__ import annotations

from eunomia.model.events import Estimated
from eunomia.model.job import Job
from eunomia.model.job_kind import JobKind
from eunomia.service.job_document import declared_end
from eunomia.service.job_row import JobRow


def estimated_event(row: JobRow) -> Estimated:
    """Return what is believed of the run time of a job that declares none."""
    run_s, low_s, high_s, count = row.estimate
    return Estimated(row.id, run_s, low_s, high_s, int(count))


def core_job(row: JobRow) -> Job:
    """Return the job of a row as the core knows it."""
    spec = row.spec
    return Job(
        job_id=row.id,
        total_steps=row.total_steps,
        submitted=row.submitted,
        sequence=row.number,
        scale_factor=spec.get("accelerators", 1),
        job_type=str(JobKind(spec.get("job_type", ""), tuple(spec.get("types", ())), row.memory_gib)),
        other_shapes=row.other_shapes,
        tenant=row.tenant,
        app=spec.get("app", ""),
        weight=spec.get("weight", 1.0),
        deadline=declared_end(spec, row.submitted),
        cpus=spec.get("cpus", 0.0),
        memory_gib=spec.get("memory_gib", 0.0),
        retries=spec.get("retries", 0),
        debug=spec.get("debug", False),
        interruptible=row.can_save,
        restart_within_s=row.restart_within_s,
    )
