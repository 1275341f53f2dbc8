"""The chart of long-term fairness among tenants, of the first seed: curves over time are not averaged over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.over_time import SINCE_START
from eunomia.verdict.run_figures import TenantFigures
from eunomia.verdict.seed_groups import SeedGroup

MOST = 8  # tenants: as many as there are colours


def fairness(group: Sequence[SeedGroup]) -> list[Chart]:
    """Return the chart of one load; none with fewer than two tenants, or where nothing was deserved."""
    every = [(setting.label, setting.runs[0].tenants) for setting in group]
    runs = [(label, tenants) for label, tenants in every if tenants is not None and len(tenants.names) > 1]
    names = largest([tenants for _, tenants in runs])
    panels = tuple(Panel(title=label, series=lines(tenants, names)) for label, tenants in runs)
    panels = tuple(panel for panel in panels if panel.series)
    if not panels:
        return []
    return [
        Chart(
            name="ltgf_over_time",
            title="Long-term fairness of tenants",
            how_to_read="Accelerator-time that a tenant got over what it was owed, in the day before "
            f"({len(names)} largest tenants): 1 is all of it, above 1 it also used accelerators of others.",
            kind="steps",
            x=SINCE_START,
            y=Axis(label="got ÷ owed in 24 hours", unit="ratio", low=0.0),
            panels=panels,
            palette="parts",
        )
    ]


def largest(runs: Sequence[TenantFigures]) -> tuple[str, ...]:
    """Return the names of the tenants that were owed most."""
    owed: dict[str, float] = {}
    for tenants in runs:
        for name, amount in zip(tenants.names, tenants.deserved.tolist(), strict=True):
            owed[name] = max(owed.get(name, 0.0), amount)
    return tuple(sorted(owed, key=lambda name: (-owed[name], name))[:MOST])


def lines(tenants: TenantFigures, names: Sequence[str]) -> tuple[Series, ...]:
    """Return one line for each tenant that was ever owed anything."""
    known = [(style, name) for style, name in enumerate(names) if name in tenants.names]
    rows = [(style, name, tenants.ltgf[tenants.names.index(name)]) for style, name in known]
    return tuple(Series(name=n, style=s, x=tenants.at_s, y=y) for s, n, y in rows if np.isfinite(y).any())
