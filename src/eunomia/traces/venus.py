"""GPU jobs of SenseTime's Venus cluster, 2020 (Q. Hu et al., SC 2021), as one table, a line per job.

Durations are cut off at 172,800 s in the published extract. Users and outcomes are known for a part of the jobs, in a
second table that is joined on the job's id.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from eunomia.inputs.field_rules import DURATION, FLAG, SCALE_FACTOR, SUBMITTED
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import refused
from eunomia.traces.notes import clamped_note
from eunomia.traces.table import Trace, in_order, trace_of

REQUIRED = ("job_id", "submit_s", "gpus", "service_s", "clamped")
OPTIONAL = ("log_row", "submit_time")
STATUS_REQUIRED = ("job_id", "user", "status")
STATUS_OPTIONAL = ("row", "submit_time", "submit_s", "gpus", "cpus", "nodes", "run_time_s")
STATUS_BY_WORD = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed"}


def read(path: Path, *, status_file: str | None = None) -> Trace:
    """Return the trace in a Venus table, by submission, with tenant (= user) and status from `status_file` if named.

    A relative `status_file` starts at the trace's folder. Raises InvalidInput with everything that is wrong with the
    trace, or else with the status table.
    """
    if not isinstance(status_file, str | Path | None):
        raise refused(str(path), "status_file", status_file, "must be the path of a file", "write it in quotes")
    sheet = read_table(path)
    sheet.expect(REQUIRED, OPTIONAL)
    clamped = sheet.number("clamped", FLAG)
    trace = trace_of(
        sheet.file,
        sheet.unique("job_id"),
        sheet.number("submit_s", SUBMITTED),
        sheet.whole("gpus", SCALE_FACTOR),
        duration_s=sheet.number("service_s", DURATION),
        row=sheet.line,
        began=sheet.beginning("submit_time", "submit_s"),
        unread=sheet.unread("clamped", "submit_time"),
    )
    sheet.raise_if_any()
    trace = replace(trace, notes=clamped_note(trace.duration_s, clamped))
    return in_order(trace if status_file is None else _join_status(trace, path.parent / status_file))


def _join_status(trace: Trace, path: Path) -> Trace:
    """Return the trace with the users and outcomes of the status table."""
    sheet = read_table(path)
    sheet.expect(STATUS_REQUIRED, STATUS_OPTIONAL)
    has_id = ~sheet.empty("job_id")  # jobs without accelerators have no id there
    words, users, ids = sheet.renamed("status", STATUS_BY_WORD), sheet.filled("user"), sheet.distinct("job_id")
    sheet.raise_if_any()
    by_id = {ids[m]: (users[m], words[m]) for m in np.flatnonzero(has_id).tolist()}
    pairs = [by_id.get(job_id, ("", "")) for job_id in trace.job_id]
    known = sum(job_id in by_id for job_id in trace.job_id)
    return replace(
        trace,
        tenant=tuple(user for user, _ in pairs),
        status=tuple(word for _, word in pairs),
        unread=(*trace.unread, *(f"{name} of {path.name}" for name in sheet.unread())),
        notes=(*trace.notes, f"{known:,} of {len(trace):,} jobs have a user and a status"),
    )
