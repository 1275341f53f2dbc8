"""The charts of the report as picture files, drawn by matplotlib without a display."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.problems import Problems
from eunomia.report.all_charts import charts
from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.content import ReportContent
from eunomia.report.escape import plain
from eunomia.report.number_format import DAY, HOUR, MINUTE, Unit, shown

FORMATS = ("png", "svg", "pdf")
METADATA: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}  # no dates
COLOURS = ("#0072b2", "#c84c00", "#00805a", "#a8448a", "#6f5200", "#3d8fd1", "#4a4a4a", "#b98300")
DASHES: tuple[Any, ...] = (
    "-", (0, (4, 1.5)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)), (0, (7, 2)), (0, (0.5, 1)), "-.",
)  # fmt: skip
HATCHES = ("", "///", "---", "\\\\\\")
TIME_TICKS = (0.01, 0.1, 1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 100 * DAY, 1000 * DAY)
TIME_STEPS = (1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 50 * DAY)

# Names are shown verbatim (`$` starts no formula), and the same content gives the same bytes.
STYLE: Any = {"text.parse_math": False, "svg.hashsalt": "eunomia", "font.size": 9, "axes.spines.top": False,
         "axes.spines.right": False, "axes.grid": True, "grid.color": "#e8ebef", "axes.axisbelow": True}  # fmt: skip


def export_charts(content: ReportContent, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write each chart in each format, whole or not at all; return the files. Raises InvalidInput on another format."""
    problems = Problems("charts")
    for name in formats:
        if name not in FORMATS:
            problems.add(f"is one of {', '.join(FORMATS)}", "choose one of them", column="format", value=name)
    problems.raise_if_any()
    written = []
    for chart in charts(content):
        for name, picture in pictures(chart, formats).items():
            written.append(folder / f"{chart.name}.{name}")
            write_whole(written[-1], picture)
    return written


def pictures(chart: Chart, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of a chart in each format."""
    with mpl.rc_context(STYLE):
        figure = draw_chart(chart)
        return {name: encode(figure, name) for name in formats}


def encode(figure: Figure, form: str) -> bytes:
    """Return the bytes of a picture, without its date."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=150, metadata=METADATA[form])
    return buffer.getvalue()


def draw_chart(chart: Chart) -> Figure:
    """Return the figure of a chart: panels in two columns, one legend below."""
    columns = min(2, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure = Figure(
        figsize=(7.2 if columns == 1 else 10, 4.2 if columns == 1 else 2.6 * rows + 1), layout="constrained"
    )
    panes = figure.subplots(rows, columns, squeeze=False, sharex=chart.kind != "bars").ravel()
    for pane, panel in zip(panes, chart.panels, strict=False):
        draw_panel(pane, chart, panel)
    for pane in panes[len(chart.panels) :]:
        pane.set_visible(False)
    at_load = "" if chart.load is None else f" at load {chart.load:g}"
    figure.suptitle(chart.title + at_load, fontsize=11, fontweight="bold")
    draw_legend(figure, chart, panes)
    return figure


def draw_legend(figure: Figure, chart: Chart, panes: Iterable[Axes]) -> None:
    """Name every series once. A space precedes a name that begins with `_`: matplotlib would leave it out."""
    handle_by_name: dict[str, Any] = {}
    for pane, panel in zip(panes, chart.panels, strict=False):
        bars = [mark for mark in pane.containers if isinstance(mark, BarContainer)]
        marks = bars if chart.kind == "bars" else pane.lines
        handle_by_name.update(zip((series.name for series in panel.series), marks, strict=False))
    names = [plain(name) for name in handle_by_name]
    shifted = [f" {name}" if name.startswith("_") else name for name in names]
    columns = max(1, min(len(names), 100 // (8 + max(map(len, names), default=0))))
    figure.legend(list(handle_by_name.values()), shifted, loc="outside lower center", ncols=columns, frameon=False)


def draw_panel(pane: Axes, chart: Chart, panel: Panel) -> None:
    """Draw one panel."""
    for number, series in enumerate(panel.series):
        if chart.kind == "bars":
            draw_bars(pane, series, number, len(panel.series))
        else:
            draw_curve(pane, chart, series)
    if chart.mark:
        pane.axvline(chart.mark[0], color="#57606a", linestyle="--", linewidth=1)
        label = pane.annotate(chart.mark[1], (chart.mark[0], 0.02), (3, 0), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="bottom", color="#57606a")  # fmt: skip
        label.set_in_layout(False)
    pane.set_title(plain(panel.title), fontsize=9, loc="left")
    pane.set_ylabel(chart.y.label)
    pane.set_xlabel(chart.x.label)
    scale_axis(pane, "y", chart.y)
    if chart.kind == "bars":
        label_categories(pane, chart)
    else:
        scale_axis(pane, "x", chart.x)
    if chart.kind == "line":
        pane.set_xticks(panel.series[0].x)


def label_categories(pane: Axes, chart: Chart) -> None:
    """Write the categories below the bars, where there are several."""
    pane.grid(visible=False, axis="x")
    if len(chart.categories) > 1:
        pane.set_xticks(range(len(chart.categories)), [plain(name) for name in chart.categories])
    else:
        pane.set_xticks([])
        pane.set_xlabel("")


def draw_bars(pane: Axes, s: Series, number: int, count: int) -> None:
    """Draw one series of bars beside the others."""
    width = 0.84 / count
    span = np.abs(np.vstack([s.y - s.low, s.high - s.y])) if s.low.size else None
    pane.bar(s.x + width * (number - (count - 1) / 2), s.y, width * 0.92, color=COLOURS[s.style % 8],
             hatch=HATCHES[s.style % 4], edgecolor="white", yerr=span)  # fmt: skip


def draw_curve(pane: Axes, chart: Chart, s: Series) -> None:
    """Draw one line, and its range over the seeds."""
    style = {"color": COLOURS[s.style % 8], "linestyle": DASHES[(s.style + s.style // 8) % 8], "linewidth": 1.6}
    if chart.kind in ("steps", "cdf"):
        from_zero = chart.kind == "cdf" and not (chart.x.low is not None and s.x[0] <= chart.x.low)
        x, y = (np.append(s.x[:1], s.x), np.append(0.0, s.y)) if from_zero else (s.x, s.y)
        pane.plot(x, y, drawstyle="steps-post", **style)
        return
    pane.plot(s.x, s.y, marker="o", markersize=4, **style)
    if s.low.size:
        pane.fill_between(s.x, s.low, s.high, color=style["color"], alpha=0.14, linewidth=0)
        pane.vlines(s.x, s.low, s.high, color=style["color"])


def scale_axis(pane: Axes, side: str, axis: Axis) -> None:
    """Scale one axis and write its ticks in its unit."""
    ruler = pane.xaxis if side == "x" else pane.yaxis
    (pane.set_xscale if side == "x" else pane.set_yscale)(axis.scale)
    limit = pane.set_xlim if side == "x" else pane.set_ylim
    limit(axis.low, None if axis.high is None else axis.high * 1.02)
    low, high = pane.get_xlim() if side == "x" else pane.get_ylim()
    if axis.unit == "s":
        ruler.set_major_locator(FixedLocator(time_ticks(low, high, axis.scale == "log")))
    elif axis.scale == "linear":
        ruler.set_major_locator(MaxNLocator(6, integer=axis.unit == "count"))
    ruler.set_minor_locator(NullLocator())
    ruler.set_minor_formatter(NullFormatter())
    ruler.set_major_formatter(FuncFormatter(lambda value, _: tick(value, axis.unit)))


def time_ticks(low: float, high: float, log: bool) -> list[float]:
    """Return the ticks of a time axis: round numbers, at most eight on a linear axis."""
    if log:
        return [time for time in TIME_TICKS if low <= time <= high]
    step = next((step for step in TIME_STEPS if (high - low) / step <= 8), math.ceil((high - low) / 8))
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick(value: float, unit: Unit) -> str:
    """Return the label of a tick: no more digits than a round number has."""
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "s":
        size, name = next(((s, n) for s, n in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")) if value >= s), (1.0, "s"))
        return f"{value / size:g} {name}" if value else "0"
    return f"{value:,.10g}" if unit in ("count", "usd", "ratio") else shown(value, unit)
