"""Jobs of a Helios cluster as SenseTime published them, 2020 (Q. Hu et al., SC 2021): `cluster_log.csv`.

Times are local dates; seconds are counted from the first submission. Jobs without accelerators are left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eunomia.inputs.field_rules import ACCELERATORS, DEMAND, SPAN
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import one_of
from eunomia.inputs.timestamps import since_first
from eunomia.traces.notes import drop_cpu_jobs, replace_zero_durations
from eunomia.traces.table import Trace, trace_of

REQUIRED = ("job_id", "user", "vc", "gpu_num", "state", "submit_time", "duration")
OPTIONAL = ("cpu_num", "node_num", "start_time", "end_time", "queue")
STATUS_BY_WORD = {
    "COMPLETED": "finished",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
}
MERGED = ("TIMEOUT", "NODE_FAIL")  # a trace says only that these failed
TENANTS = ("vc", "user")
OPTIONS = {name: f"tenant={name}" for name in TENANTS}


def read(path: Path, *, tenant: str = "vc") -> Trace:
    """Return the trace, by submission; the `tenant` of a job is its virtual cluster (vc) or its user.

    Raises InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "tenant", tenant, TENANTS)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    (submitted_s, began), gpus = since_first(sheet.moment("submit_time")), sheet.whole("gpu_num", ACCELERATORS)
    ran_s = sheet.number("duration", SPAN)
    trace = trace_of(
        sheet.file,
        sheet.unique("job_id"),
        submitted_s,
        gpus,
        duration_s=replace_zero_durations(ran_s)[0],
        tenant=sheet.filled(tenant),
        status=sheet.renamed("state", STATUS_BY_WORD),
        row=sheet.line,
        began=began,
        cpus=sheet.number("cpu_num", DEMAND),
        unread=sheet.unread(instead=OPTIONS),
    )
    sheet.raise_if_any()
    merged = [word for word in MERGED if word in sheet.text("state")]
    trace = replace(trace, partly=(f"of state {' and '.join(merged)}: they become failed",) * bool(merged))
    return drop_cpu_jobs(trace, ran_s, "gpu_num")
