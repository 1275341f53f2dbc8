"""The picture of a worked example: how each job's time is spent, and how fast that makes it."""

from __future__ import annotations

from collections.abc import Sequence

from policy_pages.examples import Answered, Fate, percent
from policy_pages.svg import EMPTY, FAINT, FILL, HATCHED, INK, ON_FILL, Drawing, fitting

WIDTH, LEFT, TIME, SPEED_LEFT, SPEED = 720, 66, 340, 436, 130
BAR, ROW, HEAD = 24, 34, 44
SIZE = 12


def picture(name: str, answers: Sequence[Answered]) -> str:
    """Return the SVG file that shows some answers one below the other."""
    height = sum(HEAD + ROW * len(answer.fates) for answer in answers) + 10
    drawing = Drawing(WIDTH, height, f"{name}: how two jobs spend their time, and how fast that makes them")
    y = 0.0
    for answer in answers:
        _head(drawing, y, answer)
        for fate in answer.fates:
            _fate(drawing, y + HEAD, fate, answer.types)
            y += ROW
        y += HEAD
    return str(drawing)


def _head(drawing: Drawing, y: float, answer: Answered) -> None:
    drawing.text(8, y + 18, answer.spelling, size=13, bold=True)
    drawing.text(LEFT, y + 36, "how its time is spent", size=11, colour=FAINT)
    drawing.text(SPEED_LEFT, y + 36, "speed, against its fastest type all the time", size=11, colour=FAINT)


def _fate(drawing: Drawing, y: float, fate: Fate, types: Sequence[str]) -> None:
    middle = y + BAR / 2 + 4
    drawing.text(LEFT - 8, middle, fate.job, anchor="end")
    drawing.bar(LEFT, y, TIME, BAR, EMPTY, edge=FAINT)
    x = float(LEFT)
    for part in fate.parts:
        width = part.share * TIME
        drawing.bar(x, y, width, BAR, FILL[part.type])
        if part.beside:
            drawing.bar(x, y + BAR - 6, width, 6, HATCHED)
        share, type = percent(part.share), types[part.type]
        wordings = (
            (f"{type}, beside {part.beside}: {share}", f"{type} {share}") if part.beside else (f"{type} {share}",)
        )
        colour = ON_FILL[part.type]
        lift = 3 if part.beside else 0
        drawing.text(
            x + width / 2, middle - lift, fitting((*wordings, share, ""), width, SIZE), anchor="middle", colour=colour
        )
        x += width
    rest = LEFT + TIME - x
    if rest > 1:
        drawing.text(
            x + rest / 2,
            middle,
            fitting((f"waits {percent(rest / TIME)}", "waits", ""), rest, SIZE),
            anchor="middle",
            colour=FAINT,
        )
    _speed(drawing, y, middle, fate)


def _speed(drawing: Drawing, y: float, middle: float, fate: Fate) -> None:
    part = fate.speed / fate.fastest if fate.fastest > 0 else 0.0
    drawing.bar(SPEED_LEFT, y, SPEED, BAR, EMPTY, edge=FAINT)
    drawing.bar(SPEED_LEFT, y, SPEED * part, BAR, "#8c8c8c")
    drawing.text(SPEED_LEFT + SPEED + 8, middle, f"{percent(part)}  ({round(fate.speed, 9):.3g} steps/s)", colour=INK)
