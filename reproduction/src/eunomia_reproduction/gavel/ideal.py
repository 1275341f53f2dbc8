"""What rounding costs: average JCT in rounds of several lengths, and by our own mechanism, over that of a fluid.

Beside it how many leases are renewed, over load and over the length of rounds: the other ones cost a checkpoint and a
restart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eunomia.runs.simulation import simulate
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.gavel.curves import notes
from eunomia_reproduction.gavel.figure_runs import HOUR_S, FigureRun, throughputs_in
from eunomia_reproduction.gavel.runs import measure, over
from eunomia_reproduction.table import FigureRow, FigureTable, Request

POLICY, RATES, ROUNDS_S = "max_min_fairness", (4.0, 5.6), (360.0, 720.0, 1440.0, 2880.0)
RENEWED = "leases renewed"
LOADS = (0.8, 1.6, 2.4, 3.2, 4.0, 4.8, 5.6)
Cut = tuple[tuple[str, Any], ...]
OURS: Cut = (("name", "leases"), ("length_s", 360.0), ("aligned", True))
FLUID: Cut = (("name", "ideal"),)
_CLAIM = "Narayanan et al., OSDI 2020, figure 13, claim a few per cent; no number of it is at hand"


def ideal(request: Request) -> FigureTable:
    """Return average JCTs of one policy on one stream: as a fluid, in Gavel's rounds, by ours; and renewals."""
    throughputs = throughputs_in(request)
    cells = {
        (rate, length): FigureRun(policy=POLICY, rate=rate, mechanism=(("name", "gavel"), ("round_s", length)))
        for rate in LOADS
        for length in (ROUNDS_S if rate in RATES else ROUNDS_S[:1])
    }
    runs = measure(cells.values(), request)
    rows, lines = list(runs.failures()), []
    for rate in RATES:
        fluid, own = (_mean_h(FigureRun(policy=POLICY, rate=rate, mechanism=cut), throughputs) for cut in (FLUID, OURS))
        request.tell(f"{rate:g} jobs/h: fluid {fluid:.2f} h")
        rows.append(FigureRow(series="fluid", x=rate, quantity="average JCT", unit="h", measured=fluid))
        rows.append(
            FigureRow(
                series="leases of 360 s",
                x=rate,
                quantity="average JCT ÷ fluid",
                unit="",
                measured=own / fluid,
                note="this project's default mechanism",
            )
        )
        cost = {length: over(runs.jct_h(cells[rate, length]), fluid) for length in ROUNDS_S}
        for length, value in cost.items():
            rows.append(
                FigureRow(
                    series=f"rounds of {length:g} s",
                    x=rate,
                    quantity="average JCT ÷ fluid",
                    unit="",
                    measured=value,
                    note=_CLAIM if length == ROUNDS_S[0] else "",
                )
            )
        known = {length: value for length, value in cost.items() if value is not None}
        lines.append(FigureCurve(name=f"{rate:g} jobs per hour", x=list(known), y=list(known.values())))
    figure = Figure(
        name="gavel-ideal",
        title="What rounds cost",
        x_label="round, seconds",
        y_label="average JCT ÷ that of a fluid",
        curves=tuple(lines),
    )
    rows += [
        FigureRow(
            series=f"rounds of {length:g} s",
            x=rate,
            quantity=RENEWED,
            unit="of those possible",
            measured=runs.number(cell, lambda one: one.leases_renewed),
            note="of its own jobs the published simulator prints it: gavel-parity",
        )
        for (rate, length), cell in cells.items()
    ]
    return FigureTable(rows=tuple(rows), notes=notes(), figures=(figure,))


def _mean_h(cell: FigureRun, throughputs: Path) -> float:
    """Return the average JCT of a cell in hours."""
    mean = simulate(cell.scenario(throughputs)).summary["jct_mean_s"]
    return (mean or 0.0) / HOUR_S
