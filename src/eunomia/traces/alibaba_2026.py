"""Jobs of Alibaba's cluster with spot jobs, 2026, one a line: a trace for simulation, without the starts of jobs.

Accelerators and CPUs are those of one worker. A job is of high priority (HP), or a spot job, which may be stopped at
any time. Times are seconds since the first submission. Published with
J. Duan et al., "GFS: A Preemptive Scheduling Framework for GPU Clusters with Predictive Spot Management", ASPLOS 2026.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.bounds import MOST
from eunomia.inputs.field_rules import SCALE_FACTOR, SPAN, SUBMITTED, WEIGHT, Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.traces.machine_lists.named_nodes import type_name
from eunomia.traces.notes import SHORTEST_S, count_notes
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time",
            "duration", "job_type")  # fmt: skip
OPTIONAL = ()
TENANTS = ("organization", "job_type")
CLASSES = ("HP", "Spot")
PER_WORKER = Rule(
    what=f"a number of accelerators of one worker, 0 to {MOST:,}", least=0.0, most=MOST, fix="write 0 for none"
)
CPUS = Rule(what="a finite number of CPUs of one worker, at least 0", least=0.0, empty=0.0, fix="write 0 for none")
NO_STARTS = "the trace does not say when jobs started: there is no schedule as it was (as_it_was)"
UNITS = "accelerators and CPUs are those of one worker in the file, read as those of all workers"


def read(path: Path, *, tenant: str = "organization", only: str = "", spot_weight: float = 1.0) -> Trace:
    """Return the jobs with accelerators, by submission.

    The `tenant` is the organization, or with job_type the class, HP or Spot, whose figures then stand apart. `only`
    keeps the jobs of one class; `spot_weight` is the weight of spot jobs, those of high priority have 1. Raises
    InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "tenant", tenant, TENANTS)
    one_of(str(path), "only", only, ("", *CLASSES))
    if isinstance(spot_weight, bool) or not isinstance(spot_weight, int | float) or not WEIGHT.allows(spot_weight):
        raise refused(str(path), "spot_weight", spot_weight, f"must be {WEIGHT.what}", "write for example 0.1")
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    each, workers = sheet.number("gpu_request", PER_WORKER), sheet.whole("worker_num", SCALE_FACTOR)
    words = sheet.renamed("job_type", {name: name for name in CLASSES})
    models = sheet.filled("gpu_model")
    by_model = {name: type_name(name) for name in set(models)}
    ran_s = sheet.number("duration", SPAN)
    width = np.ceil(np.nan_to_num(each)) * workers
    sheet.refuse("worker_num", width > MOST, f"makes a job of more than {MOST:,} accelerators", "correct the row")
    is_spot = np.array([word == "Spot" for word in words], dtype=np.bool_)
    trace = trace_of(
        sheet.file,
        sheet.unique("job_name"),
        sheet.number("submit_time", SUBMITTED),
        np.where(width > MOST, 0, width).astype(np.int64),
        duration_s=np.maximum(ran_s, SHORTEST_S),
        tenant=sheet.filled("organization") if tenant == "organization" else words,
        weight=np.where(is_spot, float(spot_weight), 1.0),
        cpus=sheet.number("cpu_request", CPUS) * workers,
        ran_on=tuple(by_model[name] for name in models),
        row=sheet.line,
        unread=_unread(tenant, spot_weight),
        partly=("of gpu_request and worker_num more than their product", "of cpu_request more than its product with "
                "worker_num", "of gpu_model the publisher's spelling"),
    )  # fmt: skip
    sheet.raise_if_any()
    chosen = np.array([not only or word == only for word in words], dtype=np.bool_)
    keep = chosen & (trace.scale_factor > 0)
    notes = count_notes(
        {
            "jobs have no accelerator and are left out": chosen & ~keep,
            f"jobs are not of the class {only} and are left out": ~chosen,
            "jobs ask for parts of accelerators; each part is read as a whole one": keep & (width != each * workers),
            f"jobs have a duration of less than {SHORTEST_S:g} s, read as {SHORTEST_S:g} s": keep
            & (ran_s < SHORTEST_S),
            "jobs are spot jobs, which may be stopped at any time": keep & is_spot,
        }
    )
    if not keep.any():
        raise refused(str(path), "only", only, "no job with accelerators is left", "leave the option out")
    return in_order(replace(trace.take(np.flatnonzero(keep)), notes=(NO_STARTS, UNITS, *notes)))


def _unread(tenant: str, spot_weight: float) -> tuple[str, ...]:
    """Return the columns that the trace does not hold, each with the option that would read it."""
    if tenant == "job_type":
        return ("organization (with --option tenant=organization)",)
    return ("job_type (with --option tenant=job_type, or spot_weight=0.1)",) if spot_weight == 1 else ()
