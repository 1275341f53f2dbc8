"""Jobs of a Helios cluster as SenseTime published them, 2020 (Q. Hu et al., SC 2021): `cluster_log.csv`.

Times are local dates; seconds are counted from the first submission. Jobs without accelerators are left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import ACCELERATORS, DEMAND, SPAN
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import date_at
from eunomia.traces.notes import counted, lasting
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration")
OPTIONAL = ("cpu_num", "node_num", "start_time", "end_time", "queue")
STATUS_BY_WORD = {
    "COMPLETED": "finished",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
}
MERGED = ("TIMEOUT", "NODE_FAIL")  # of which a trace says no more than that they failed
TENANTS = ("vc", "user")
OPTIONS = {name: f"tenant={name}" for name in TENANTS}


def read(path: Path, *, tenant: str = "vc") -> Trace:
    """Return the trace, by submission; the `tenant` of a job is its virtual cluster (vc) or its user.

    Raises InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "tenant", tenant, TENANTS)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    at, gpus = sheet.moment("submit_time"), sheet.whole("gpu_num", ACCELERATORS)
    first = float(np.nanmin(at)) if np.isfinite(at).any() else 0.0
    ran_s = sheet.number("duration", SPAN)
    duration_s, _ = lasting(ran_s)
    trace = trace_of(
        sheet.file,
        sheet.unique("job_id"),
        at - first,
        gpus,
        duration_s=duration_s,
        tenant=sheet.filled(tenant),
        status=sheet.renamed("state", STATUS_BY_WORD),
        row=sheet.line,
        began=date_at(first),
        cpus=sheet.number("cpu_num", DEMAND),
        unread=sheet.unread(instead=OPTIONS),
    )
    sheet.raise_if_any()
    merged = [word for word in MERGED if word in sheet.text("state")]
    trace = replace(trace, partly=(f"of state {' and '.join(merged)}: they become failed",) * bool(merged))
    keep = gpus > 0
    if not keep.any():
        raise refused(str(path), "gpu_num", 0, "no job of this file has an accelerator", "name another file")
    notes = counted(
        {
            "jobs have no accelerator and are left out": ~keep,
            "jobs have a duration of 0 s, read as 1 s": keep & (ran_s == 0),
        }
    )
    return in_order(replace(trace.take(np.flatnonzero(keep)), notes=notes))
