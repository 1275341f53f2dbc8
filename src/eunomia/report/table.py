"""The tables of the report, as HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from eunomia.report.content import ReportContent
from eunomia.report.escape import escaped
from eunomia.report.judgement import tied
from eunomia.report.number_format import ABSENT, Unit, shown
from eunomia.report.seed_groups import Kind, SeedGroup, comparable, seed_groups


@dataclass(frozen=True)
class Column:
    """One field of summary.json: its name, its heading, and whether low or high is better."""

    name: str
    heading: str
    unit: Unit
    better: Literal["low", "high"] | None = "low"
    kind: Kind = "jobs"  # what it is an average of


COLUMNS = (
    Column("apps_finished", "Apps finished", "count", None),
    Column("app_jct_mean_s", "App time average", "s", kind="apps"),
    Column("jct_mean_s", "JCT average", "s"),
    Column("jct_p50_s", "JCT median", "s"),
    Column("jct_p95_s", "JCT 95th pct.", "s"),
    Column("jct_p99_s", "JCT 99th pct.", "s"),
    Column("queueing_mean_s", "Wait average", "s"),
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
MARK = '<b class="best" title="best in its column">★<span class="unseen"> best</span></b> '
TIED = '<b class="tied" title="tied for the best">≈<span class="unseen"> tied for the best</span></b> '


def run_table(content: ReportContent) -> str:
    """Return the table of the settings: one row each, the best of each column starred among settings of one load."""
    every = seed_groups(content)
    several = len({setting.load for setting in every}) > 1
    known = [column for column in COLUMNS if any(setting.values(column.name).size for setting in every)]
    if len({setting.mean("jobs_submitted") for setting in every}) == 1:  # the subtitle says it
        known = [column for column in known if column.name != "jobs_submitted"]
    heads = ["Policy", *(["Load"] if several else []), *(column.heading for column in known)]
    group_by_load = {at: tuple(s for s in every if s.load == at) for at in (s.load for s in every)}
    rows = "".join(row(setting, group_by_load[setting.load], known, several) for setting in every)
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def row(setting: SeedGroup, group: tuple[SeedGroup, ...], known: list[Column], several: bool) -> str:
    """Return one setting's row."""
    load = f"<td>{setting.load:g}</td>" if several else ""
    cells = "".join(cell(setting, group, column) for column in known)
    begins = ' class="next"' if several and setting is group[0] else ""
    return f'<tr{begins}><th scope="row">{escaped(setting.label)}</th>{load}{cells}</tr>'


def cell(setting: SeedGroup, group: tuple[SeedGroup, ...], column: Column) -> str:
    """Return one number, its range over the seeds beside it, and a star when none of its load is better."""
    values, text = setting.values(column.name), shown(setting.mean(column.name), column.unit)
    span = ""
    if values.size > 1 and values.min() < values.max():
        least, most = (shown(end, column.unit).replace(" ", "\u00a0") for end in (values.min(), values.max()))
        span = f" <small>{least} to {most}</small>"
    return f"<td>{mark(setting, group, column)}{escaped(text)}{span}</td>"


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
