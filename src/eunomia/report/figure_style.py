"""The size and the text of figures for papers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eunomia.inputs.html import plain
from eunomia.inputs.problems import Problems

FORMATS = ("png", "svg", "pdf")
METADATA: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}  # no dates
INCHES = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54, "pt": 1 / 72}
LENGTH = re.compile(r"([0-9]*\.?[0-9]+)\s*(in|mm|cm|pt)?")
WIDTHS = (1.0, 40.0)  # in
FONTS = (4.0, 40.0)  # pt


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureStyle:
    """The size of a figure and of its text, and the names to show for policies."""

    width_in: float = 3.33  # one column of most papers
    font_pt: float = 8.0
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, label: str) -> str:
        """Return the name to show for a policy."""
        return plain(self.names.get(label, label))


def settings_of(style: FigureStyle) -> Any:
    """Return matplotlib's settings: TrueType text in PDF, text as text in SVG, the same bytes each time."""
    size = style.font_pt
    return {
        "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "eunomia", "text.parse_math": False,
        "font.size": size, "axes.labelsize": size, "legend.fontsize": size, "xtick.labelsize": size,
        "ytick.labelsize": size, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
        "lines.linewidth": 1.1, "lines.markersize": 3.5, "hatch.linewidth": 0.5, "axes.axisbelow": True,
        "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.4,
    }  # fmt: skip


def parse_style(width: str | None, font: float | None, names: Sequence[str]) -> FigureStyle | None:
    """Return the style of `--width`, `--font` and `--name LABEL=NAME`; None without any. Raises InvalidInput."""
    problems, given = Problems("command line"), FigureStyle()
    found = None if width is None else LENGTH.fullmatch(width.strip())
    size = given.width_in if found is None else float(found[1]) * INCHES[found[2] or "in"]
    if (width is not None and found is None) or not WIDTHS[0] <= size <= WIDTHS[1]:
        problems.add("is a length from 1 to 40 inches", "write 3.33in, 85mm or 240pt", column="--width", value=width)
    if font is not None and not FONTS[0] <= font <= FONTS[1]:
        problems.add("is a size from 4 to 40 points", "write --font 8", column="--font", value=font)
    problems.raise_if_any()
    if width is None and font is None:
        return None
    return FigureStyle(width_in=size, font_pt=font or given.font_pt, names=parse_names(names))


def parse_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names to show by label: `mine.py:Mine?a=1=Ours` names `mine.py:Mine?a=1`. Raises InvalidInput."""
    problems, found = Problems("command line"), dict[str, str]()
    for text in names:
        label, equals, name = text.rpartition("=")
        if not (label and equals and name):
            fix = "write --name 'mine.py:Mine=Ours'"
            problems.add("is a policy as it was given, =, and the name to show", fix, column="--name", value=text)
        found[label] = name
    problems.raise_if_any()
    return found


def parse_formats(text: str) -> tuple[str, ...]:
    """Return the formats of `--charts pdf,svg`. Raises InvalidInput for an unknown one."""
    formats = tuple(dict.fromkeys(text.lower().split(",")))
    check_formats(formats, "command line", "--charts")
    return formats


def check_formats(formats: Sequence[str], file: str, column: str) -> None:
    """Raise InvalidInput with every format that cannot be written."""
    problems = Problems(file)
    for name in formats:
        if name not in FORMATS:
            problems.add(f"is one of {', '.join(FORMATS)}", "choose one of them", column=column, value=name)
    problems.raise_if_any()
