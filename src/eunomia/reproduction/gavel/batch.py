"""Makespan against the number of jobs, all of them there at the start: gangs on 36 V100, 36 P100 and 36 K80."""

from __future__ import annotations

import math
from dataclasses import replace

from eunomia.reproduction.figure import Curve, Figure
from eunomia.reproduction.gavel.cells import Cell, measure
from eunomia.reproduction.gavel.published import MAKESPAN, NOTEBOOKS, STATIC_AT, Published
from eunomia.reproduction.table import Request, Row, Table

NEAR, GAIN_NEAR = 0.10, 0.10
GAIN, GAIN_AT = 2.5, (500.0, 700.0)
BROKEN = Published(name="FIFO, all on one type", policy="gavel:fifo", points=dict.fromkeys(STATIC_AT))
_WHY_BROKEN = "what `fifo` of commit c4fa400 does: it puts every job on the alphabetically last type, v100"


def makespan(request: Request) -> Table:
    """Return makespans beside the published ones, and by what factor Gavel's policy is shorter than FIFO's."""
    cells = {(curve.name, x): _cell(curve, x) for curve in (*MAKESPAN, BROKEN) for x in STATIC_AT}
    shown = measure([replace(cell, seed=seed) for cell in cells.values() for seed in range(request.seeds)], request)
    rows = []
    for curve in (*MAKESPAN, BROKEN):
        for x in STATIC_AT:
            hours = [shown[replace(cells[curve.name, x], seed=seed)].makespan_h for seed in range(request.seeds)]
            note = _WHY_BROKEN if curve is BROKEN else ""
            if len(hours) > 1:
                note = f"{note}; " * bool(note) + f"{min(hours):.1f} … {max(hours):.1f} h over {len(hours)} seeds"
            rows.append(
                Row(
                    series=curve.name,
                    x=int(x),
                    quantity="makespan",
                    unit="h",
                    published=curve.points[x],
                    measured=hours[0],
                    tolerance=None if curve is BROKEN else NEAR,
                    source=NOTEBOOKS,
                    note=note,
                )
            )
    for x in GAIN_AT:
        gain = shown[cells["FIFO", x]].makespan_h / shown[cells["Gavel", x]].makespan_h
        rows.append(
            Row(
                series="FIFO ÷ Gavel",
                x=int(x),
                quantity="makespan, gain",
                unit="×",
                published=GAIN,
                measured=gain,
                tolerance=GAIN_NEAR,
                source=NOTEBOOKS,
            )
        )
    lines = []
    for curve in (*MAKESPAN, BROKEN):
        measured = [shown[cells[curve.name, x]].makespan_h for x in STATIC_AT]
        if curve is not BROKEN:
            said = [curve.points[x] or 0.0 for x in STATIC_AT]
            lines.append(Curve(name=curve.name, x=STATIC_AT, y=said, published=True))
        lines.append(Curve(name=curve.name, x=STATIC_AT, y=measured))
    figure = Figure(
        name="gavel-makespan",
        title="All jobs at the start, gangs",
        x_label="jobs",
        y_label="makespan, hours",
        curves=tuple(lines),
    )
    notes = (
        "FIFO is agnostic here: each job is put on a type drawn at random, by capacity. The published FIFO is of an "
        "older version of the code, and its seed is not said.",
    )
    return Table(rows=tuple(rows), notes=notes, figures=(figure,))


def _cell(curve: Published, x: float) -> Cell:
    as_published = curve.policy != "gavel:fifo" or curve is BROKEN
    return Cell(policy=curve.policy, rate=math.inf, multi=True, jobs=int(x), window=None, as_published=as_published)
