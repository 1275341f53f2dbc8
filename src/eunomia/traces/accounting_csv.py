"""A table of past jobs under the names of any system, one job a row: submission, start, end, accelerators.

Columns are found by their usual names or named by the caller. Times are seconds, or dates as of ISO 8601 (those without
a zone are taken as UTC). A table without starts is a trace for simulation: its schedule as it was is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

import numpy as np

from eunomia.inputs.bounds import MOST
from eunomia.inputs.columns import numbers
from eunomia.inputs.open_table import read_table
from eunomia.inputs.problems import refused
from eunomia.inputs.table import InputTable
from eunomia.inputs.time_zone import read_zone
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.accelerator_hours import HOUR_S, AcceleratorHours, RowHours
from eunomia.traces.column_mapping import ColumnMapping, hint_at_width, map_columns
from eunomia.traces.engine_objects import EngineJob, build_history
from eunomia.traces.import_findings import History, ImportFindings, RowSource
from eunomia.traces.native import OURS, STATUSES
from eunomia.traces.run_times import RunTimes, absent, read_run_times

UNENDED = ("running", "pending", "suspended", "unknown")
OTHER_SEPARATORS = (";", "\t", "|")
PARTLY = "of the rows more than times, accelerators, type, tenant and outcome"
WORD_BY_STATE = {  # of Slurm's database
    "0": "pending", "1": "running", "2": "suspended", "3": "completed", "4": "cancelled", "5": "failed", "6": "timeout",
    "7": "node_fail", "8": "preempted", "9": "boot_fail", "10": "deadline", "11": "out_of_memory",
}  # fmt: skip


def read_history(path: Path, columns: Mapping[str, str] | None = None, *, timezone: str = "") -> History:
    """Return the jobs that ran, with the schedule as it was, where the table has starts.

    `columns` says which column of the file holds a field of `column_mapping.KNOWN`; the others are found by their usual
    names. `timezone` is that of dates without one, such as Europe/Berlin. Raises InvalidInput with everything that is
    wrong with the file.
    """
    zone = read_zone(timezone, "--timezone")
    sheet = read_table(path).stripped()
    if not (len(sheet) or sheet.count):
        sheet.note(None, None, None, "a trace must hold at least one job", "add the rows, or name another file")
    separators = [mark for mark in OTHER_SEPARATORS if len(sheet.columns) == 1 and mark in next(iter(sheet.columns))]
    if separators:
        rule = f"the columns of this table seem to be separated by {separators[0]!r}"
        raise refused(sheet.file, None, None, rule, "write it with commas, or as Parquet", row=sheet.header_line)
    mapping = map_columns(sheet, columns or {})
    _expect(sheet, mapping)
    sheet.raise_if_any()
    return _build(_with_our_names(sheet, mapping), mapping, zone)


def _expect(sheet: InputTable, mapping: ColumnMapping) -> None:
    """Note the fields that no column holds, with the columns that there are."""
    found = mapping.column_by_field
    named = f"of {', '.join(sheet.columns)}"
    missing = {"submitted_s": f"say which column it is: --column submitted_s=NAME, {named}"}
    if mapping.width is None:
        missing["scale_factor"] = hint_at_width(sheet)
    for field in ("submitted_s", "scale_factor"):
        if field in missing and field not in found and sheet.columns:
            sheet.note(sheet.header_line, field, None, "no column holds this", missing[field])
    if "duration_s" not in found and sheet.columns and not {"ended_s", "started_s"} <= found.keys():
        other = "ended_s" if "started_s" in found else "started_s" if "ended_s" in found else "duration_s"
        instead = "started_s=NAME and --column ended_s=NAME" if other == "duration_s" else "duration_s=NAME"
        rule = "no column holds this, and so no column says how long jobs ran"
        fix = f"say which column it is: --column {other}=NAME, or --column {instead}, {named}"
        sheet.note(sheet.header_line, other, None, rule, fix)


def _with_our_names(sheet: InputTable, mapping: ColumnMapping) -> InputTable:
    """Return the table with the names of fields for their columns."""
    ours = {name: field for field, name in mapping.column_by_field.items()}
    if mapping.width is not None and len(mapping.width.columns) == 1:
        ours.setdefault(mapping.width.columns[0], "scale_factor")
    return replace(sheet, columns={ours.get(name, name): cells for name, cells in sheet.columns.items()})


@dataclass(frozen=True, kw_only=True)
class _Rows(RowSource):
    """Finds the text of a row for an example; rows are lines of the file, from 0."""

    sheet: InputTable

    def row(self, m: int) -> tuple[str, int | None, str]:
        place = int(np.searchsorted(self.sheet.line, m + 1))
        cells = [self.sheet.text(name)[place] for name in self.sheet.columns]
        return self.sheet.file, m + 1, ",".join(cells)


def _build(sheet: InputTable, mapping: ColumnMapping, zone: tzinfo) -> History:
    """Return the history of the rows that ran."""
    row = sheet.line - 1
    findings = ImportFindings(source=_Rows(sheet=sheet))
    times = read_run_times(sheet, mapping, zone, findings)
    asked, width = _read_width(sheet, mapping)
    sheet.raise_if_any()
    words = _words(sheet)
    keep, lasted_s = _jobs_that_ran(times, width, words, row, findings)
    tenants, types = sheet.text("tenant"), sheet.text("ran_on")
    hours, rest = (np.where(keep, each * lasted_s / HOUR_S, 0.0) for each in (asked, width - asked))
    findings.hours = replace(RowHours.of_columns(types, tenants, hours), row=row)
    if not keep.any():
        sheet.note(None, None, None, "no job here ran on an accelerator", "name another file, or other columns")
        sheet.raise_if_any()
    findings.add(
        "assumed", "jobs ask for parts of accelerators; each part is read as a whole one", row[keep & (width != asked)],
        change=AcceleratorHours.summed(types, tenants, rest.tolist()),
    )  # fmt: skip
    _say_of_status(words, keep, row, findings)
    ids = sheet.text("job_id")
    jobs = [
        EngineJob(
            row=int(row[m]),
            job_id=ids[m] or str(row[m]),
            submitted=float(times.submitted_s[m]),
            started=float(times.started_s[m]),
            ended=float(times.ended_s[m]),
            ran_s=float(lasted_s[m]),
            width=int(width[m]),
            tenant=tenants[m],
            status=STATUSES.get(words[m], ""),
            ran_on=types[m],
        )
        for m in np.flatnonzero(keep).tolist()
    ]
    history = build_history(sheet.file, jobs, findings, unread=mapping.unread, partly=PARTLY)
    return replace(history, columns=mapping.described(), assumed=(*mapping.doubts, *times.doubts))


def _jobs_that_ran(
    times: RunTimes, width: Ints, words: Sequence[str], row: Ints, findings: ImportFindings
) -> tuple[Bools, Floats]:
    """Return (row,) the jobs to keep, and how long each ran in s: those that still ran until the table's last time."""
    wide, ran = width > 0, times.ran
    over = np.array([STATUSES.get(word, "") != "" for word in words], dtype=np.bool_)
    undated = wide & ran & np.isnan(times.lasted_s) & over
    findings.add("left out", "jobs asked for no accelerator", row[~wide])
    what = "jobs with accelerators never ran" if times.has_starts else "jobs with accelerators have no duration"
    findings.add("left out", what, row[wide & ~ran])
    findings.add("left out", "jobs ended, and nothing says when; what they held is not known", row[undated])
    keep = wide & ran & ~undated
    if not times.has_starts:
        what = "jobs have no start: without starts there is no schedule as it was (as_it_was), and waits are not known"
        findings.add("missing", what, row[keep])
    now = np.nanmax(np.concatenate([times.submitted_s, times.started_s, times.ended_s]))
    return keep, np.where(np.isnan(times.lasted_s), now - times.started_s, times.lasted_s)


def _read_width(sheet: InputTable, mapping: ColumnMapping) -> tuple[Floats, Ints]:
    """Return the accelerators of each job, (row,): as they are written, and with each part as a whole one."""
    assert mapping.width is not None
    asked, whole = np.ones(len(sheet)), np.ones(len(sheet))
    for name in mapping.width.columns:
        own = "scale_factor" if name not in sheet.columns else name
        values = _entries(sheet, own, mapping.width.entry) if mapping.width.entry else numbers(sheet.columns[own])
        nothing = absent(sheet, own) | (values == -1)
        wrong = ~nothing & ~((values >= 0) & (values <= MOST))
        rule = f"must be a number of accelerators, 0 to {MOST:,}" + f" (the column {name})" * (own != name)
        sheet.refuse(own, wrong, rule, "write 0 for none")
        values = np.where(nothing | wrong, 0.0, values)
        asked, whole = asked * values, whole * np.ceil(values)
    too_wide = whole > MOST
    if too_wide.any():
        rule = f"make a job of more than {MOST:,} accelerators"
        sheet.refuse(mapping.width.columns[0], too_wide, rule, "correct the row")
    return asked, np.where(too_wide, 0, whole).astype(np.int64)


def _entries(sheet: InputTable, name: str, entry: str) -> Floats:
    """Return the value of one entry of lists such as `1=40,1001=2`, (row,); 0 where a list lacks it."""
    found = []
    for text in sheet.text(name):
        values = [value for key, _, value in (part.partition("=") for part in text.split(",")) if key == entry]
        found.append(values[0] if values else "0")
    return numbers(tuple(found))


def _words(sheet: InputTable) -> list[str]:
    """Return the first word of each status in lower case; numbers of Slurm's database as its words."""
    words = [text.lower().partition(" ")[0] for text in sheet.text("status")]  # "CANCELLED by 1001"
    return [WORD_BY_STATE.get(word, word) for word in words]


def _say_of_status(words: Sequence[str], keep: Bools, row: Ints, findings: ImportFindings) -> None:
    strange = np.array([word not in STATUSES and word not in UNENDED for word in words])
    what = "jobs have a status that is not known; how they ended is not said"
    findings.add("assumed", what, row[keep & strange])
    for word in dict.fromkeys(words):
        if word not in OURS and word in STATUSES:
            read = keep & np.array([other == word for other in words])
            findings.add("assumed", f"jobs of status {word} are taken as {STATUSES[word]}", row[read])
