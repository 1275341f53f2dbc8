"""The section about tenants, without formulas: what each was owed and got, what it lent and what it paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.report.frame import known
from eunomia.verdict.number_format import HOUR, duration, plural, three_digits
from eunomia.verdict.run_figures import ReportContent, RunFigures, TenantFigures
from eunomia.verdict.seed_groups import best_first, seed_groups
from eunomia.verdict.tenant_shares import OWED_ENOUGH

Runs = Sequence[tuple[RunFigures, TenantFigures]]

MOST_TENANTS = 40  # rows of the table
MOST_LINES = 6  # of each policy
MOST_COLUMNS = 5  # policies; the others are shown on request
MOST_IN_MATRIX = 12  # tenants
NEGLIGIBLE = 0.005  # of all that was owed: a smaller amount gets no sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCell:
    """What a tenant got under one policy."""

    got_width: str  # of the bar
    owed_width: str  # where its line is
    short: bool
    compared: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRow:
    """One tenant: its quota, and a cell for each policy; None where the policy has no such tenant."""

    name: str
    part: str
    cells: tuple[ShareCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What tenants gave to each other under one policy: a matrix, and the largest amounts in words."""

    label: str
    columns: list[str]
    payments: list[tuple[str, list[str]]]
    left: int  # tenants that are not in the matrix
    sentences: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsSection:
    """What is shown about tenants."""

    which: str  # of several runs; "" = all
    runs: list[str]  # one a column, of which the first `columns` are shown at once
    columns: int
    rows: list[ShareRow]
    smaller: int  # tenants that have no row
    exchanges: list[Exchange]


def tenants_section(content: ReportContent) -> TenantsSection | None:
    """Return the section of the first load and seed; None with fewer than two tenants."""
    settings = seed_groups(content)
    load = settings[0].load
    runs = [setting.runs[0] for setting in settings if setting.load == load]
    shown = [(run, run.tenants) for run in runs if run.tenants is not None and len(run.tenants.names) > 1]
    if not shown:
        return None
    only = sum(len(setting.replications) for setting in settings) > len(runs)
    ranks = {label: rank for rank, label in enumerate(best_first(content))}
    shown.sort(key=lambda pair: ranks[pair[0].label])
    names = sorted(shown[0][1].names, key=lambda name: (-size(name, shown), name))
    most = max(float(np.max(np.maximum(t.received, t.deserved), initial=0.0)) for _, t in shown)
    return TenantsSection(
        which=f"Load {load:g}, seed {runs[0].seed}: one run of each policy." if only else "",
        runs=[run.label for run, _ in shown],
        columns=MOST_COLUMNS,
        rows=[row(name, [tenants for _, tenants in shown], most) for name in names[:MOST_TENANTS]],
        smaller=len(names) - MOST_TENANTS,
        exchanges=[exchange(run.label, tenants) for run, tenants in shown],
    )


def exchange(label: str, tenants: TenantFigures) -> Exchange:
    """Return the hours that each tenant gave to each other, paid and lent, of the tenants with the largest amounts."""
    given = tenants.paid + tenants.lent
    large = np.argsort(-(given.sum(axis=0) + given.sum(axis=1)), kind="stable").tolist()[:MOST_IN_MATRIX]
    kept = [u for u in large if given[u].any() or given[:, u].any()]
    paid, lent = tenants.paid, tenants.lent
    return Exchange(
        label=label,
        columns=[f"to {tenants.names[u]}" for u in kept],
        payments=[(tenants.names[u], [amounts(float(paid[u, v]), float(lent[u, v])) for v in kept]) for u in kept],
        left=len(tenants.names) - len(kept),
        sentences=loans(tenants),
    )


def amounts(paid: float, lent: float) -> str:
    """Return `12 (3.4)`, hours paid and lent; "" for nothing worth a tenth of an hour."""
    texts = [hours(paid) if paid >= HOUR / 10 else "", f"({hours(lent)})" if lent >= HOUR / 10 else ""]
    return " ".join(filter(None, texts))


def size(name: str, shown: Runs) -> float:
    """Return the most that a tenant was owed or got under any policy."""
    return float(
        max(
            (max(t.deserved[u], t.received[u]) for _, t in shown for u, n in enumerate(t.names) if n == name),
            default=0.0,
        )
    )


def row(name: str, shown: Sequence[TenantFigures], most: float) -> ShareRow:
    """Return the row of a tenant of the first policy; bars are parts of `most`."""
    first = shown[0]
    at = first.names.index(name)
    shared = " with those below it" if any(other.startswith(f"{name}/") for other in first.names) else ""
    part = f"{accelerators(float(first.quota[at]))}{shared}, {plural(int(first.jobs[at]), 'job')}"
    return ShareRow(name=name, part=part, cells=tuple(cell(tenants, name, most) for tenants in shown))


def accelerators(quota: float) -> str:
    """Return `1 accelerator`, `2.5 accelerators`."""
    return f"{f'{quota:,.3f}'.rstrip('0').rstrip('.')} accelerator{'s' * (quota != 1)}"


def cell(tenants: TenantFigures, name: str, most: float) -> ShareCell | None:
    """Return what a tenant got under one policy, as a bar and as text."""
    if name not in tenants.names:
        return None
    at = tenants.names.index(name)
    owed, got, refused = float(tenants.deserved[at]), float(tenants.received[at]), int(tenants.refusals()[at])
    got_width, owed_width = (f"{200 * value / most if most > 0 else 0.0:.1f}" for value in (got, owed))
    return ShareCell(
        got_width=got_width,
        owed_width=owed_width,
        short=owed > 0 and got < OWED_ENOUGH * owed,
        compared=compare(got, owed, refused),
        detail=f"{hours(got)} of {hours(owed)} h; {describe_jobs(tenants, at, refused)}",
    )


def describe_jobs(tenants: TenantFigures, at: int, refused: int) -> str:
    """Return how long a tenant's jobs waited, and how many were refused."""
    wait = known(float(tenants.total_wait_s[at]))
    waited = "" if wait is None else f"waited {duration(wait)}" if wait > 0 else "did not wait"
    count = f"{refused:,} of {plural(int(tenants.jobs[at]), 'job')} {'was' if refused == 1 else 'were'} refused"
    return "; ".join(filter(None, (waited, count if refused else ""))) or "no job"


def compare(got: float, owed: float, refused: int) -> str:
    """Return how `got` compares with `owed`, as text; `refused` counts jobs."""
    if owed <= 0 and got <= 0:
        return "never served" if refused else "nothing owed"
    return "only loans" if owed <= 0 else f"{round(100 * got / owed):,} %"


def hours(seconds: float) -> str:
    """Return accelerator-seconds as accelerator-hours."""
    return three_digits(float(seconds) / HOUR)


def loans(tenants: TenantFigures) -> list[str]:
    """Return the sentences about refusals, payments, unused shortfalls and loans; the largest of each first."""
    least = NEGLIGIBLE * float(tenants.deserved.sum())
    paid, lent = tenants.paid.sum(axis=1), tenants.lent.sum(axis=1)
    idle = tenants.deserved - tenants.received - paid
    losses = [(paid[u], payment(tenants, u, float(idle[u]), least)) for u in np.flatnonzero(paid > least).tolist()]
    losses += [
        (idle[u], f"{tenants.names[u]} did not get {hours(idle[u])} hours that it was owed and no other tenant used.")
        for u in np.flatnonzero((idle > least) & (paid <= least)).tolist()
    ]
    lines = refusals(tenants) + [line for _, line in sorted(losses, key=lambda pair: -pair[0])]
    lines = lines or ["No tenant paid for another."]
    lines += [
        f"{tenants.names[u]} lent {hours(lent[u])} hours that it did not ask for: {split(tenants, tenants.lent[u])}."
        for u in np.argsort(-lent, kind="stable").tolist()
        if lent[u] > least
    ]
    more = len(lines) - MOST_LINES
    return lines[:MOST_LINES] + ([f"And {plural(more, 'smaller amount')}."] if more > 0 else [])


def refusals(tenants: TenantFigures) -> list[str]:
    """Return one sentence about refused jobs by tenant, the most first; none where no job was refused."""
    refused = tenants.refusals()
    order = [u for u in np.argsort(-refused, kind="stable").tolist() if refused[u]]
    if not order:
        return []
    named = [f"{refused[u]:,} of {plural(int(tenants.jobs[u]), 'job')} of {tenants.names[u]}" for u in order[:3]]
    left = int(refused[order[3:]].sum())
    return [f"Refused, and so never served: {', '.join(named)}{f', {left:,} of others' if left else ''}."]


def payment(tenants: TenantFigures, u: int, idle: float, least: float) -> str:
    """Return what tenant `u` paid to each other, what else it did not get, and whether it got as much back."""
    paid = tenants.paid[u]
    text = f"{tenants.names[u]} paid {hours(paid.sum())} hours that it asked for: {split(tenants, paid)}."
    if idle > least:
        text += f" It did not get another {hours(idle)} hours that no tenant used."
    if tenants.received[u] >= (1 - NEGLIGIBLE) * tenants.deserved[u]:
        text += " At other times it had as much from others: in all it got what it was owed."
    return text


def split(tenants: TenantFigures, amounts: Floats) -> str:
    """Return how `amounts` (tenant,) divide: the three largest by name, and the sum of the others."""
    large = [v for v in np.argsort(-amounts, kind="stable").tolist() if amounts[v] > NEGLIGIBLE * amounts.sum()]
    named = [f"{hours(amounts[v])} to {tenants.names[v]}" for v in large[:3]]
    left = float(amounts[large[3:]].sum())
    return ", ".join(named) + (f", {hours(left)} to others" if left > 0 else "")
