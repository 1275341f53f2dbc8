"""Jobs of a cluster with users and outcomes, as extracted from the logs of Philly and of Venus, a line per job.

Times are written as local dates; seconds are counted from the first. Jobs without accelerators are left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import ACCELERATORS, DEMAND, SPAN
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import date_at
from eunomia.traces.notes import counted, lasting
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("row", "submit_time", "user", "gpus", "nodes", "run_time_s", "status")
OPTIONAL = ("submit_s", "cpus", "job_id", "job_index")
STATUS_BY_WORD = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed"}


def read(path: Path) -> Trace:
    """Return the trace, by submission, with the user as tenant. Raises InvalidInput with all that is wrong with it."""
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    at, gpus = sheet.moment("submit_time"), sheet.whole("gpus", ACCELERATORS)
    first = float(np.nanmin(at)) if np.isfinite(at).any() else 0.0
    ran_s = sheet.number("run_time_s", SPAN)
    duration_s, _ = lasting(ran_s)
    trace = trace_of(
        sheet.file,
        sheet.unique("row"),
        at - first,
        gpus,
        duration_s=duration_s,
        tenant=sheet.filled("user"),
        status=sheet.renamed("status", STATUS_BY_WORD),
        row=sheet.line,
        began=date_at(first),
        cpus=sheet.number("cpus", DEMAND),
        unread=sheet.unread(),
    )
    sheet.raise_if_any()
    keep = gpus > 0
    if not keep.any():
        raise refused(str(path), "gpus", 0, "no job of this file has an accelerator", "name another file")
    notes = counted(
        {
            "jobs have no accelerator and are left out": ~keep,
            "jobs have a duration of 0 s, read as 1 s": keep & (ran_s == 0),
        }
    )
    return in_order(replace(trace.take(np.flatnonzero(keep)), notes=notes))
