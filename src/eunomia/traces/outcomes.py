"""Jobs of a cluster with users and outcomes, as extracted from the logs of Philly and of Venus, a line per job.

Times are written as local dates; seconds are counted from the first. Jobs without accelerators are left out.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import ACCELERATORS, DEMAND, SPAN
from eunomia.inputs.open_table import read_table
from eunomia.inputs.timestamps import since_first
from eunomia.traces.notes import drop_cpu_jobs, replace_zero_durations
from eunomia.traces.table import Trace, trace_of

REQUIRED = ("row", "submit_time", "user", "gpus", "nodes", "run_time_s", "status")
OPTIONAL = ("submit_s", "cpus", "job_id", "job_index")
STATUS_BY_WORD = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed"}


def read(path: Path) -> Trace:
    """Return the trace, by submission, with the user as tenant. Raises InvalidInput with all that is wrong with it."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    (submitted_s, began), gpus = since_first(sheet.moment("submit_time")), sheet.whole("gpus", ACCELERATORS)
    ran_s = sheet.number("run_time_s", SPAN)
    trace = trace_of(
        sheet.file,
        sheet.unique("row"),
        submitted_s,
        gpus,
        duration_s=replace_zero_durations(ran_s)[0],
        tenant=sheet.filled("user"),
        status=sheet.renamed("status", STATUS_BY_WORD),
        row=sheet.line,
        began=began,
        cpus=sheet.number("cpus", DEMAND),
        unread=sheet.unread(),
    )
    sheet.raise_if_any()
    return drop_cpu_jobs(trace, ran_s, "gpus")
