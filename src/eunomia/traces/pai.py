"""Tasks of Alibaba's PAI cluster, 2020 (Q. Weng et al., NSDI 2022), as one table, a line per task.

The table is a random sample of the tasks that ended well. A time is the task's start: how long it queued is not
recorded. Sizes count instances, each part of an accelerator rounded up to a whole one. Tasks of one job share an app.
"""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.field_rules import DURATION, FLAG, SCALE_FACTOR, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.traces.notes import clamped_note
from eunomia.traces.table import Trace, build_trace

REQUIRED = ("task_row", "job_name", "start_s", "gpus", "service_s", "clamped")
OPTIONAL = ("task_name",)
NOTES = (
    "submission times are the starts of the tasks: their waits in the queue are not recorded",
    "sizes are the number of instances with each part of an accelerator rounded up to one, so demand is inflated",
    "the table is a sample of tasks that ended well; scale the cluster down to match",
)


def read(path: Path) -> Trace:
    """Return the trace, by start. Raises InvalidInput with everything that is wrong with the file."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    clamped, duration_s = sheet.number("clamped", FLAG), sheet.number("service_s", DURATION)
    return build_trace(
        sheet,
        sheet.unique("task_row"),
        sheet.number("start_s", SUBMITTED),
        sheet.whole("gpus", SCALE_FACTOR),
        duration_s=duration_s,
        app=sheet.filled("job_name"),
        status=("finished",) * len(sheet),
        unread=sheet.unread("clamped"),
        notes=(*NOTES, *clamped_note(duration_s, clamped)),
    )
