"""Published and measured curves in one picture, drawn by matplotlib without a display."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FORMATS = ("svg", "png")
COLOURS = ("#0072b2", "#c84c00", "#00805a", "#a8448a", "#6f5200", "#3d8fd1", "#4a4a4a", "#b98300")
MARKERS = "os^Dv<>P"
STYLE: Any = {"text.parse_math": False, "svg.hashsalt": "eunomia", "svg.fonttype": "none", "font.size": 9}


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureCurve:
    """One line: y over x; `low` and `high` are the ends of an interval around each y, or empty."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    published: bool = False  # drawn hollow and dashed; a measured curve of the same name has the same colour
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One pair of axes with its curves. `name` is the stem of the picture files."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: tuple[FigureCurve, ...]
    x_log: bool = False
    y_log: bool = False
    steps: bool = False  # a value holds until the next, as in a distribution

    def pictures(self) -> dict[str, bytes]:
        """Return the picture's bytes by format; the same figure gives the same bytes."""
        import matplotlib as mpl  # half a second, and only needed here
        from matplotlib.figure import Figure as Canvas

        with mpl.rc_context(STYLE):
            canvas = Canvas(figsize=(8.6, 4.2), layout="constrained")
            axes = canvas.add_subplot()
            axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
            _scale_log(axes, *(side for side, log in (("x", self.x_log), ("y", self.y_log)) if log))
            axes.grid(color="#e8ebef")
            names = list(dict.fromkeys(curve.name for curve in self.curves))
            for curve in self.curves:
                self._draw(axes, curve, names.index(curve.name))
            axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
            return {kind: _saved(canvas, kind) for kind in FORMATS}

    def _draw(self, axes: Any, curve: FigureCurve, style: int) -> None:
        colour = COLOURS[style % len(COLOURS)]
        axes.plot(
            curve.x,
            curve.y,
            label=f"{curve.name}, {'published' if curve.published else 'measured'}",
            color=colour,
            linestyle="--" if curve.published else "-",
            linewidth=1.0 if curve.published else 1.6,
            marker="" if self.steps else MARKERS[style % len(MARKERS)],
            markerfacecolor="white" if curve.published else colour,
            markersize=5,
            drawstyle="steps-post" if self.steps else "default",
        )
        if len(curve.low) and len(curve.high):
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)


def _scale_log(axes: Any, *sides: str) -> None:
    """Make axes logarithmic, with plain numbers at 1, 2 and 5 of each decade."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for side in sides:
        axes.set(**{f"{side}scale": "log"})
        ruler = getattr(axes, f"{side}axis")
        ruler.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ruler.set_major_formatter(StrMethodFormatter("{x:g}"))
        ruler.set_minor_formatter(NullFormatter())


def _saved(canvas: Any, kind: str) -> bytes:
    """Return the bytes of one format, without the hour at which it was made."""
    content = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(content, format=kind, dpi=150, metadata=metadata)
    return content.getvalue()
