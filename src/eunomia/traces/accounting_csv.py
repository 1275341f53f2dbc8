"""A table of past jobs under the names of any system, one job a row: submission, start, end, accelerators.

Columns are found by their usual names or named by the caller. Times are seconds, or dates as of ISO 8601 (those without
a zone are taken as UTC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isnan, nan
from pathlib import Path

import numpy as np
import pyarrow as pa

from eunomia.inputs.columns import NUMBER
from eunomia.inputs.field_rules import DURATION, SCALE_FACTOR
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import Problems
from eunomia.inputs.table import USUAL_NAMES, InputTable
from eunomia.model.arrays import Bools, Floats
from eunomia.model.spelling_suggestions import nearest
from eunomia.traces.engine_objects import EngineJob, build_history
from eunomia.traces.import_findings import History, ImportFindings, RowSource
from eunomia.traces.native import OURS, STATUSES
from eunomia.traces.slurm_fields import read_spans

REQUIRED = ("submitted_s", "started_s", "scale_factor")
ENDS = ("ended_s", "duration_s")  # one of the two
KNOWN = (*REQUIRED, *ENDS, "job_id", "tenant", "status", "ran_on")
UNENDED = ("running", "pending", "suspended", "unknown")
PARTLY = "of the rows more than times, accelerators, type, tenant and outcome"


def read_history(path: Path, columns: Mapping[str, str] | None = None) -> History:
    """Return the jobs that ran, with the schedule as it was.

    `columns` says which column of the file holds a field of `KNOWN`; the others are found by their usual names. Raises
    InvalidInput with everything that is wrong with the file.
    """
    sheet = _with_our_names(read_table(path).stripped(), columns or {})
    sheet.expect(REQUIRED, None)
    if not any(name in sheet.columns for name in ENDS) and sheet.columns:
        fix = f"say which column it is: --column ended_s=NAME, of {', '.join(sheet.columns)}"
        sheet.note(sheet.header_line, "ended_s", None, "this column is missing, and so is duration_s", fix)
    sheet.raise_if_any()
    return _build(sheet)


def _with_our_names(sheet: InputTable, columns: Mapping[str, str]) -> InputTable:
    """Return the table with our names for the columns that have another. Raises InvalidInput for unknown ones."""
    problems = Problems("command line")
    ours = {}  # name in the file → ours
    for field, name in columns.items():
        if field not in KNOWN:
            problems.add("there is no such field", nearest(field, KNOWN), column="--column", value=field)
        elif name not in sheet.columns:
            fix = nearest(name, tuple(sheet.columns))
            problems.add(f"{sheet.file} has no such column", fix, column="--column", value=name)
        ours[name] = field
    problems.raise_if_any()
    for name in sheet.columns:
        usual = name if name in KNOWN else _USUAL.get(_squeezed(name), "")
        if name not in ours and usual in KNOWN and usual not in ours.values():
            ours[name] = usual
    return replace(sheet, columns={ours.get(name, name): cells for name, cells in sheet.columns.items()})


def _squeezed(name: str) -> str:
    """Return a name without what spellings differ in: `Num GPUs`, `num_gpus` and `NumGPUs` are one."""
    return name.lower().replace(" ", "").replace("_", "")


_USUAL = {_squeezed(name): ours for name, ours in USUAL_NAMES.items()}


@dataclass(frozen=True, kw_only=True)
class _Rows(RowSource):
    """Finds the text of a row for an example; rows are lines of the file, from 0."""

    sheet: InputTable

    def row(self, m: int) -> tuple[str, int | None, str]:
        place = int(np.searchsorted(self.sheet.line, m + 1))
        cells = [self.sheet.text(name)[place] for name in self.sheet.columns]
        return self.sheet.file, m + 1, ",".join(cells)


def _build(sheet: InputTable) -> History:
    """Return the history of the rows that ran."""
    unread = tuple(name for name in sheet.columns if name not in KNOWN)
    row = sheet.line - 1
    findings = ImportFindings(source=_Rows(sheet=sheet))
    submitted_s, started_s, ended_s = (_times(sheet, name, needed=name == REQUIRED[0]) for name in _TIMES)
    lasted_s = _durations(sheet)
    lasted_s = np.where(np.isnan(lasted_s), ended_s - started_s, lasted_s)
    ended_s = np.where(np.isnan(ended_s), started_s + lasted_s, ended_s)
    for name, wrong in (("started_s", started_s < submitted_s), ("ended_s", ended_s < started_s)):
        before = REQUIRED[0] if name == "started_s" else "started_s"
        sheet.refuse(name, wrong, f"is before {before}", "correct one of the two, or drop the row")
    whole = ~sheet.empty("scale_factor") & np.array([text != "0" for text in sheet.text("scale_factor")])
    width = np.nan_to_num(sheet.number("scale_factor", SCALE_FACTOR, whole)).astype(np.int64)
    sheet.raise_if_any()
    started = ~np.isnan(started_s)
    now = np.nanmax(np.concatenate([submitted_s, started_s, ended_s]))
    findings.add("left out", "jobs asked for no accelerator", row[~whole])
    findings.add("left out", "jobs with accelerators never ran", row[whole & ~started])
    keep = whole & started
    if not keep.any():
        sheet.note(None, None, None, "no job here ran on an accelerator", "name another file, or other columns")
        sheet.raise_if_any()
    words = [text.lower().partition(" ")[0] for text in sheet.text("status")]  # "CANCELLED by 1001"
    strange = np.array([word not in STATUSES and word not in UNENDED for word in words])
    what = "jobs have a status that is not known; how they ended is not said"
    findings.add("assumed", what, row[keep & strange])
    for word in dict.fromkeys(words):
        if word not in OURS and word in STATUSES:
            read = keep & np.array([other == word for other in words])
            findings.add("assumed", f"jobs of status {word} are taken as {STATUSES[word]}", row[read])
    jobs = [
        EngineJob(
            row=int(row[m]),
            job_id=sheet.text("job_id")[m] or str(row[m]),
            submitted=float(submitted_s[m]),
            started=float(started_s[m]),
            ended=float(ended_s[m]),
            ran_s=float(now - started_s[m] if isnan(lasted_s[m]) else lasted_s[m]),
            width=int(width[m]),
            tenant=sheet.text("tenant")[m],
            status=STATUSES.get(words[m], ""),
            ran_on=sheet.text("ran_on")[m],
        )
        for m in np.flatnonzero(keep).tolist()
    ]
    return build_history(sheet.file, jobs, findings, unread=unread, partly=PARTLY)


_TIMES = ("submitted_s", "started_s", "ended_s")


def _times(sheet: InputTable, name: str, *, needed: bool) -> Floats:
    """Return a column of seconds or dates, (row,); nan where the cell is empty. Others are noted."""
    texts = sheet.text(name)
    times = np.array([_seconds(text) for text in texts])
    wrong: Bools = np.isnan(times) & (np.array([bool(text) for text in texts], dtype=np.bool_) | needed)
    sheet.refuse(name, wrong, "must be a time", "write it like 2024-01-31 10:00:00, or as seconds")
    return times


def _seconds(text: str) -> float:
    """Return the seconds that a number or a date says; nan for neither."""
    if NUMBER.fullmatch(text):
        return float(text)
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return nan
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _durations(sheet: InputTable) -> Floats:
    """Return durations in s, (row,), of numbers or of `days-hours:minutes:seconds`; nan where the cell is empty."""
    texts = sheet.text("duration_s")
    spans = read_spans(pa.array(texts, pa.string()))[0]
    plain = np.isnan(spans)
    given = plain & ~sheet.empty("duration_s") & np.array([text != "0" for text in texts])
    numbers = sheet.number("duration_s", DURATION, given)
    return np.where(plain, np.where(given, numbers, np.where(sheet.empty("duration_s"), nan, 0.0)), spans)
