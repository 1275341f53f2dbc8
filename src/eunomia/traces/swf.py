"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2: 18 numbers a line, and header comments.

A processor is read as an accelerator. −1 is a value that is not known. A job that was swapped out has a line for the
whole job and one for each part of its run (status 2, 3 or 4): the whole counts. Reference: D. Feitelson et al.,
"Experience with using the Parallel Workloads Archive", JPDC 74(10), 2014, and
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from eunomia.inputs.bounds import MOST, MOST_S
from eunomia.inputs.columns import NUMBER, Cells
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.options import one_of
from eunomia.inputs.problems import SHOWN
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.accelerator_hours import HOUR_S, RowHours
from eunomia.traces.engine_objects import EngineJob, build_history
from eunomia.traces.import_findings import History, ImportFindings, RowSource
from eunomia.traces.machine_lists.named_nodes import NamedNode
from eunomia.traces.table import Trace

SUFFIXES = (".swf", ".swf.gz")
FIELDS = (
    "job", "submit", "wait", "run", "processors", "cpu_time", "memory", "requested_processors", "requested_time",
    "requested_memory", "status", "user", "group", "executable", "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
READ = ("job", "submit", "wait", "run", "processors", "requested_processors", "status")
TENANTS = ("user", "group", "executable", "queue", "partition", "none")
BY_FIELD = ("partition", "queue")  # values of the option `type` that name a field
WORD_BY_STATUS = {0: "failed", 1: "finished", 3: "finished", 4: "failed", 5: "cancelled"}
PARTS = (2, 3, 4)  # statuses of parts of a run; 3 and 4 are those of the last part
PARTLY = "of the lines more than times, processors, tenant and outcome"
PER_MACHINE = 8  # accelerators, where the header does not say
NEVER = "write -1 where it is not known"
TIME = Rule(what="a number of seconds, 0 to 1e12, or -1", least=-1.0, most=MOST_S, fix=NEVER)
COUNT = Rule(what=f"a whole number, -1 to {MOST:,}", least=-1, most=MOST, whole=True, fix=NEVER)
STATUS = Rule(what="a whole number, -1 to 5", least=-1, most=5, whole=True, fix=NEVER)


def detects(line: Sequence[str]) -> bool:
    """Say whether a first line is a header comment, or holds the 18 numbers of a job."""
    text = ",".join(line).strip()
    words = text.split()
    return text.startswith(";") or (len(words) == len(FIELDS) and all(map(NUMBER.fullmatch, words)))


def read(path: Path, *, tenant: str = "user", type: str = "") -> Trace:
    """Return the jobs that ran, by submission.

    The `tenant` is one of `TENANTS`; `type` is the accelerator type of all, or the field that tells types apart,
    partition or queue. Raises InvalidInput with everything that is wrong with the file.
    """
    return read_history(path, tenant=tenant, type=type).trace


def read_history(path: Path, *, tenant: str = "user", type: str = "") -> History:
    """Return the jobs that ran with the schedule as it was; arguments and errors are those of `read`."""
    one_of(str(path), "tenant", tenant, TENANTS)
    text = decoded(str(path), contents(path))
    sheet = _read_lines(str(path), text)
    log = _Log.of(sheet, tenant, str(type))
    sheet.raise_if_any()
    return _build(log, sheet, _read_header(text))


def read_machines(path: Path, type: str = "") -> tuple[NamedNode, ...]:
    """Return the machines that the header counts (MaxProcs, MaxNodes), of one accelerator type; none if it does not."""
    header = _read_header(decoded(str(path), contents(path)))
    total, machines = (_whole(header.get(name, "")) for name in ("MaxProcs", "MaxNodes"))
    if not total:
        return ()
    each = total // machines if machines and total % machines == 0 else PER_MACHINE
    sizes = [each] * (total // each) + [total % each] * bool(total % each)
    return tuple(NamedNode(name=f"machine-{k}", type=type, accelerators=size) for k, size in enumerate(sizes))


def _whole(text: str) -> int:
    found = re.match(r"\s*(\d{1,7})\b", text)
    return int(found[1]) if found else 0


def _read_header(text: str) -> dict[str, str]:
    """Return the comments of the form `; Name: value`; the first of a name counts."""
    header: dict[str, str] = {}
    for name, value in re.findall(r"(?m)^[ \t]*;[; \t]*(\w+):[ \t]*(.*?)[ \t\r]*$", text):
        header.setdefault(name, value)
    return header


def _read_lines(file: str, text: str) -> InputTable:
    """Return the lines of jobs as a table."""
    rows: list[list[str]] = []
    lines: list[int] = []
    ragged: list[tuple[int, int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split()
        if cells and cells[0].startswith(";"):
            continue
        if len(cells) == len(FIELDS):
            rows.append(cells)
            lines.append(number)
        elif cells:
            ragged.append((number, len(cells)))
    columns: dict[str, Cells] = dict.fromkeys(FIELDS, ())
    columns.update(zip(FIELDS, zip(*rows, strict=True), strict=False))
    sheet = InputTable(file=file, header_line=1, line=np.array(lines, dtype=np.int64), columns=columns)
    for number, width in ragged[:SHOWN]:
        rule = f"this line has {width} numbers where the Standard Workload Format has {len(FIELDS)}"
        sheet.note(number, None, None, rule, "write -1 for a value that is not known")
    sheet.count += max(0, len(ragged) - SHOWN)
    if not rows and not ragged:
        sheet.note(None, None, None, "a trace must hold at least one job", "add the lines, or name another file")
    return sheet


@dataclass(frozen=True, kw_only=True)
class _Log:
    """The columns that count, (line,) each; −1 = not known."""

    job: tuple[str, ...]
    submit_s: Floats
    wait_s: Floats
    run_s: Floats
    width: Ints  # processors; 0 = not known
    is_requested: Bools  # the width is what was asked for
    status: Ints
    tenant: tuple[str, ...]
    ran_on: tuple[str, ...]

    @classmethod
    def of(cls, sheet: InputTable, tenant: str, type: str) -> _Log:
        """Return the columns of a table; note what breaks their rules."""
        held, asked = sheet.whole("processors", COUNT), sheet.whole("requested_processors", COUNT)
        kinds = _named(sheet, type, f"{type}-") if type in BY_FIELD else (type,) * len(sheet)
        return cls(
            job=sheet.filled("job"),
            submit_s=sheet.number("submit", TIME),
            wait_s=sheet.number("wait", TIME),
            run_s=sheet.number("run", TIME),
            width=np.maximum(np.where(held > 0, held, asked), 0),
            is_requested=np.asarray((held <= 0) & (asked > 0)),
            status=sheet.whole("status", STATUS),
            tenant=("",) * len(sheet) if tenant == "none" else _named(sheet, tenant, ""),
            ran_on=kinds,
        )

    @property
    def is_part(self) -> Bools:
        """Lines of parts of a run."""
        return np.isin(self.status, PARTS)


def _named(sheet: InputTable, name: str, before: str) -> tuple[str, ...]:
    """Return the numbers of a field as names; "" for −1."""
    return tuple("" if text in ("-1", "-1.0") else before + text for text in sheet.text(name))


@dataclass(frozen=True, kw_only=True)
class _Lines(RowSource):
    """Finds the text of a line for an example."""

    sheet: InputTable

    def row(self, m: int) -> tuple[str, int | None, str]:
        cells = [self.sheet.columns[name][m] for name in FIELDS]
        return self.sheet.file, int(self.sheet.line[m]), " ".join(map(str, cells))


def _build(log: _Log, sheet: InputTable, header: dict[str, str]) -> History:
    """Return the history of the jobs that ran."""
    findings = ImportFindings(source=_Lines(sheet=sheet))
    whole = {name for name, part in zip(log.job, log.is_part.tolist(), strict=True) if not part}
    inside = log.is_part & np.array([name in whole for name in log.job], dtype=np.bool_)
    never = (log.run_s < 0) | ((log.run_s == 0) & (log.status == 5))
    ran = ~inside & ~never & (log.width > 0)
    hours = np.where(ran, log.run_s * log.width / HOUR_S, 0.0)
    findings.hours = RowHours.of_columns(log.ran_on, log.tenant, hours)
    what = "lines are parts of jobs that have a line for the whole, which counts"
    findings.add("repaired", what, inside)
    findings.add("left out", "jobs never ran, or their run time is not known", ~inside & never)
    findings.add("left out", "jobs have no number of processors", ~inside & ~never & (log.width == 0))
    findings.add("left out", "lines have no submit time", ran & (log.submit_s < 0) & ~log.is_part)
    what = "jobs have no number of allocated processors: the number that they asked for counts"
    findings.add("assumed", what, ran & log.is_requested)
    keep = ran & ((log.submit_s >= 0) | log.is_part)
    findings.add("missing", "jobs have no wait time: when they started is not known", keep & (log.wait_s < 0))
    findings.add("assumed", "jobs are listed in parts only: their run times are added", keep & log.is_part)
    jobs = [_job(log, m) for m in np.flatnonzero(keep & ~log.is_part).tolist()]
    jobs += _in_parts(log, np.flatnonzero(keep & log.is_part))
    if not jobs:
        sheet.note(None, None, None, "no job here ran on a processor", "name another file")
        sheet.raise_if_any()
    values = {name: sheet.text(name) for name in FIELDS if name not in READ and name not in sheet.asked}
    unread = tuple(name for name, cells in values.items() if set(cells) != {"-1"})
    history = build_history(sheet.file, jobs, findings, unread=unread, partly=PARTLY)
    first_s = min(job.submitted for job in jobs)
    row = sheet.line[history.trace.row - 1]
    return replace(history, trace=replace(history.trace, began=_began(header, first_s), row=row))


def _job(log: _Log, m: int) -> EngineJob:
    submitted, wait, run = (float(column[m]) for column in (log.submit_s, log.wait_s, log.run_s))
    started = submitted + wait if wait >= 0 else nan
    return EngineJob(
        row=m,
        job_id=log.job[m],
        submitted=submitted,
        started=started,
        ended=started + run,
        ran_s=run,
        width=int(log.width[m]),
        tenant=log.tenant[m],
        status=WORD_BY_STATUS.get(int(log.status[m]), ""),
        ran_on=log.ran_on[m],
    )


def _in_parts(log: _Log, rows: Ints) -> list[EngineJob]:
    """Return the jobs that have lines of parts only; the first part has the submission, the last one the outcome."""
    by_job: dict[str, list[int]] = {}
    for m in rows.tolist():
        by_job.setdefault(log.job[m], []).append(m)
    found = []
    for parts in by_job.values():
        job = _job(log, parts[0])
        width = int(log.width[parts].max())
        job.ran_s = float((log.run_s[parts] * log.width[parts]).sum()) / width
        waits = float(np.maximum(log.wait_s[parts], 0.0).sum())
        job.width, job.submitted = width, max(job.submitted, 0.0)
        job.ended = job.submitted + waits + float(log.run_s[parts].sum())
        job.status = WORD_BY_STATUS.get(int(log.status[parts[-1]]), "")
        found.append(job)
    return found


def _began(header: dict[str, str], first_s: float) -> datetime | None:
    """Return the local date of the first submission: UnixStartTime is that of second 0; None where it is not given."""
    if not re.fullmatch(r"[1-9]\d{0,11}", header.get("UnixStartTime", "")):
        return None
    try:
        zone = ZoneInfo(header["TimeZoneString"]) if header.get("TimeZoneString") else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone = UTC
    return datetime.fromtimestamp(float(header["UnixStartTime"]) + first_s, zone).replace(tzinfo=None)
