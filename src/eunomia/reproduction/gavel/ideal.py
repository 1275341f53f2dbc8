"""What rounding costs: average JCT in rounds of several lengths, and by our own mechanism, over that of a fluid."""

from __future__ import annotations

from typing import Any

from eunomia.experiment.simulation import simulate
from eunomia.experiment.wiring import set_up
from eunomia.reproduction.figure import Curve, Figure
from eunomia.reproduction.gavel.cells import HOUR_S, Cell, measure, throughputs_in
from eunomia.reproduction.gavel.curves import notes
from eunomia.reproduction.gavel.fluid import fluid_jct
from eunomia.reproduction.table import Request, Row, Table

POLICY, RATES, ROUNDS_S = "max_min_fairness", (4.0, 5.6), (360.0, 720.0, 1440.0, 2880.0)
OURS: tuple[tuple[str, Any], ...] = (("name", "leases"), ("length_s", 360.0), ("aligned", True))
_CLAIM = "Narayanan et al., OSDI 2020, figure 13, claim a few per cent; no number of it is at hand"


def ideal(request: Request) -> Table:
    """Return average JCTs of one policy on one stream: as a fluid, in Gavel's rounds, by leases of ours."""
    throughputs = throughputs_in(request)
    cells = {
        (rate, length): Cell(policy=POLICY, rate=rate, mechanism=(("name", "gavel"), ("round_s", length)))
        for rate in RATES
        for length in ROUNDS_S
    }
    shown = measure(cells.values(), request)
    rows, lines = [], []
    for rate in RATES:
        fluid = float(fluid_jct(set_up(Cell(policy=POLICY, rate=rate).scenario(throughputs))).mean()) / HOUR_S
        own = simulate(Cell(policy=POLICY, rate=rate, mechanism=OURS).scenario(throughputs)).summary["jct_mean_s"]
        request.tell(f"{rate:g} jobs/h: fluid {fluid:.2f} h")
        rows.append(Row(series="fluid", x=rate, quantity="average JCT", unit="h", measured=fluid))
        rows.append(
            Row(
                series="leases of 360 s",
                x=rate,
                quantity="average JCT ÷ fluid",
                unit="",
                measured=(own or 0.0) / HOUR_S / fluid,
                note="this project's default mechanism",
            )
        )
        over = [shown[cells[rate, length]].jct_h / fluid for length in ROUNDS_S]
        for length, value in zip(ROUNDS_S, over, strict=True):
            rows.append(
                Row(
                    series=f"rounds of {length:g} s",
                    x=rate,
                    quantity="average JCT ÷ fluid",
                    unit="",
                    measured=value,
                    note=_CLAIM if length == ROUNDS_S[0] else "",
                )
            )
        lines.append(Curve(name=f"{rate:g} jobs per hour", x=ROUNDS_S, y=over))
    figure = Figure(
        name="gavel-ideal",
        title="What rounds cost",
        x_label="round, seconds",
        y_label="average JCT ÷ that of a fluid",
        curves=tuple(lines),
    )
    return Table(rows=tuple(rows), notes=notes(), figures=(figure,))
