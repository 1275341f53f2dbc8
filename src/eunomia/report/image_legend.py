"""The legend of a picture: outside the panels, for which the picture grows, so that it covers and squeezes no data."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

LETTER = 0.6  # width of a letter, of the font size
HANDLE = 2.6  # width of the line or bar before a name, likewise
BESIDE = 4.5  # handle and gaps
LINE = 1.25  # height of a line
GAP = 0.5  # between two names
MARGIN = 1.6  # above and below all


def add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str], side: Literal["upper", "lower"]) -> None:
    """Name every handle above or below the panels, and make the figure higher by as much as that takes.

    Names wider than the figure are broken behind `?`, `&`, `,` or `/`.
    """
    size = float(mpl.rcParams["font.size"])
    width = figure.get_figwidth() * 72 / size
    lines = [_broken(name, int((width - BESIDE) / LETTER)) for name in names]
    widest = max(len(part) for parts in lines for part in parts)
    columns = max(1, min(len(names), int(width / (LETTER * widest + BESIDE))))
    rows = math.ceil(len(names) / columns)
    heights = [sum(LINE * len(parts) + GAP for parts in lines[row : row + rows]) for row in range(0, len(names), rows)]
    height = max(heights) + MARGIN
    figure.set_figheight(figure.get_figheight() + height * size / 72)
    where: Any = f"outside {side} center"
    figure.legend(
        list(handles), [_shown("\n".join(parts)) for parts in lines], loc=where, ncols=columns,
        frameon=False, handlelength=HANDLE, labelspacing=GAP,
    )  # fmt: skip


def _broken(name: str, letters: int) -> list[str]:
    """Return the lines of a name, of at most so many letters each."""
    lines = [""]
    for part in re.findall(r"[^?&,/]*[?&,/]?", name):
        if lines[-1] and len(lines[-1]) + len(part) > letters:
            lines.append("")
        lines[-1] += part
        while len(lines[-1]) > max(letters, 1):
            lines[-1:] = [lines[-1][: max(letters, 1)], lines[-1][max(letters, 1) :]]
    return lines


def _shown(name: str) -> str:
    """Return a name that matplotlib shows: it leaves out those that begin with `_`."""
    return f" {name}" if name.startswith("_") else name
