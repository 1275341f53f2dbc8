"""Philly's own job log, `cluster_job_log`: JSON, a list with one object per job (M. Jeon et al., USENIX ATC 2019).

A job's attempts have times and accelerators. Its duration is the sum of the run times of its attempts, its size that of
its widest attempt. An attempt without a start or an end has no run time: it was not logged, or still ran. In messages a
row is the number of the job in the list, counted from 1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.field_rules import ACCELERATORS, SPAN
from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.json_text import read_json
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import SHOWN, refused
from eunomia.inputs.table import LONGEST, InputTable
from eunomia.inputs.timestamps import since_first
from eunomia.model.arrays import Floats
from eunomia.traces.notes import count_notes, replace_zero_durations
from eunomia.traces.table import Trace, in_order, trace_of

JSON = True  # detected by the first character
REQUIRED = ("jobid", "submitted_time", "vc", "status", "attempts")
OPTIONAL = ("user",)
STATUS_BY_WORD = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed"}
TENANTS = ("vc", "user")
OPTIONS = {name: f"tenant={name}" for name in TENANTS}
ATTEMPTS = ("run_time_s", "gpus", "unlogged", "backward")  # sums over the attempts of a job


def read(path: Path, *, tenant: str = "vc") -> Trace:
    """Return the trace, by submission; the `tenant` of a job is its virtual cluster (vc) or its user.

    Raises InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "tenant", tenant, TENANTS)
    jobs = _load_jobs(path)
    sheet = _build_sheet(path, jobs)
    sheet.expect([*REQUIRED, tenant], [*OPTIONAL, *ATTEMPTS])
    ran_s, unlogged = sheet.number("run_time_s", SPAN), sheet.whole("unlogged", ACCELERATORS)
    backward = sheet.whole("backward", ACCELERATORS) > 0
    trace = _read_trace(sheet, tenant, ran_s)
    sheet.raise_if_any()
    never = (trace.scale_factor == 0) | ((ran_s == 0) & (unlogged > 0))
    if never.all():
        raise refused(str(path), "attempts", None, "no job of this log has an attempt with times", "name another file")
    notes = count_notes(
        {
            "jobs have no attempt with times and accelerators and are left out": never,
            "jobs have attempts whose times are not logged whole; those count nothing": ~never & (unlogged > 0),
            "jobs have attempts that end before they start, as clocks were changed; those count 0 s": backward,
            "jobs have a duration of 0 s, read as 1 s": ~never & (ran_s == 0),
        }
    )
    ran = replace(trace.take(np.flatnonzero(~never)), notes=notes, unread=(*trace.unread, *_list_unread_keys(jobs)))
    return in_order(ran)


def _read_trace(sheet: InputTable, tenant: str, ran_s: Floats) -> Trace:
    """Return a trace of every job of the log, including jobs that never ran."""
    submitted_s, began = since_first(sheet.moment("submitted_time"))
    return trace_of(
        sheet.file,
        sheet.unique("jobid"),
        submitted_s,
        sheet.whole("gpus", ACCELERATORS),
        duration_s=replace_zero_durations(ran_s)[0],
        tenant=sheet.filled(tenant),
        status=sheet.renamed("status", STATUS_BY_WORD),
        row=sheet.line,
        began=began,
        unread=tuple(other for other in sheet.unread(instead=OPTIONS) if other != "attempts"),
        partly=("of attempts more than the sum of their run times and the accelerators of the widest",),
    )


def _load_jobs(path: Path) -> list[Any]:
    """Return the list in the file."""
    text = decoded(str(path), contents(path)) or "[]"
    jobs = read_json(str(path), text, "copy or download it again", unique=False)
    if not isinstance(jobs, list):
        raise refused(str(path), None, None, "the log must be a list of jobs", "write [ … ] around the jobs")
    return jobs


def _build_sheet(path: Path, jobs: list[Any]) -> InputTable:
    """Return a row per job with the sums of its attempts; invalid jobs and attempts are noted as problems."""
    objects = [job if isinstance(job, dict) else {} for job in jobs]
    names = [name for name in (*REQUIRED, *OPTIONAL) if any(name in job for job in objects)]
    sheet = InputTable(
        file=str(path),
        header_line=1,
        line=np.arange(1, len(jobs) + 1),
        columns={name: tuple(_cell(job.get(name)) for job in objects) for name in names},
    )
    for name in ("jobid", "vc", "user"):
        nested = np.array([isinstance(job.get(name), list | dict | bool) for job in objects], dtype=np.bool_)
        sheet.refuse(name, nested, "must be text", "write it in quotes, and nothing around it")
    sums = []
    for row, job in enumerate(objects, start=1):
        try:
            sums.append(_sum_attempts(job.get("attempts", [])))
        except (TypeError, ValueError, KeyError, AttributeError):
            sums.append(("", "", "", ""))
            rule = "must be a list of attempts with start_time, end_time and detail, and gpus a list of names in it"
            fix = "write it as published"
            sheet.note(row, "attempts", _cell(job.get("attempts")), rule, fix)
    good = [cells if cells[0] else ("0", "0", "0", "0") for cells in sums]
    sheet.columns |= dict(zip(ATTEMPTS, zip(*good, strict=True), strict=True)) if good else {}
    return sheet


def _list_unread_keys(jobs: list[Any]) -> list[str]:
    """Return the keys of jobs that are not read: the first SHOWN, then a count of the others."""
    keys = {key: None for job in jobs for key in job if key not in (*REQUIRED, *OPTIONAL)}
    more = [f"and {len(keys) - SHOWN:,} more"] * (len(keys) > SHOWN)
    return [*(json.dumps(key)[1:-1][:LONGEST] for key in list(keys)[:SHOWN]), *more]


def _cell(value: object) -> str:
    """Return a value as the text of a cell; "" for null."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _sum_attempts(attempts: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of ATTEMPTS: run time in s, accelerators, attempts without both times, negative spans."""
    spans = [_span_s(attempt.get("start_time"), attempt.get("end_time")) for attempt in attempts]
    sizes = [sum(_count_gpus(machine["gpus"]) for machine in attempt["detail"]) for attempt in attempts]
    logged = [span for span in spans if span is not None]
    run_time_s = sum(max(span, 0.0) for span in logged)
    return (
        repr(run_time_s),
        str(max(sizes, default=0)),
        str(len(spans) - len(logged)),
        str(sum(span < 0 for span in logged)),
    )


def _count_gpus(gpus: object) -> int:
    """Return the length of a list of accelerators. Raises TypeError for anything else, such as a text."""
    if not isinstance(gpus, list):
        raise TypeError(gpus)
    return len(gpus)


def _span_s(start: str | None, end: str | None) -> float | None:
    """Return the seconds between two dates; None if one of them is not logged."""
    if start in (None, "None", "") or end in (None, "None", ""):
        return None
    return (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds()
