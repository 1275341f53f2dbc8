"""Objects of a cluster manager's JSON, and the history that is made of the jobs found in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.json_text import NotJson, parse_json
from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import date_at
from eunomia.model.arrays import Ints
from eunomia.traces.accelerator_hours import HOUR_S, AcceleratorHours, RowHours
from eunomia.traces.gang_runs import Spans
from eunomia.traces.import_findings import History, ImportFindings, Kind, RowSource
from eunomia.traces.notes import SHORTEST_S
from eunomia.traces.sacct_clock import CLOCK_S
from eunomia.traces.table import in_order, trace_of

Json: TypeAlias = "dict[str, Any]"
FIRST_DAY_S = 86_400.0  # of 1970


@dataclass(kw_only=True)
class Objects(RowSource):
    """The objects of one or several files, in their order. An example is an object's name."""

    files: tuple[str, ...]
    file: list[int]
    items: list[Json]
    names: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def name(self) -> str:
        """The first file and how many others, for messages."""
        more = len(self.files) - 1
        return self.files[0] + (f" and {more} more" if more else "")

    def row(self, m: int) -> tuple[str, int | None, str]:
        """Return file and name of an object, and no line: JSON is written in any number of lines."""
        return self.files[self.file[m]], None, self.names[m]


def load_objects(paths: Sequence[Path], command: str) -> Objects:
    """Return the objects in lists: `[…]`, `{"items": […]}`, or one object a line.

    Raises InvalidInput for a file that holds none, with the command that writes one.
    """
    found = Objects(files=tuple(map(str, paths)), file=[], items=[])
    for k, path in enumerate(paths):
        items = _items(path, command)
        found.items += items
        found.file += [k] * len(items)
    return found


def _items(path: Path, command: str) -> list[Json]:
    name, fix = str(path), f"write the file with: {command}"
    text = decoded(name, contents(path))
    if not text.strip():
        raise refused(name, None, None, "the file is empty", fix)
    try:
        try:
            data = parse_json(text, unique=False)
        except NotJson as error:
            lines = [line for line in text.splitlines() if line.strip()]
            if len(lines) < 2 or not str(error).startswith("Extra data"):
                raise
            data = [parse_json(line, unique=False) for line in lines]
    except NotJson as error:
        raise refused(name, None, None, f"this is not JSON ({error.rule})", fix, row=error.row) from None
    if isinstance(data, dict):
        data = data["items"] if isinstance(data.get("items"), list) else data.get("result", [data])
        data = data.get("result", data) if isinstance(data, dict) else data
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise refused(name, None, None, "the file must hold a list of objects", fix)
    if not data:
        raise refused(name, None, None, "the list is empty", fix)
    return data


def at(item: Any, *keys: str, default: Any = None) -> Any:
    """Return the value under these keys, one inside the other; the default where one is missing or null."""
    for key in keys:
        item = item.get(key) if isinstance(item, dict) else None
    return default if item is None else item


def texts(item: Any, *keys: str) -> str:
    """Return the text under these keys; "" for anything else."""
    value = at(item, *keys)
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def mapping(item: Any, *keys: str) -> Json:
    """Return the object under these keys; an empty one for anything else."""
    value = at(item, *keys)
    return value if isinstance(value, dict) else {}


def listed(item: Any, *keys: str) -> list[Any]:
    """Return the list under these keys; an empty one for anything else."""
    value = at(item, *keys)
    return value if isinstance(value, list) else []


def moment(value: Any) -> float:
    """Return seconds since 1970 of an RFC 3339 time, or of milliseconds; nan for anything else, and for no time.

    Dates of the first day of 1970 and before stand for no time: engines write their zero so.
    """
    if isinstance(value, bool) or value in (None, "", 0, "0"):
        return nan
    if isinstance(value, int | float) or (isinstance(value, str) and value.isdigit()):
        number = float(value)
        return number / 1000.0 if isfinite(number) and number > 0 else nan
    try:
        date = datetime.fromisoformat(str(value))
    except ValueError:
        return nan
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds > FIRST_DAY_S else nan


@dataclass(slots=True, kw_only=True)
class EngineJob:
    """A job as a cluster manager lists it. Times are seconds since 1970."""

    row: int  # of its object
    job_id: str
    submitted: float
    started: float
    ended: float  # nan = still running
    ran_s: float
    width: int
    tenant: str
    status: str
    retries: int = 0
    ran_on: str = ""
    asked_for: str = ""
    machines: tuple[str, ...] = ()
    pauses: Spans = ()  # seconds from its start in which it held nothing


def superseded(identities: Sequence[str], versions: Sequence[tuple[Any, ...]]) -> Ints:
    """Return the rows of objects of which a later version is listed too; objects without an identity are single.

    Of equal versions the one that is listed last stays.
    """
    kept: dict[str, int] = {}
    older = []
    for m, name in enumerate(identities):
        if not name:
            continue
        other = kept.setdefault(name, m)
        if other != m:
            kept[name] = m if versions[m] >= versions[other] else other
            older.append(m + other - kept[name])
    return np.array(sorted(older), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow:
    """What one row of a source held, by that row alone."""

    row: int
    type: str
    tenant: str
    hours: float  # accelerator-hours


@dataclass(kw_only=True)
class ObjectsReader:
    """Makes jobs of the objects, and collects what is to be said of them."""

    source: Objects
    kinds: list[str]
    tenant: str
    listed_at: dict[int, float] = field(default_factory=dict)  # latest time in each file
    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # by finding
    held: list[HeldRow] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[int]:
        """Return the rows of the objects of a kind."""
        return [m for m, one in enumerate(self.kinds) if one == kind]

    def leave_out_repeated(self, objects: Iterable[tuple[str, bool, float]], findings: ImportFindings) -> None:
        """Blank the kind of objects of which a later version is listed too, as overlapping files do.

        `objects` have their identity, "" for none, whether they have ended, and the latest time in them.
        """
        identities, versions = [], []
        for file, (identity, has_ended, latest) in zip(self.source.file, objects, strict=True):
            self.listed_at[file] = max(latest, self.listed_at.get(file, -np.inf))
            identities.append(identity)
            versions.append((has_ended, latest))
        older = superseded(identities, versions)
        findings.add("repaired", "objects are listed twice; the later version counts", older)
        for m in older.tolist():
            self.kinds[m] = ""

    def add_findings(
        self, found: ImportFindings, texts: Mapping[str, tuple[Kind, str]], **changes: AcceleratorHours
    ) -> None:
        """Add the findings with their rows, in the order of `texts`; `changes` of accelerator-hours are by finding."""
        for name, (kind, what) in texts.items():
            found.add(kind, what, np.array(self.rows[name], dtype=np.int64), change=changes.get(name))


def held_row(job: EngineJob) -> HeldRow:
    """Return what the row of a job held, where one row is the whole job."""
    return HeldRow(row=job.row, type=job.ran_on, tenant=job.tenant, hours=job.width * job.ran_s / HOUR_S)


def row_hours(held: Sequence[HeldRow]) -> RowHours:
    """Return the hours of rows, for the sums of a source."""
    by_row = RowHours.of_columns(
        [one.type for one in held], [one.tenant for one in held], np.array([one.hours for one in held], dtype=float)
    )
    return replace(by_row, row=np.array([one.row for one in held], dtype=np.int64))


def build_history(
    source: str, jobs: Sequence[EngineJob], findings: ImportFindings, *, unread: tuple[str, ...], partly: str
) -> History:
    """Return the history of jobs that ran; those of one id after the first have #2, #3 … added to it.

    `source` is the file, for messages.
    """
    rows: Ints = np.array([job.row for job in jobs], dtype=np.int64)
    findings.add(
        "assumed", "jobs still ran when they were listed; their duration is cut off there",
        rows[np.array([isnan(job.ended) and not isnan(job.started) for job in jobs], dtype=np.bool_)],
    )  # fmt: skip
    short = [job for job in jobs if job.ran_s < SHORTEST_S]
    findings.add(
        "repaired", f"jobs ran for less than {SHORTEST_S:g} s, read as {SHORTEST_S:g} s",
        np.array([job.row for job in short], dtype=np.int64),
        change=AcceleratorHours.summed(
            [job.ran_on for job in short], [job.tenant for job in short],
            [(SHORTEST_S - job.ran_s) * job.width / HOUR_S for job in short],
        ),
    )  # fmt: skip
    for name, what in (("tenant", "jobs name no tenant"), ("ran_on", "jobs name no accelerator type")):
        findings.add("missing", what, rows[np.array([not getattr(job, name) for job in jobs], dtype=np.bool_)])
    origin = min(job.submitted for job in jobs)
    broken = [job.ended - job.started > max(job.ran_s, SHORTEST_S) + CLOCK_S for job in jobs]  # held longer than it ran
    trace = trace_of(
        source,
        _unique([job.job_id for job in jobs]),
        np.array([job.submitted - origin for job in jobs]),
        np.array([job.width for job in jobs], dtype=np.int64),
        duration_s=np.array([max(job.ran_s, SHORTEST_S) for job in jobs]),
        tenant=tuple(job.tenant for job in jobs),
        status=tuple(job.status for job in jobs),
        retries=np.array([job.retries for job in jobs], dtype=np.int64),
        ended_s=np.array([job.ended - origin if late else nan for job, late in zip(jobs, broken, strict=True)]),
        pauses=tuple(job.pauses if late else () for job, late in zip(jobs, broken, strict=True)),
        row=rows + 1,
        began=date_at(origin),
        unread=unread,
        partly=(partly,),
        notes=findings.notes(),
    )
    history = History(
        trace=trace,
        started_s=np.array([job.started - origin for job in jobs]),
        ended_s=np.array([job.ended - origin for job in jobs]),
        ran_on=tuple(job.ran_on for job in jobs),
        asked_for=tuple(job.asked_for for job in jobs),
        machines=tuple(job.machines for job in jobs),
        findings=tuple(findings.kept),
        hours=None if findings.hours is None else findings.hours.total(),
    )
    ordered = in_order(trace)
    return history if ordered is trace else history.take(np.argsort(trace.submitted_s, kind="stable"))


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(unique)


def first_label(labels: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the first of these labels that is there; "" for none."""
    for key in keys:
        if labels.get(key):
            return str(labels[key])
    return ""
