"""One figure for a paper: a quantity against an axis, with intervals over the seeds; or one bar for each policy."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.html import plain
from eunomia.inputs.problems import Problems
from eunomia.metrics.statistics import Estimate, estimate, one_run
from eunomia.model.spelling_suggestions import nearest
from eunomia.report.chart import styles_of
from eunomia.report.figure_style import FORMATS, METADATA, FigureStyle, settings_of
from eunomia.report.image_export import COLOURS, DASHES, HATCHES
from eunomia.report.image_legend import add_legend
from eunomia.verdict.number_format import common_scale
from eunomia.verdict.ranking import COLUMNS, MEASURES

Row = Mapping[str, Any]  # policy, load, seed, and the fields of summary.json
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BY_POLICY = "policy"
GOLDEN = 0.66  # height ÷ width


def draw_figure(rows: Sequence[Row], y: str, x: str, style: FigureStyle | None = None) -> Figure:
    """Return the figure of field `y` against `x`, a column of numbers such as load, or `policy` for bars.

    Points are averages over the seeds with 95 % intervals (Student's t); other columns must not vary. Raises
    InvalidInput for an unknown field.
    """
    style = style or FigureStyle()
    _check_fields(rows, y, x)
    scale, label = _unit(y, [row.get(y) for row in rows])
    values: dict[str, dict[float, list[float]]] = {}
    for row in _replications(rows, x):
        if row.get(y) is not None:
            at = 0.0 if x == BY_POLICY else float(row[x])
            values.setdefault(str(row["policy"]), {}).setdefault(at, []).append(float(row[y]) / scale)
    found = {
        name: {at: one for at, several in sorted(places.items()) if (one := estimate(np.array(several))) is not None}
        for name, places in values.items()
    }
    with mpl.rc_context(settings_of(style)):
        height = style.width_in * GOLDEN if x != BY_POLICY else (1.9 * len(found) * style.font_pt + 34) / 72
        figure = Figure(figsize=(style.width_in, height), layout="constrained")
        pane = figure.subplots()
        (_draw_bars if x == BY_POLICY else _draw_lines)(pane, found, style)
        (pane.set_xlabel if x == BY_POLICY else pane.set_ylabel)(label)
        if x != BY_POLICY:
            pane.set_xlabel(plain(x))
            add_legend(figure, pane.get_legend_handles_labels()[0], [style.name(name) for name in found], "upper")
        return figure


def _replications(rows: Sequence[Row], x: str) -> Iterator[Row]:
    """Yield the rows that count: of one policy's seeds at one place that gave the same run only the first."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["policy"], row.get("load"), row.get(x)), []).append(row)
    for group in groups.values():
        fields = [name for name in group[0] if name != "seed" and _is_number(group[0][name])]
        values = {name: {row.get("seed", k): row[name] for k, row in enumerate(group)} for name in fields}
        yield from group[:1] if one_run(values, len(group)) else group


def save_figure(figure: Figure, path: Path, style: FigureStyle | None = None) -> None:
    """Write a figure in the format that the path ends with. Raises InvalidInput for another one."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        problems = Problems(str(path))
        problems.add(f"ends with .{', .'.join(FORMATS)}", "name the file like fig.pdf", column="--out", value=path.name)
        problems.raise_if_any()
    buffer = io.BytesIO()
    with mpl.rc_context(settings_of(style or FigureStyle())):
        figure.savefig(buffer, format=form, dpi=300, metadata=METADATA[form])
    write_whole(path, buffer.getvalue())


def _draw_lines(pane: Axes, found: Mapping[str, Mapping[float, Estimate]], style: FigureStyle) -> None:
    every = [at for places in found.values() for at in places]
    step = 0.012 * (max(every) - min(every))  # beside each other, so that whiskers do not overlap
    for row, (name, number) in enumerate(styles_of(list(found)).items()):
        places = {at + step * (row - (len(found) - 1) / 2): one for at, one in found[name].items()}
        half = [one.half or 0.0 for one in places.values()]
        pane.errorbar(
            list(places), [one.mean for one in places.values()], yerr=half if any(half) else None, capsize=2,
            label=f"{row}", color=COLOURS[number % 8], marker=MARKERS[number % 8],
            linestyle=DASHES[(number + number // 8) % 8], markerfacecolor="white", elinewidth=0.8,
        )  # fmt: skip
    pane.yaxis.set_major_locator(MaxNLocator(5))
    pane.set_xticks(sorted(set(every)))


def _draw_bars(pane: Axes, found: Mapping[str, Mapping[float, Estimate]], style: FigureStyle) -> None:
    names, styles = list(found), styles_of(list(found))
    for row, name in enumerate(names):
        (one,) = found[name].values()
        pane.barh(
            row, one.mean, xerr=one.half, height=0.7, color=COLOURS[styles[name] % 8], edgecolor="white",
            hatch=HATCHES[styles[name] % 4], error_kw={"elinewidth": 0.8, "capsize": 2},
        )  # fmt: skip
    pane.set_yticks(range(len(names)), [style.name(name) for name in names])
    pane.invert_yaxis()
    pane.grid(visible=False, axis="y")
    pane.tick_params(axis="y", length=0)


def _check_fields(rows: Sequence[Row], y: str, x: str) -> None:
    problems = Problems("figure")
    numbers = [key for key in rows[0] if key != BY_POLICY and any(_is_number(row.get(key)) for row in rows)]
    for option, name, known in (("y", y, numbers), ("x", x, [BY_POLICY, *numbers])):
        if name not in known:
            is_file = name.endswith(tuple(f".{ending}" for ending in FORMATS))
            fix = f"name the picture with file={name!r}" if is_file else nearest(name, known)
            problems.add("there is no such column of numbers", fix, column=option, value=name)
    problems.raise_if_any()
    varying = [key for key in ("load",) if key not in (x, y) and len({row.get(key) for row in rows}) > 1]
    for key in varying:
        fix = f"draw along it (x={key}), or give the results of one"
        problems.add(f"{key} has several values, which would be averaged", fix, column="x", value=x)
    problems.raise_if_any()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unit(name: str, values: Sequence[float | None]) -> tuple[float, str]:
    """Return what to divide a field by, and the label of its axis."""
    heading = next((what for field_, what, _ in MEASURES if field_ == name), None)
    column = next((column for column in COLUMNS if column.name == name), None)
    what = heading or (column.heading if column else name.removesuffix("_s").replace("_", " "))
    if name.endswith("_s"):
        scale, unit = common_scale(values)
        return scale, f"{what} ({unit})"
    if (column is not None and column.unit == "share") or name.startswith("utilization"):
        return 0.01, f"{what} (%)"
    return 1.0, f"{what} (US$)" if name.endswith("_usd") else what
