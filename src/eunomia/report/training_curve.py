"""The picture of a training: its metric by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from eunomia.report.image_export import COLOURS, STYLE, encode


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
