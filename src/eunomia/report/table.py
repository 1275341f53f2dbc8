"""The tables of the report, as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from eunomia.report.content import ReportContent
from eunomia.report.escape import escaped
from eunomia.report.judgement import tied
from eunomia.report.number_format import ABSENT, Unit, common_scale, shown, three_digits
from eunomia.report.seed_groups import Kind, SeedGroup, best_first, comparable, seed_groups

BEST, MANY = 5, 8  # of more than eight runs the best five are shown first


@dataclass(frozen=True)
class Column:
    """One field of summary.json: its name, its heading, and whether low or high is better."""

    name: str
    heading: str
    unit: Unit
    better: Literal["low", "high"] | None = "low"
    kind: Kind = "jobs"  # what it is an average of


ScaledColumn = tuple[Column, tuple[float, str] | None]  # a column, and the unit of its durations

COLUMNS = (
    Column("apps_finished", "Apps finished", "count", None),
    Column("app_jct_mean_s", "App time average", "s", kind="apps"),
    Column("jct_mean_s", "JCT average", "s"),
    Column("jct_p50_s", "JCT median", "s"),
    Column("jct_p95_s", "JCT 95th pct.", "s"),
    Column("jct_p99_s", "JCT 99th pct.", "s"),
    Column("queueing_mean_s", "Queueing average", "s"),
    Column("total_wait_mean_s", "Total wait average", "s"),
    Column("makespan_s", "Makespan", "s"),
    Column("utilization", "Utilisation", "share", "high"),
    Column("offered_load", "Offered load", "share", None),
    Column("rho_themis_max", "ρ worst", "ratio"),
    Column("rho_themis_mean", "ρ average", "ratio"),
    Column("preemptions", "Preemptions", "count"),
    Column("cost_usd", "Cost", "usd"),
    Column("jobs_finished", "Finished", "count", None),
    Column("jobs_submitted", "Submitted", "count", None),
)
KNOWS_DURATIONS = "knows durations"
MARK = '<b class="best" title="best in its column">★<span class="unseen"> best</span></b> '
TIED = '<b class="tied" title="tied for the best">≈<span class="unseen"> tied for the best</span></b> '


def run_table(content: ReportContent) -> str:
    """Return the table of the settings: one row each, the best of each column starred among settings of one load."""
    every = seed_groups(content)
    several = len({setting.load for setting in every}) > 1
    known = [column for column in COLUMNS if any(setting.values(column.name).size for setting in every)]
    if len({setting.mean("jobs_submitted") for setting in every}) == 1:  # the subtitle says it
        known = [column for column in known if column.name != "jobs_submitted"]
    scales = {column.name: scale_of(column, [setting.mean(column.name) for setting in every]) for column in known}
    heads = ["Policy", *(["Load"] if several else []), *(heading(column, scales[column.name]) for column in known)]
    group_by_load = {at: tuple(s for s in every if s.load == at) for at in (s.load for s in every)}
    ranks = {label: rank for rank, label in enumerate(best_first(content))}
    many = len(ranks) > MANY
    rows = []
    for group in group_by_load.values():
        for setting in sorted(group, key=lambda s: ranks[s.label]) if many else group:
            rest = many and ranks[setting.label] >= BEST
            rows.append(row(setting, group, [(c, scales[c.name]) for c in known], several=several, rest=rest))
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    return f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


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


def row(
    setting: SeedGroup, group: tuple[SeedGroup, ...], known: Sequence[ScaledColumn], *, several: bool, rest: bool
) -> str:
    """Return one setting's row; `rest` is shown on request."""
    load = f'<td data-v="{setting.load:g}">{setting.load:g}</td>' if several else ""
    cells = "".join(cell(setting, group, *column) for column in known)
    names = " ".join([*["next"] * (several and setting is group[0]), *["rest"] * rest])
    begins = f' class="{names}"' if names else ""
    return f'<tr{begins}><th scope="row">{label_of(setting)}</th>{load}{cells}</tr>'


def label_of(setting: SeedGroup) -> str:
    """Return the label, with a link to the folder of the first run, and a mark where the policy knows durations."""
    folder = setting.runs[0].folder
    label = escaped(setting.label)
    label = f'<a href="./{quote(folder)}/">{label}</a>' if folder else label
    return f"{label} <small>{KNOWS_DURATIONS}</small>" if setting.knows_durations else label


def cell(setting: SeedGroup, group: tuple[SeedGroup, ...], column: Column, scale: tuple[float, str] | None) -> str:
    """Return one number, its range over the seeds beside it, and a star when none of its load is better."""
    values, mean = setting.values(column.name), setting.mean(column.name)
    span = ""
    if values.size > 1 and values.min() < values.max():
        least, most = (number(end, column, scale).replace(" ", "\u00a0") for end in (values.min(), values.max()))
        span = f" <small>{least}–{most}</small>"
    text = escaped(number(mean, column, scale))
    return f'<td data-v="{"" if mean is None else f"{mean:.9g}"}">{mark(setting, group, column)}{text}{span}</td>'


def mark(setting: SeedGroup, group: tuple[SeedGroup, ...], column: Column) -> str:
    """Return the star of the best of a load; of several that tie for the best, a sign that says so."""
    able = [other for other in comparable(group, column.kind) if other.values(column.name).size]
    if column.better is None or setting not in able or len(able) < 2:
        return ""
    sign = 1 if column.better == "low" else -1
    best = min(able, key=lambda other: sign * (other.mean(column.name) or 0.0))
    equal = [other for other in able if other is best or tied(best, other, column.name)]
    if setting not in equal or len(equal) == len(able):
        return ""
    return MARK if len(equal) == 1 else TIED


def summary_html(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return the averages over the seeds as a plain table, one row for each policy and load, lowest average first."""
    several = len({row.get("load") for row in rows}) > 1
    rows_by_key: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        rows_by_key.setdefault((row["policy"], *([row.get("load")] if several else [])), []).append(row)
    columns = [column for column in COLUMNS if column.name in names]
    means = {
        key: {c.name: _mean([row.get(c.name) for row in own]) for c in columns} for key, own in rows_by_key.items()
    }
    scaled = [(column, scale_of(column, [mean[column.name] for mean in means.values()])) for column in columns]
    heads = "".join(
        f"<th>{escaped(text)}</th>" for text in ("policy", *["load"] * several, *(heading(*c) for c in scaled))
    )
    body = []
    for key in sorted(means, key=lambda key: (key[1:], math.inf if (m := means[key]["jct_mean_s"]) is None else m)):
        cells = [*map(str, key), *(number(means[key][c.name], c, scale) for c, scale in scaled)]
        body.append(f"<tr>{''.join(f'<td>{escaped(text)}</td>' for text in cells)}</tr>")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def summary_table(content: ReportContent) -> str:
    """Return every number of every run, one row for each field of summary.json."""
    names = dict.fromkeys(name for run in content.runs for name in run.summary)
    several = len({(run.load, run.seed) for run in content.runs}) > 1
    heads = [f"{run.label}, load {run.load:g}, seed {run.seed}" if several else run.label for run in content.runs]
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in ("Number", *heads))
    cells_by_name = {
        name: "".join(f"<td>{exact(run.summary.get(name))}</td>" for run in content.runs) for name in names
    }
    body = "".join(f'<tr><th scope="row">{escaped(name)}</th>{cells}</tr>' for name, cells in cells_by_name.items())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def exact(value: float | int | None) -> str:
    """Return a number with six significant digits, an integer in full; a dash for an unknown one."""
    if value is None or not math.isfinite(value):
        return ABSENT
    return f"{value:,d}" if isinstance(value, int) else f"{value:,.6g}"
