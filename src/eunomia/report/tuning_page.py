"""Files of a search of parameters: its measurements, and a picture of the best found; the picture of a training."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.image_export import COLOURS, STYLE, encode

PICTURE = "best-found"


def write_measurements(rows: Sequence[Mapping[str, Any]], title: str, folder: Path) -> None:
    """Write tune.csv and best-found.svg and .png; rows have the columns measurement, the parameters, ratio and best."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(folder / "tune.csv", text.getvalue().encode())
    with mpl.rc_context(STYLE):
        figure = _draw(rows, title)
        for form in ("svg", "png"):
            write_whole(folder / f"{PICTURE}.{form}", encode(figure, form))


def _draw(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    pane = figure.subplots()
    at = [row["measurement"] for row in rows]
    pane.axhline(1.0, color="#57606a", linewidth=1, label="the scenario's own values")
    pane.plot(at, [row["ratio"] for row in rows], "o", color=COLOURS[1], markersize=4, label="measured")
    pane.step(at, [row["best"] for row in rows], where="post", color=COLOURS[0], label="best so far")
    pane.set(xlabel="measurements", ylabel="mean completion time ÷ that of the scenario")
    pane.xaxis.set_major_locator(MaxNLocator(integer=True))
    pane.set_title(title, fontsize=10, loc="left")
    pane.legend(frameon=False, fontsize=8)
    return figure


def curve_picture(name: str, curve: Sequence[Mapping[str, float]], metric: str, best_step: int) -> bytes:
    """Return the SVG of one metric over the steps of training, with a mark at the step of the best model."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        pane = figure.subplots()
        steps, values = [point["step"] for point in curve], [point[metric] for point in curve]
        pane.plot(steps, values, color=COLOURS[0])
        best = steps.index(best_step)
        pane.plot(steps[best], values[best], "o", color=COLOURS[1])
        pane.set(xlabel="training step", ylabel=metric.replace("_", " "))
        pane.set_title(f"{name}: best after {best_step:,} steps", fontsize=10, loc="left")
        return encode(figure, "svg")
