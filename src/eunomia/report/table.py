"""The tables of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eunomia.verdict.judgement import tied
from eunomia.verdict.number_format import ABSENT, common_scale, shown, three_digits
from eunomia.verdict.ranking import COLUMNS, Column
from eunomia.verdict.run_figures import ReportContent
from eunomia.verdict.seed_groups import SeedGroup, best_first, comparable, seed_groups

BEST, MANY = 5, 8  # of more than eight runs the best five are shown first


ScaledColumn = tuple[Column, tuple[float, str] | None]  # a column, and the unit of its durations


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A number of a table that can be sorted."""

    text: str
    value: float | None = None  # to sort by
    mark: Literal["best", "tied", ""] = ""
    beside: tuple[str, ...] = ()  # small lines
    verdict: tuple[str, str] | None = None  # better, worse, …, and how it is shown

    @property
    def sorted_by(self) -> str:
        """The value with nine significant digits; "" where there is none."""
        return "" if self.value is None else f"{self.value:.9g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run or setting of a table that can be sorted."""

    name: str
    cells: tuple[Cell, ...]
    knows_durations: bool = False
    folder: str = ""  # of the run's files, beside the page; "" = none
    css: str = ""  # next: begins a group; rest: is shown on request


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table that can be sorted."""

    heads: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts; the first column names the rows, the others are numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """Return the table for a terminal."""
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        return [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in (self.heads, *self.rows)
        ]


def run_table(content: ReportContent) -> NumberTable:
    """Return the table of the settings: one row each, the best of each column marked among settings of one load."""
    every = seed_groups(content)
    several = len({setting.load for setting in every}) > 1
    known = [column for column in COLUMNS if any(setting.values(column.name).size for setting in every)]
    if len({setting.mean("jobs_submitted") for setting in every}) == 1:  # the subtitle says it
        known = [column for column in known if column.name != "jobs_submitted"]
    scaled = [(column, scale_of(column, [setting.mean(column.name) for setting in every])) for column in known]
    group_by_load = {at: tuple(s for s in every if s.load == at) for at in (s.load for s in every)}
    ranks = {label: rank for rank, label in enumerate(best_first(content))}
    many = len(ranks) > MANY
    rows = []
    for group in group_by_load.values():
        for setting in sorted(group, key=lambda s: ranks[s.label]) if many else group:
            css = ["next"] * (several and setting is group[0]) + ["rest"] * (many and ranks[setting.label] >= BEST)
            cells = [cell(setting, group, *column) for column in scaled]
            rows.append(
                Row(
                    name=setting.label,
                    cells=(*place_cells(setting.load, several), *cells),
                    knows_durations=setting.knows_durations,
                    folder=setting.runs[0].folder,
                    css=" ".join(css),
                )
            )
    return NumberTable(("Policy", *["Load"] * several, *(heading(*column) for column in scaled)), tuple(rows))


def place_cells(place: float, several: bool) -> list[Cell]:
    """Return the cell of the load, or of what else a sweep varies; none where there is only one."""
    return [Cell(text=f"{place:g}", value=place)] * several


def scale_of(column: Column, values: Iterable[float | None]) -> tuple[float, str] | None:
    """Return the unit of a column of durations, so that all its cells have the same; None for other columns."""
    return common_scale(values) if column.unit == "s" else None


def heading(column: Column, scale: tuple[float, str] | None) -> str:
    """Return the heading of a column, with its unit if that is a time."""
    return column.heading if scale is None else f"{column.heading}, {scale[1]}"


def number(value: float | None, column: Column, scale: tuple[float, str] | None) -> str:
    """Return a number of a column; durations are in the column's unit, which is in its heading."""
    if scale is None or value is None or not math.isfinite(value):
        return shown(value, column.unit)
    return three_digits(value / scale[0])


def cell(setting: SeedGroup, group: tuple[SeedGroup, ...], column: Column, scale: tuple[float, str] | None) -> Cell:
    """Return one number, its range over the seeds beside it, and a mark when none of its load is better."""
    values, mean = setting.values(column.name), setting.mean(column.name)
    span: tuple[str, ...] = ()
    if values.size > 1 and values.min() < values.max():
        least, most = (number(end, column, scale).replace(" ", "\u00a0") for end in (values.min(), values.max()))
        span = (f"{least}–{most}",)
    return Cell(text=number(mean, column, scale), value=mean, mark=mark(setting, group, column), beside=span)


def mark(setting: SeedGroup, group: tuple[SeedGroup, ...], column: Column) -> Literal["best", "tied", ""]:
    """Return whether a setting is the best of its load, or one of several that tie for the best."""
    able = [other for other in comparable(group, column.kind) if other.values(column.name).size]
    if column.better is None or setting not in able or len(able) < 2:
        return ""
    sign = 1 if column.better == "low" else -1
    best = min(able, key=lambda other: sign * (other.mean(column.name) or 0.0))
    equal = [other for other in able if other is best or tied(best, other, column.name)]
    if setting not in equal or len(equal) == len(able):
        return ""
    return "best" if len(equal) == 1 else "tied"


def mean_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> TextTable:
    """Return the averages over the seeds: one row for each policy and load, lowest average first."""
    several = len({row.get("load") for row in rows}) > 1
    rows_by_key: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_by_key.setdefault((row["policy"], *([row.get("load")] if several else [])), []).append(row)
    columns = [column for column in COLUMNS if column.name in names]
    means = {
        key: {c.name: _mean([row.get(c.name) for row in own]) for c in columns} for key, own in rows_by_key.items()
    }
    scaled = [(column, scale_of(column, [mean[column.name] for mean in means.values()])) for column in columns]
    order = sorted(means, key=lambda key: (key[1:], math.inf if (m := means[key]["jct_mean_s"]) is None else m))
    return TextTable(
        ("policy", *["load"] * several, *(heading(*c) for c in scaled)),
        tuple((*map(str, key), *(number(means[key][c.name], c, scale) for c, scale in scaled)) for key in order),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def every_number(content: ReportContent) -> TextTable:
    """Return every number of every run, one row for each field of summary.json."""
    names = dict.fromkeys(name for run in content.runs for name in run.summary)
    several = len({(run.load, run.seed) for run in content.runs}) > 1
    heads = [f"{run.label}, load {run.load:g}, seed {run.seed}" if several else run.label for run in content.runs]
    rows = tuple((name, *(exact(run.summary.get(name)) for run in content.runs)) for name in names)
    return TextTable(("Number", *heads), rows)


def exact(value: float | int | None) -> str:
    """Return a number with six significant digits, an integer in full; a dash for an unknown one."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:,d}" if isinstance(value, int) else f"{value:,.6g}"
