"""The small workload under every policy: who runs where, hour by hour, one small chart a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policy_pages.svg import FAINT, FILL, HATCHED, INK, Drawing
from policy_pages.workload import HOUR_S, JOBS, WORLD, Story, Stretch

COLUMNS, WIDTH = 3, 960
LEFT, RIGHT, TOP = 26, 14, 40  # of one chart
ROW, BAR, FOOT, LEGEND = 13, 9, 28, 60
GRID = "#dddddd"


def picture(stories: Mapping[str, Story]) -> str:
    """Return the SVG file; all charts have the same hours."""
    lines = -(-len(stories) // COLUMNS)
    height = TOP + ROW * len(JOBS) + FOOT
    drawing = Drawing(
        WIDTH, LEGEND + lines * height, "The same eight jobs under every policy: who runs where over time"
    )
    _legend(drawing)
    hours = max(story.makespan for story in stories.values())
    for place, story in enumerate(stories.values()):
        x, y = place % COLUMNS * WIDTH / COLUMNS, LEGEND + place // COLUMNS * height
        _chart(drawing, x, y, story, hours)
    return str(drawing)


def _legend(drawing: Drawing) -> None:
    x = float(LEFT)
    for type, name in enumerate(WORLD.topology.types):
        drawing.bar(x, 10, 34, 14, FILL[type])
        drawing.text(x + 40, 21, f"on a {name}")
        x += 120
    drawing.bar(x, 10, 34, 14, FILL[0])
    drawing.bar(x, 10, 34, 14, HATCHED)
    drawing.text(x + 40, 21, "beside another job on the same accelerators")
    drawing.line([(x + 370, 17), (x + 404, 17)])
    drawing.text(x + 410, 21, "waits")
    drawing.line([(x + 480, 11), (x + 480, 23)], INK, 1.6)
    drawing.text(x + 488, 21, "done")
    drawing.text(
        LEFT, 46, "rows: jobs a to h in order of arrival; hours since the first arrival", size=11, colour=FAINT
    )


def _chart(drawing: Drawing, x: float, y: float, story: Story, hours: float) -> None:
    """Draw one policy's chart with its left upper corner at (x, y)."""
    left, width = x + LEFT, WIDTH / COLUMNS - LEFT - RIGHT
    bottom = y + TOP + ROW * len(JOBS)
    drawing.text(left, y + 16, story.spelling, bold=True)
    numbers = f"JCT {story.jct:.1f} h · makespan {story.makespan:.1f} h · slowdown {story.slowdown:.1f}"
    drawing.text(left, y + 31, numbers, size=11, colour=FAINT)
    for hour in range(0, int(hours) + 1, 2):
        at = left + width * hour / hours
        drawing.line([(at, y + TOP - 2), (at, bottom)], GRID)
        drawing.text(at, bottom + 11, f"{hour}", size=9, colour=FAINT, anchor="middle")
    for row, job in enumerate(JOBS):
        top = y + TOP + row * ROW
        drawing.text(left - 6, top + BAR, job.job_id, size=11, anchor="end")
        _life(drawing, left, top, width / hours, story, job.job_id, job.submitted / HOUR_S)


def _life(drawing: Drawing, left: float, top: float, scale: float, story: Story, job: str, submitted: float) -> None:
    """Draw the line of one job: it waits, runs here and there, and is done."""
    middle, end = top + BAR / 2, story.finished[job]
    drawing.line([(left + submitted * scale, middle), (left + end * scale, middle)])
    held = story.stretches[job]
    for type in range(len(WORLD.topology.types)):
        drawing.bars(_places((one for one in held if one.type == type), left, scale), top, BAR, FILL[type])
    drawing.bars(_places((one for one in held if one.beside), left, scale), top, BAR, HATCHED)
    drawing.line([(left + end * scale, top - 1), (left + end * scale, top + BAR + 1)], INK, 1.6)


def _places(held: Iterable[Stretch], left: float, scale: float) -> list[tuple[float, float]]:
    """Return from where to where the pieces reach."""
    return [(left + one.begin * scale, left + one.end * scale) for one in held]
