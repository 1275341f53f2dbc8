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
from eunomia.inputs.html import plain
from eunomia.report.all_charts import charts
from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.figure_style import METADATA, FigureStyle, check_formats, settings_of
from eunomia.report.image_legend import add_legend
from eunomia.verdict.number_format import DAY, HOUR, MINUTE, Unit, shown
from eunomia.verdict.run_figures import ReportContent

COLOURS = ("#0072b2", "#c84c00", "#00805a", "#a8448a", "#6f5200", "#3d8fd1", "#4a4a4a", "#b98300")
PARTS = ("#5b3fa0", "#00727a", "#b0326e", "#5f6b00", "#9a5b2d", "#2f6db5", "#6b7280", "#a03a2a")  # tenants, types
TONES = {"better": "#116329", "worse": "#b3261e"}  # of differences; others are grey
DASHES: tuple[Any, ...] = (
    "-", (0, (4, 1.5)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)), (0, (7, 2)), (0, (0.5, 1)), "-.",
)  # fmt: skip
LYING = ("bars", "forest")  # charts with rows
CHANGES = (-0.9, -0.75, -0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0, 3.0, 9.0)
LEAST_CHANGE = -0.97  # that is drawn
HATCHES = ("", "///", "---", "\\\\\\")
TIME_TICKS = (0.01, 0.1, 1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, 100 * DAY, 1000 * DAY)
TIME_STEPS = (1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 50 * DAY)

# Names are shown verbatim (`$` starts no formula), and the same content gives the same bytes.
STYLE: Any = {"text.parse_math": False, "svg.hashsalt": "eunomia", "font.size": 9, "axes.spines.top": False,
         "axes.spines.right": False, "axes.grid": True, "grid.color": "#e8ebef", "axes.axisbelow": True}  # fmt: skip


def export_charts(
    content: ReportContent, folder: Path, formats: Sequence[str] = ("png", "svg"), style: FigureStyle | None = None
) -> list[Path]:
    """Write each chart in each format, whole or not at all; return the files. Raises InvalidInput on another format."""
    return export_drawn(charts(content), folder, formats, style)


def export_drawn(
    drawn: Iterable[Chart], folder: Path, formats: Sequence[str], style: FigureStyle | None = None
) -> list[Path]:
    """Write the given charts; with a style in the size and without the titles of figures of papers."""
    check_formats(formats, "charts", "format")
    written = []
    for chart in drawn:
        for name, picture in pictures(chart, formats, style).items():
            written.append(folder / f"{chart.name}.{name}")
            write_whole(written[-1], picture)
    return written


def pictures(chart: Chart, formats: Sequence[str], style: FigureStyle | None = None) -> dict[str, bytes]:
    """Return the bytes of a chart in each format."""
    with mpl.rc_context(STYLE if style is None else settings_of(style)):
        figure = draw_chart(chart, style)
        return {name: encode(figure, name) for name in formats}


def encode(figure: Figure, form: str) -> bytes:
    """Return the bytes of a picture, without its date."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=150 if form == "svg" else 200, metadata=METADATA[form])
    return buffer.getvalue()


def draw_chart(chart: Chart, style: FigureStyle | None = None) -> Figure:
    """Return the figure of a chart: panels in two columns, or in one where it is narrow, and one legend below."""
    width = style.width_in if style else 7.2 if len(chart.panels) == 1 else 10.0
    columns = min(2 if width >= 5 else 1, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure = Figure(figsize=(width, rows * row_height(chart, width / columns, columns, style)), layout="constrained")
    panes = figure.subplots(rows, columns, squeeze=False, sharex=chart.kind not in LYING).ravel()
    for pane, panel in zip(panes, chart.panels, strict=False):
        draw_panel(pane, chart, panel)
    for pane in panes[len(chart.panels) :]:
        pane.set_visible(False)
    if style is None:
        at_load = "" if chart.load is None else f" at load {chart.load:g}"
        figure.suptitle(chart.title + at_load, fontsize=11, fontweight="bold")
    draw_legend(figure, chart, panes)
    return figure


def row_height(chart: Chart, width: float, columns: int, style: FigureStyle | None) -> float:
    """Return the height of a row of panels, in inches: rows of bars need one line each."""
    if chart.kind in LYING:
        lines = max(sum(series.x.size for series in panel.series) for panel in chart.panels)
        return 0.9 + lines * (style.font_pt if style else 9.0) / 72 * 1.9
    return width * 0.66 if style else 4.2 if columns == 1 and len(chart.panels) == 1 else 3.0


def draw_legend(figure: Figure, chart: Chart, panes: Iterable[Axes]) -> None:
    """Name every series once, below the panels."""
    if chart.kind == "forest" or (chart.kind == "bars" and len(chart.categories) <= 1):
        return
    handle_by_name: dict[str, Any] = {}
    for pane, panel in zip(panes, chart.panels, strict=False):
        bars = [mark for mark in pane.containers if isinstance(mark, BarContainer)]
        marks = bars if chart.kind == "bars" else pane.lines
        handle_by_name.update(zip((series.name for series in panel.series), marks, strict=False))
    if handle_by_name:
        add_legend(figure, list(handle_by_name.values()), [plain(name) for name in handle_by_name], "lower")


def draw_panel(pane: Axes, chart: Chart, panel: Panel) -> None:
    """Draw one panel."""
    if panel.title:
        pane.set_title(plain(panel.title), fontsize="medium", loc="left")
    if chart.kind in LYING:
        (draw_bars if chart.kind == "bars" else draw_differences)(pane, chart, panel)
        pane.invert_yaxis()
        pane.grid(visible=False, axis="y")
        pane.tick_params(axis="y", length=0)
        return
    for series in panel.series:
        draw_curve(pane, chart, series)
    if chart.mark:
        pane.axvline(chart.mark[0], color="#57606a", linestyle="--", linewidth=1)
        label = pane.annotate(chart.mark[1], (chart.mark[0], 0.02), (3, 0), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="bottom", color="#57606a")  # fmt: skip
        label.set_in_layout(False)
    pane.set_ylabel(chart.y.label)
    pane.set_xlabel(chart.x.label)
    scale_axis(pane, "y", chart.y)
    scale_axis(pane, "x", chart.x)
    if chart.kind == "line":
        pane.set_xticks(panel.series[0].x)


def draw_bars(pane: Axes, chart: Chart, panel: Panel) -> None:
    """Draw lying bars: one for each series by its name, or a group of them for each category."""
    alone, count = len(chart.categories) <= 1, len(panel.series)
    colours = PARTS if chart.palette == "parts" else COLOURS
    for number, s in enumerate(panel.series):
        width = 0.75 if alone else 0.84 / count
        at = np.array([float(number)]) if alone else s.x + width * (number - (count - 1) / 2)
        span = np.abs(np.vstack([s.y - s.low, s.high - s.y])) if s.low.size else None
        pane.barh(at, s.y, width * 0.92, color=colours[s.style % 8], hatch=HATCHES[s.style % 4], edgecolor="white",
                  xerr=span)  # fmt: skip
    names = [s.name for s in panel.series] if alone else chart.categories
    pane.set_yticks(range(len(names)), [plain(name) for name in names])
    pane.set_xlabel(chart.y.label)
    if not alone:
        pane.set_ylabel(chart.x.label)
    scale_axis(pane, "x", chart.y)


def draw_differences(pane: Axes, chart: Chart, panel: Panel) -> None:
    """Draw a dot and a whisker for each difference, in per cent on a scale of ratios."""
    names, row = [], 0
    for s in panel.series:
        for k in range(s.x.size):
            colour = TONES.get(s.tones[k], "#57606a")
            if s.low.size and np.isfinite(s.low[k]):
                ends = np.log1p(np.clip([s.low[k], s.high[k]], LEAST_CHANGE, None))
                pane.plot(ends, [row, row], color=colour)
            sure = s.tones[k] in TONES
            pane.plot(np.log1p(max(s.y[k], LEAST_CHANGE)), row, marker="o", color=colour,
                      markerfacecolor=colour if sure else "white")  # fmt: skip
            names.append(f"{chart.categories[int(s.x[k])]}{f', {s.name}' if s.name else ''}")
            row += 1
    pane.axvline(0.0, color="black", linewidth=0.8)
    pane.set_yticks(range(len(names)), [plain(name) for name in names])
    pane.set_ylim(-0.6, len(names) - 0.4)
    low, high = pane.get_xlim()
    inside = [part for part in CHANGES if low <= np.log1p(part) <= high]
    kept = inside if len(inside) <= 6 else [part for part in inside if part in (-0.9, -0.5, 0.0, 1.0, 9.0)]
    pane.set_xticks(
        [float(np.log1p(part)) for part in kept], [f"{100 * part:+.0f} %" if part else "0" for part in kept]
    )
    pane.set_xlabel(chart.x.label)


def draw_curve(pane: Axes, chart: Chart, s: Series) -> None:
    """Draw one line, and its interval over the seeds."""
    colours = PARTS if chart.palette == "parts" else COLOURS
    style = {"color": colours[s.style % 8], "linestyle": DASHES[(s.style + s.style // 8) % 8], "linewidth": 1.6}
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
    last = math.inf
    if axis.unit == "s":
        ticks = time_ticks(low, high, axis.scale == "log")
        ruler.set_major_locator(FixedLocator(ticks))
        last = ticks[-1] if ticks and axis.scale == "linear" else math.inf
    elif axis.scale == "linear":
        ruler.set_major_locator(MaxNLocator(6, integer=axis.unit == "count"))
    ruler.set_minor_locator(NullLocator())
    ruler.set_minor_formatter(NullFormatter())
    ruler.set_major_formatter(FuncFormatter(lambda value, _: tick(value, axis.unit, last)))


def time_ticks(low: float, high: float, log: bool) -> list[float]:
    """Return the ticks of a time axis: round numbers, at most eight on a linear axis."""
    if log:
        return [time for time in TIME_TICKS if low <= time <= high]
    step = next((step for step in TIME_STEPS if (high - low) / step <= 8), math.ceil((high - low) / 8))
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick(value: float, unit: Unit, last: float = math.inf) -> str:
    """Return the label of a tick, no more digits than a round number has; times in the unit of the `last` tick."""
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "s":
        size, name = next(
            (
                (s, n)
                for s, n in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"))
                if (value if last == math.inf else last) >= s
            ),
            (1.0, "s"),
        )
        return f"{value / size:g} {name}" if value else "0"
    return f"{value:,.10g}" if unit in ("count", "usd", "ratio") else shown(value, unit)
