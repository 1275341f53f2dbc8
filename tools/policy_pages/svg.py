"""Pictures of rectangles and words, as SVG: the same bytes on every machine, and no fonts inside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

INK, FAINT, EMPTY = "#222222", "#767676", "#ffffff"
FILL = ("#0b4f8a", "#f2b134", "#5bb5a2", "#d9d9d9")  # by type; they differ in lightness, so that grey prints do too
ON_FILL = (EMPTY, INK, INK, INK)
HATCHED = "url(#beside)"  # white lines over a bar: two jobs on the same accelerators
LETTER = 0.6  # of the font size: a wide letter, so that what is said to fit does
HATCH = (
    '<pattern id="beside" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    f'<rect width="1.6" height="6" fill="{EMPTY}"/></pattern>'
)


@dataclass
class Drawing:
    """A picture that is being drawn, in units of one pixel; y grows downwards."""

    width: float
    height: float
    title: str  # what it shows, for those who cannot see it
    parts: list[str] = field(default_factory=list)

    def bar(self, x: float, y: float, width: float, height: float, fill: str, *, edge: str = "") -> None:
        """Draw a rectangle, with or without an outline."""
        outline = f' stroke="{edge}" stroke-width="0.8"' if edge else ""
        self.parts.append(f'<rect {_at(x, y)} {_size(width, height)} fill="{fill}"{outline}/>')

    def bars(self, places: Iterable[tuple[float, float]], y: float, height: float, fill: str) -> None:
        """Draw rectangles of one kind side by side, each from x to x."""
        path = "".join(
            f"M{_number(a)} {_number(y)}h{_number(b - a)}v{_number(height)}h{_number(a - b)}z" for a, b in places
        )
        if path:
            self.parts.append(f'<path d="{path}" fill="{fill}"/>')

    def line(self, points: Sequence[tuple[float, float]], colour: str = FAINT, width: float = 0.8) -> None:
        """Draw a line through points."""
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 12,
        colour: str = INK,
        anchor: Literal["start", "middle", "end"] = "start",
        bold: bool = False,
    ) -> None:
        """Write words; y is their base line."""
        weight = ' font-weight="600"' if bold else ""
        style = f'font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"{weight}'
        self.parts.append(f"<text {_at(x, y)} {style}>{escape(words)}</text>")

    def __str__(self) -> str:
        """The file."""
        size = f"{_number(self.width)} {_number(self.height)}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {_size(self.width, self.height)} '
            'font-family="Helvetica, Arial, sans-serif" role="img">'
        )
        ground = f'<rect {_size(self.width, self.height)} fill="{EMPTY}"/>'
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", f"<defs>{HATCH}</defs>", ground, *self.parts, "</svg>\n"]
        )


def fitting(words: Sequence[str], width: float, size: float) -> str:
    """Return the first of some wordings, the longest first, that has room; none if none has."""
    return next((one for one in words if len(one) * size * LETTER <= width), "")


def _at(x: float, y: float) -> str:
    return f'x="{_number(x)}" y="{_number(y)}"'


def _size(width: float, height: float) -> str:
    return f'width="{_number(width)}" height="{_number(height)}"'


def _number(value: float) -> str:
    """Return a number with one digit after the point; the last bits of a solution must not move it."""
    return f"{round(round(value, 6) + 0.0, 1):g}"
