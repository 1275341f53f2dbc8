"""Charts over time, of the first seed, as curves are not averaged: utilisation, queue and long-term fairness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.report.chart import Axis, Chart, Panel, Series, thinned
from eunomia.verdict.run_figures import RunFigures, TenantFigures
from eunomia.verdict.seed_groups import SeedGroup

SINCE_START = Axis(label="time since the run began", unit="s")
MOST = 8  # tenants: as many as there are colours


def over_time(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the charts of one load; none when there are no bins."""
    runs = [setting.runs[0] for setting in group if setting.runs[0].utilization_at_s.size]
    if not runs:
        return []
    seeds = max(len(setting.replications) for setting in group)
    which = f" Seed {runs[0].seed}, the first of {seeds}." if seeds > 1 else ""
    return [utilization(runs, which), jobs(runs, styles, which)]


def utilization(runs: Sequence[RunFigures], which: str) -> Chart:
    """Return busy over available accelerators by type, one panel for each run."""
    types = tuple(dict.fromkeys(name for run in runs for name in run.types))
    return Chart(
        name="utilization",
        title="Utilisation by accelerator type",
        how_to_read="The share of each type's accelerators that was busy; idle time during a long queue is "
        f"capacity that the policy could not, or would not, use.{which}",
        kind="steps",
        x=SINCE_START,
        y=Axis(label="busy ÷ available", unit="share", low=0.0, high=1.0),
        panels=tuple(Panel(title=run.label, series=type_series(run, types)) for run in runs),
        palette="parts",
    )


def type_series(run: RunFigures, types: tuple[str, ...]) -> tuple[Series, ...]:
    """Return one series for each type that was ever available."""
    at_s, busy = thinned(run.utilization_at_s, run.utilization)
    known = zip(run.types, busy, strict=True)
    return tuple(Series(name=n, style=types.index(n), x=at_s, y=y) for n, y in known if np.isfinite(y).any())


def jobs(runs: Sequence[RunFigures], styles: dict[str, int], which: str) -> Chart:
    """Return the numbers of running and of waiting jobs."""
    return Chart(
        name="jobs_over_time",
        title="Running and waiting jobs",
        how_to_read="How many jobs held accelerators and how many waited, averaged over each bin of time; "
        f"a queue that does not shrink again means more work than capacity.{which}",
        kind="steps",
        x=SINCE_START,
        y=Axis(label="jobs", unit="count", low=0.0),
        panels=(
            Panel(title="running", series=tuple(job_series(run, run.running_jobs, styles) for run in runs)),
            Panel(title="waiting", series=tuple(job_series(run, run.waiting_jobs, styles) for run in runs)),
        ),
    )


def job_series(run: RunFigures, values: Floats, styles: dict[str, int]) -> Series:
    """Return the line of one run; `values` (bin,) are numbers of jobs."""
    at_s, rows = thinned(run.utilization_at_s, values[None, :])
    return Series(name=run.label, style=styles[run.label], x=at_s, y=rows[0])


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
