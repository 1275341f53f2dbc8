"""Philly's own job log, `cluster_job_log`: JSON, a list with one object per job (M. Jeon et al., USENIX ATC 2019).

A job's attempts say when they ran and on which accelerators. Its duration is the sum of its attempts' run times, its
size that of its widest attempt. An attempt without a start or an end says nothing of time: it was not logged, or still
ran. In messages a row is the number of the job in the list, counted from 1.
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
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import SHOWN, InvalidInput, Problem, refused
from eunomia.inputs.table import LONGEST, InputTable
from eunomia.inputs.timestamps import date_at
from eunomia.model.arrays import Floats
from eunomia.traces.notes import counted, lasting
from eunomia.traces.table import Trace, in_order, trace_of

JSON = True  # told by its first character
REQUIRED = ("jobid", "submitted_time", "vc", "status", "attempts")
OPTIONAL = ("user",)
STATUS_BY_WORD = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed"}
TENANTS = ("vc", "user")
OPTIONS = {name: f"tenant={name}" for name in TENANTS}
ATTEMPTS = ("run_time_s", "gpus", "unlogged", "backward")  # what the attempts of a job come down to


def read(path: Path, *, tenant: str = "vc") -> Trace:
    """Return the trace, by submission; the `tenant` of a job is its virtual cluster (vc) or its user.

    Raises InvalidInput with everything that is wrong with the file.
    """
    one_of(str(path), "tenant", tenant, TENANTS)
    jobs = _jobs(path)
    sheet = _sheet(path, jobs)
    sheet.expect([*REQUIRED, tenant], [*OPTIONAL, *ATTEMPTS])
    ran_s, unlogged = sheet.number("run_time_s", SPAN), sheet.whole("unlogged", ACCELERATORS)
    backward = sheet.whole("backward", ACCELERATORS) > 0
    trace = _trace(sheet, tenant, ran_s)
    sheet.raise_if_any()
    never = (trace.scale_factor == 0) | ((ran_s == 0) & (unlogged > 0))
    if never.all():
        raise refused(str(path), "attempts", None, "no job of this log has an attempt with times", "name another file")
    notes = counted(
        {
            "jobs have no attempt with times and accelerators and are left out": never,
            "jobs have attempts whose times are not logged whole; those count nothing": ~never & (unlogged > 0),
            "jobs have attempts that end before they start, as clocks were changed; those count 0 s": backward,
            "jobs have a duration of 0 s, read as 1 s": ~never & (ran_s == 0),
        }
    )
    left = replace(trace.take(np.flatnonzero(~never)), notes=notes, unread=(*trace.unread, *_others(jobs)))
    return in_order(left)


def _trace(sheet: InputTable, tenant: str, ran_s: Floats) -> Trace:
    """Return a trace with every job of the log, those that never ran too."""
    at = sheet.moment("submitted_time")
    first = float(np.nanmin(at)) if np.isfinite(at).any() else 0.0
    return trace_of(
        sheet.file,
        sheet.unique("jobid"),
        at - first,
        sheet.whole("gpus", ACCELERATORS),
        duration_s=lasting(ran_s)[0],
        tenant=sheet.filled(tenant),
        status=sheet.renamed("status", STATUS_BY_WORD),
        row=sheet.line,
        began=date_at(first),
        unread=tuple(other for other in sheet.unread(instead=OPTIONS) if other != "attempts"),
        partly=("of attempts more than the sum of their run times and the accelerators of the widest",),
    )


def _jobs(path: Path) -> list[Any]:
    """Return the list in the file."""
    try:
        found = json.loads(decoded(str(path), contents(path)) or "[]")
    except RecursionError:
        raise refused(str(path), None, None, "the JSON is nested too deeply", "write a list of jobs") from None
    except json.JSONDecodeError as error:
        rule, fix = f"this is not JSON ({error.msg})", "copy or download it again"
        raise InvalidInput([Problem(file=str(path), row=error.lineno, rule=rule, fix=fix)]) from None
    except ValueError as error:  # a number of thousands of digits
        raise refused(str(path), None, None, f"the JSON cannot be read ({error})", "write a list of jobs") from None
    if not isinstance(found, list):
        raise refused(str(path), None, None, "the log must be a list of jobs", "write [ … ] around the jobs")
    return found


def _sheet(path: Path, jobs: list[Any]) -> InputTable:
    """Return a row per job, its attempts summed up; a job or an attempt that is none is noted."""
    known = [job if isinstance(job, dict) else {} for job in jobs]
    names = [name for name in (*REQUIRED, *OPTIONAL) if any(name in job for job in known)]
    sheet = InputTable(
        file=str(path),
        header_line=1,
        line=np.arange(1, len(jobs) + 1),
        columns={name: tuple(_text(job.get(name)) for job in known) for name in names},
    )
    for name in ("jobid", "vc", "user"):
        nested = np.array([isinstance(job.get(name), list | dict | bool) for job in known], dtype=np.bool_)
        sheet.refuse(name, nested, "must be text", "write it in quotes, and nothing around it")
    for name, cells in sheet.columns.items():
        broken = np.array([not _writable(cell) for cell in cells], dtype=np.bool_)
        sheet.refuse(name, broken, "must be text; this holds half of a surrogate pair", "write the character whole")
    summed = []
    for row, job in enumerate(known, start=1):
        try:
            summed.append(_summed(job.get("attempts", [])))
        except (TypeError, ValueError, KeyError, AttributeError):
            summed.append(("", "", "", ""))
            rule = "must be a list of attempts with start_time, end_time and detail, and gpus a list of names in it"
            fix = "write it as published"
            sheet.note(row, "attempts", _text(job.get("attempts")), rule, fix)
    good = [cells if cells[0] else ("0", "0", "0", "0") for cells in summed]
    sheet.columns |= dict(zip(ATTEMPTS, zip(*good, strict=True), strict=True)) if good else {}
    return sheet


def _others(jobs: list[Any]) -> list[str]:
    """Return the keys of jobs that nobody reads; where there are many the first ones, and how many there are."""
    found = {key: None for job in jobs for key in job if key not in (*REQUIRED, *OPTIONAL)}
    more = [f"and {len(found) - SHOWN:,} more"] * (len(found) > SHOWN)
    return [*(json.dumps(key)[1:-1][:LONGEST] for key in list(found)[:SHOWN]), *more]


def _text(value: object) -> str:
    """Return a value as a cell; nothing for null."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _writable(cell: str) -> bool:
    """Say whether a cell is text that can be written; JSON can spell what is none."""
    return cell.isascii() or not any("\ud800" <= character <= "\udfff" for character in cell)


def _summed(attempts: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return run time in seconds, accelerators, attempts without whole times, and attempts that end too early."""
    spans = [_seconds(attempt.get("start_time"), attempt.get("end_time")) for attempt in attempts]
    sizes = [sum(_counted(seat["gpus"]) for seat in attempt["detail"]) for attempt in attempts]
    logged = [span for span in spans if span is not None]
    run_time_s = sum(max(span, 0.0) for span in logged)
    return (
        repr(run_time_s),
        str(max(sizes, default=0)),
        str(len(spans) - len(logged)),
        str(sum(span < 0 for span in logged)),
    )


def _counted(gpus: object) -> int:
    """Return how many accelerators are listed. Raises TypeError for what is no list, such as a text."""
    if not isinstance(gpus, list):
        raise TypeError(gpus)
    return len(gpus)


def _seconds(start: str | None, end: str | None) -> float | None:
    """Return the seconds between two dates; None where one of them is not logged."""
    if start in (None, "None", "") or end in (None, "None", ""):
        return None
    return (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds()
