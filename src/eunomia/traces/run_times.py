"""The times of a table of past jobs: when each was submitted, started and ended, and how long it ran.

A table says more than once how long a job ran, in units of its own, and in words or numbers that it never did. Where
what it says does not agree, one of the values counts, and the choice is said.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from math import isfinite, nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.columns import numbers
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats
from eunomia.traces.column_mapping import ColumnMapping
from eunomia.traces.import_findings import ImportFindings, Kind
from eunomia.traces.sacct_clock import CLOCK_S
from eunomia.traces.slurm_fields import read_spans

ABSENT = ("", "-", "nan", "nat", "none", "null", "n/a", "na", "unknown", "(null)", "<na>", "0000-00-00 00:00:00")
DATED, PLAIN = r"^\d{4}[-/]", r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}$"  # a date, and one that is read at once
ZERO_S = 172_800.0  # a date up to here is the zero of a clock, in whatever zone it was written
UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))  # seconds since 1970
SAME = 0.01  # by which a duration may differ from end − start, relative
LENGTH_BY_UNIT = {"minutes": 60.0, "hours": 3600.0, "milliseconds": 1e-3}
ZONE = "correct one of the two, drop the row, or name the zone of the clock: --timezone Europe/Berlin"


def read_times(sheet: InputTable, name: str, zone: tzinfo = UTC, *, fold: int = 0) -> Floats:
    """Return a column of seconds or dates, (row,), in s; nan where the cell holds no time.

    Dates without a zone are those of `zone`; where its clock is set back, `fold` says which of the two is meant.
    """
    if name not in sheet.columns:
        return np.full(len(sheet), nan)
    cells = _array(sheet, name)
    plain = pc.match_substring_regex(cells, PLAIN) if zone is UTC else pa.array(np.zeros(len(cells), dtype=np.bool_))
    values = numbers(pc.if_else(pc.match_substring_regex(cells, DATED), "", cells))
    values[~np.isfinite(values)] = nan
    with suppress(pa.ArrowInvalid):  # a month 13, or an hour 25: then each is looked at
        values[_mask(plain)] = np.asarray(pc.cast(cells.filter(plain), pa.timestamp("s")).cast(pa.int64()), dtype=float)
    rest = np.flatnonzero(np.isnan(values))
    if len(rest):
        texts = sheet.text(name)
        values[rest] = [_seconds(texts[m], zone, fold) for m in rest.tolist()]
    return values


def _array(sheet: InputTable, name: str) -> pa.StringArray:
    cells = sheet.columns[name]
    return pa.array(cells, pa.string()) if isinstance(cells, tuple) else cells


def _mask(array: pa.Array) -> Bools:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _seconds(text: str, zone: tzinfo, fold: int) -> float:
    if not text or text.lower() in ABSENT:
        return nan
    try:
        date = datetime.fromisoformat(text.replace("/", "-") if text[4:5] == "/" else text)
        return (date if date.tzinfo else date.replace(tzinfo=zone, fold=fold)).timestamp()
    except (ValueError, OverflowError):
        return nan


def absent(sheet: InputTable, name: str) -> Bools:
    """Return (row,): True where the cell holds nothing, or a word for nothing."""
    return _mask(pc.is_in(pc.utf8_lower(_array(sheet, name)), pa.array(ABSENT)))


def never(times: Floats, dated: Bools, earliest: Floats) -> Bools:
    """Return (row,): True where a time stands for none: −1, or the zero of a clock, 0 or a date of 1970.

    `dated` are the rows in which it is written as a date. Zero is none only if it is before the `earliest` possible.
    """
    zero = (times == 0) | (dated & (times < ZERO_S))
    return np.asarray((times == -1) | (zero & (times < earliest)))


def is_dated(sheet: InputTable, name: str) -> Bools:
    """Return (row,): True where the cell is a date."""
    return _mask(pc.match_substring_regex(_array(sheet, name), DATED))


def unit_of(times: Floats) -> tuple[float, str]:
    """Return how many of the unit of these times make a second, and its name; 1 for seconds."""
    known = times[np.isfinite(times)]
    middle = float(np.median(known)) if len(known) else 0.0
    return next(
        ((per_s, name) for least, per_s, name in UNITS if isfinite(middle) and middle > least), (1.0, "seconds")
    )


def offset_s(times: Floats, zone: tzinfo) -> float:
    """Return what the zone's clock is ahead of UTC at the first of these times, in s: dates of a trace are local."""
    first = float(np.nanmin(times)) if np.isfinite(times).any() else nan
    try:
        ahead = datetime.fromtimestamp(first, zone).utcoffset()
    except (ValueError, OverflowError, OSError):
        return 0.0
    return 0.0 if ahead is None else ahead.total_seconds()


@dataclass(frozen=True, kw_only=True)
class RunTimes:
    """Times of jobs, (row,) each, in s; nan = not known."""

    submitted_s: Floats
    started_s: Floats
    ended_s: Floats
    lasted_s: Floats  # nan = still runs, never ran, or ended at a time that is not written
    has_starts: bool  # the table has a column of starts, or of waits
    doubts: tuple[str, ...]

    @property
    def ran(self) -> Bools:
        """Rows of jobs that ran: that started, or in a table without starts lasted."""
        return np.asarray(~np.isnan(self.started_s) if self.has_starts else self.lasted_s > 0)


def read_run_times(sheet: InputTable, mapping: ColumnMapping, zone: tzinfo, findings: ImportFindings) -> RunTimes:
    """Return the times of a table whose columns have the names of fields; note what is no time, or in no order."""
    return _Reader(sheet=sheet, mapping=mapping, zone=zone, findings=findings).read()


@dataclass(kw_only=True)
class _Reader:
    sheet: InputTable
    mapping: ColumnMapping
    zone: tzinfo
    findings: ImportFindings
    doubts: list[str] = field(default_factory=list)

    def read(self) -> RunTimes:
        """Return the times; the columns are read in the order in which one is judged by another."""
        submitted_s = read_times(self.sheet, "submitted_s", self.zone)
        submitted_s[submitted_s == -1] = nan
        rule = "must be a time"
        self._refuse("submitted_s", np.isnan(submitted_s), rule, "write it like 2024-01-31 10:00:00, or as seconds")
        started_s = self._times("started_s", submitted_s)
        ended_s = self._times("ended_s", np.where(np.isnan(started_s), submitted_s, started_s))
        per_s, unit = unit_of(submitted_s)
        if per_s != 1:
            self.doubts.append(f"times are {unit}, by their size")
            submitted_s, started_s, ended_s = submitted_s / per_s, started_s / per_s, ended_s / per_s
        if "started_s" not in self.sheet.columns:
            started_s = submitted_s + self._lengths("wait_s")
        started_s = self._not_early(submitted_s, started_s)
        lasted_s = self._lasted(submitted_s, started_s, ended_s)
        backwards = ended_s < started_s
        self._refuse("ended_s", backwards & np.isnan(lasted_s), "is before started_s", ZONE)
        self._say("repaired", "jobs end before they start; their duration counts", backwards & ~np.isnan(lasted_s))
        ended_s = np.where(np.isnan(ended_s) | backwards, started_s + lasted_s, ended_s)
        local_s = offset_s(submitted_s, self.zone)
        return RunTimes(
            submitted_s=submitted_s + local_s,
            started_s=started_s + local_s,
            ended_s=ended_s + local_s,
            lasted_s=np.where(np.isnan(lasted_s), ended_s - started_s, lasted_s),
            has_starts=bool({"started_s", "wait_s"} & self.sheet.columns.keys()),
            doubts=tuple(self.doubts),
        )

    def _times(self, name: str, earliest: Floats) -> Floats:
        """Return a column of times, nan where a cell says that there was none; each is at least the `earliest`.

        Where a clock was set back, the later of the two times is meant if the first is before `earliest`.
        """
        times = read_times(self.sheet, name, self.zone)
        if name not in self.sheet.columns:
            return times
        wrong = np.isnan(times) & ~absent(self.sheet, name)
        self._refuse(name, wrong, "must be a time", "write it like 2024-01-31 10:00:00, or as seconds")
        times[never(times, is_dated(self.sheet, name), earliest)] = nan
        again = read_times(self.sheet, name, self.zone, fold=1) if (times < earliest).any() else times
        return np.where((times < earliest) & (again > times), again, times)

    def _not_early(self, submitted_s: Floats, started_s: Floats) -> Floats:
        """Return starts of which none is before the submission by less than clocks differ; note other early ones."""
        early = started_s < submitted_s
        little = early & (started_s >= submitted_s - CLOCK_S)
        self._say("repaired", f"jobs start up to {CLOCK_S:g} s before their submission; they waited 0 s", little)
        self._refuse("started_s", early & ~little, "is before submitted_s", ZONE)
        return np.where(little, submitted_s, started_s)

    def _lasted(self, submitted_s: Floats, started_s: Floats, ended_s: Floats) -> Floats:
        """Return how long jobs ran as the column of durations says, in seconds; nan where it does not.

        Where most durations are not end − start, they are of another unit or of another meaning, and do not count.
        """
        lasted_s, span_s = self._lengths("duration_s"), ended_s - started_s
        both = ~np.isnan(lasted_s) & (span_s >= 0)
        differ = both & (np.abs(lasted_s - span_s) > np.maximum(CLOCK_S, SAME * span_s))
        if 2 * np.count_nonzero(differ) <= np.count_nonzero(both):
            what = "jobs have a duration other than end − start, as those that were suspended; the duration counts"
            self._say("assumed", what, differ)
            return lasted_s
        some = both & (lasted_s > 0)
        ratio = float(np.median(span_s[some] / lasted_s[some])) if some.any() else nan
        unit = next((name for name, size in LENGTH_BY_UNIT.items() if abs(ratio / size - 1) < SAME), "")
        column = self.mapping.column_by_field["duration_s"]
        if unit:
            self.doubts.append(f"the column {column} counts {unit}, as end − start says")
            return np.where(both, span_s, lasted_s * LENGTH_BY_UNIT[unit])
        self.doubts.append(
            f"the column {column} is not end − start of most jobs: end − start counts, where both are there"
        )
        return np.where(both, span_s, lasted_s)

    def _lengths(self, name: str) -> Floats:
        """Return a column of seconds or of `days-hours:minutes:seconds`, (row,); nan where a cell says nothing."""
        if name not in self.sheet.columns:
            return np.full(len(self.sheet), nan)
        plain = numbers(self.sheet.columns[name])
        spans = np.full(len(plain), nan)
        if np.isnan(plain).any():
            texts = [text.replace(" days ", "-") for text in self.sheet.text(name)]
            spans = read_spans(pa.array(texts, pa.string()))[0]
        wrong = np.isnan(spans) & ~absent(self.sheet, name) & ~((plain >= 0) & (plain <= MOST_S)) & (plain != -1)
        plain[plain == -1] = nan
        rule, fix = "must be a number of seconds, 0 to 1e12", "write seconds, or 1-02:03:04, or leave it empty"
        self._refuse(name, wrong, rule, fix)
        return np.where(np.isnan(spans), plain, spans)

    def _refuse(self, name: str, wrong: Bools, rule: str, fix: str) -> None:
        """Note a problem with a field, by the column that holds it."""
        column = self.mapping.column_by_field.get(name, name)
        self.sheet.refuse(name, wrong, rule + f" (the column {column})" * (column != name), fix)

    def _say(self, kind: Kind, what: str, where: Bools) -> None:
        self.findings.add(kind, what, self.sheet.line[where] - 1)
