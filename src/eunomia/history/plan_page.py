"""The report of a purchase plan: the recommendation, a table, a picture, and what was assumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eunomia.history.purchase import Candidate, Purchase, recommend
from eunomia.history.weeks import described
from eunomia.history.whatif import mean_wait_s
from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.frame import chart_numbers, framed
from eunomia.report.image_export import pictures
from eunomia.report.table import TextTable
from eunomia.runs.result_files import write_columns, write_json
from eunomia.verdict.number_format import duration, plural, shown

PAGE, NUMBERS, TABLE, PICTURE = "report.html", "plan.json", "plan.csv", "plan.svg"
HEADINGS = ("purchase", "US$", "weeks", "done sooner by", "95 % interval", "mean queueing", "busy")


def write_plan(found: Purchase, out: Path) -> None:
    """Write report.html, plan.json, plan.csv and plan.svg into a folder."""
    chart = plan_chart(found)
    write_json(out / NUMBERS, found.as_dict())
    write_columns(out / TABLE, _columns(found))
    (out / PICTURE).write_bytes(pictures(chart, ("svg",))["svg"])
    (out / PAGE).write_text(plan_html(found, chart), encoding="utf-8")


def plan_html(found: Purchase, chart: Chart) -> str:
    """Return the page."""
    periods = described(found.periods)
    return framed(
        "plan.html",
        f"What to buy for {found.budget_usd:,.0f} US$",
        f"judged on {periods} of the cluster's own history",
        {"version": 1, **found.as_dict(), "charts": [chart_numbers(chart)]},
        verdict=[found.log_sentence, recommend(found)],
        candidates=TextTable(HEADINGS, tuple(map(row_of, found.ranked))),
        periods=periods,
        charts=[chart],
        assumed=found.assumed,
    )


def row_of(one: Candidate) -> tuple[str, ...]:
    """Return the cells of a candidate, as HEADINGS."""
    change = one.change
    assert change is not None
    interval = "–"
    if change.low is not None and change.high is not None:
        interval = f"{100 * -change.high:.1f} to {100 * -change.low:.1f} %"
    wait = mean_wait_s(one.runs)
    busy = float(np.mean([run.utilization or 0.0 for run in one.runs]))
    return (
        one.name,
        f"{one.usd:,.0f}",
        str(len(one.runs)),
        shown(-change.mean, "share"),
        interval,
        duration(wait),
        shown(busy, "share"),
    )


def plan_chart(found: Purchase) -> Chart:
    """Return bars of how much sooner jobs are done under the candidates that were judged on every period."""
    finalists = found.finalists
    changes = [one.change for one in finalists if one.change is not None]
    at = np.arange(len(finalists), dtype=np.float64)
    nothing = np.full(len(finalists), np.nan)
    has_intervals = all(change.low is not None for change in changes)
    low = np.array([-(change.high or 0.0) for change in changes]) if has_intervals else nothing
    high = np.array([-(change.low or 0.0) for change in changes]) if has_intervals else nothing
    bars = Series(
        name="sooner",
        style=0,
        x=at,
        y=np.array([-change.mean for change in changes]),
        low=low,
        high=high,
        details=tuple(f"{one.usd:,.0f} US$" for one in finalists),
    )
    return Chart(
        name="plan",
        title="How much sooner jobs are done",
        how_to_read=f"The mean time to completion, relative to today's cluster, of candidates judged on all "
        f"{plural(len(found.periods), 'period')}; the line is the 95 % interval over them.",
        kind="bars",
        x=Axis(label="purchase", unit="plain"),
        y=Axis(label="sooner", unit="share"),
        panels=(Panel(series=(bars,)),),
        categories=tuple(one.name for one in finalists),
    )


def _columns(found: Purchase) -> dict[str, np.ndarray]:
    """Return the columns of plan.csv."""
    rows = found.as_dict()["candidates"]
    changes = [row["jct_change"] for row in rows]

    def numbers(values: list[float | None]) -> np.ndarray:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    return {
        "purchase": np.array([one.name for one in found.ranked], dtype=object),
        "usd": numbers([row["usd"] for row in rows]),
        "periods": np.array([row["periods"] for row in rows]),
        **{f"jct_change_{end}": numbers([change[end] for change in changes]) for end in ("mean", "low", "high")},
        **{name: numbers([row[name] for row in rows]) for name in ("jct_mean_s", "queueing_mean_s", "utilization")},
    }
