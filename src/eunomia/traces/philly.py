"""Jobs of Microsoft's Philly clusters, 2017 (M. Jeon et al., USENIX ATC 2019), as one table, a line per job.

The duration is `service_s`, the run time over all attempts. Jobs without it get `span_s`, first start to
last end, which includes the waits between attempts and so is an upper bound. A duration of 0 becomes 1 second.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import SCALE_FACTOR, SPAN, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.inputs.options import flag
from eunomia.inputs.problems import refused
from eunomia.model.arrays import Bools
from eunomia.traces.notes import SHORTEST_S, count_notes
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("job_index", "submit_s", "gpus", "span_s", "service_s", "vc", "status")
OPTIONAL = ("submit_time", "vc_source", "status_source")
SERVICE = replace(SPAN, empty=np.nan, fix="write the run time over all attempts, or leave it empty")
STATUS_BY_WORD = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed", "Unsuccessful": "failed"}
UNKNOWN = "Unsuccessful"  # killed or failed, not recorded which
PASSED = STATUS_BY_WORD["Pass"]


def read(path: Path, *, passed_only: bool = False) -> Trace:
    """Return the trace in a Philly table, by submission; `passed_only` keeps the jobs whose status is Pass.

    Raises InvalidInput with everything that is wrong with the file.
    """
    flag(str(path), "passed_only", passed_only)
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    service_s, span_s = sheet.number("service_s", SERVICE), sheet.number("span_s", SPAN)
    duration_s = np.where(np.isnan(service_s), span_s, service_s)
    trace = trace_of(
        sheet.file,
        sheet.unique("job_index"),
        sheet.number("submit_s", SUBMITTED),
        sheet.whole("gpus", SCALE_FACTOR),
        duration_s=np.where(duration_s == 0, SHORTEST_S, duration_s),
        tenant=sheet.text("vc"),
        status=sheet.renamed("status", STATUS_BY_WORD),
        row=sheet.line,
        began=sheet.beginning("submit_time", "submit_s"),
        unread=sheet.unread("submit_time", *["span_s"] * (not np.isnan(service_s).any())),
        partly=("span_s of jobs that have a service_s",) * (0 < int(np.isnan(service_s).sum()) < len(sheet)),
    )
    sheet.raise_if_any()
    keep = np.array([status == PASSED for status in trace.status]) if passed_only else np.ones(len(trace), np.bool_)
    if not keep.any():
        raise refused(str(path), "passed_only", True, "no job of this file passed", "leave passed_only out")
    unknown = np.array([word == UNKNOWN for word in sheet.text("status")], dtype=np.bool_)
    notes = _notes(trace, keep, np.isnan(service_s), duration_s == 0, unknown)
    return replace(in_order(trace.take(np.flatnonzero(keep))), notes=notes)


def _notes(trace: Trace, keep: Bools, spanned: Bools, zero: Bools, unknown: Bools) -> tuple[str, ...]:
    """Return notes that count the jobs left out, and the jobs kept that were estimated or changed."""
    no_vc = np.array([not tenant for tenant in trace.tenant])
    counts = {
        "jobs did not pass and are left out": ~keep,
        "jobs have no service time: their duration is the span from first start to last end, an upper bound "
        "that includes waits between attempts": keep & spanned,
        f"jobs have a duration of 0 s, read as {SHORTEST_S:g} s": keep & zero,
        "jobs were killed or failed, not known which; they are read as failed": keep & unknown,
        "jobs name no virtual cluster and belong to no tenant": keep & no_vc,
    }
    return count_notes(counts)
