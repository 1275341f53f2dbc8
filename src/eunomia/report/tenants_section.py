"""The section about tenants, without formulas: what each was owed and got, what it lent and what it paid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.report.content import ReportContent, RunFigures, TenantFigures
from eunomia.report.escape import escaped
from eunomia.report.number_format import HOUR, duration, plural, three_digits
from eunomia.report.numbers import known
from eunomia.report.seed_groups import best_first, seed_groups
from eunomia.report.tenant_shares import OWED_ENOUGH

Runs = Sequence[tuple[RunFigures, TenantFigures]]

MOST_TENANTS = 40  # rows of the table
MOST_LINES = 6  # of each policy
MOST_COLUMNS = 5  # policies; the others are shown on request
MOST_IN_MATRIX = 12  # tenants
NEGLIGIBLE = 0.005  # of all that was owed: a smaller amount gets no sentence

INTRODUCTION = (
    "Each tenant owns a part of the cluster. It is <b>owed</b> that part for as long as its jobs ask for it; what no "
    "job asks for is owed to no tenant. The number in bold is what it <b>got</b>, in per cent of what it was owed: "
    "below 100 % it got less than its part, above it also used the parts of others. In the bar, the upright line is "
    "what it was owed. Below are the accelerator-hours that it got and was owed, and how long its jobs waited in "
    "all on average, after preemptions included."
)
FOOTNOTE = (
    "Different policies owe different amounts, as a job asks for accelerators for as long as it waits. What a tenant "
    "<b>lent</b> it did not ask for, so lending it cost nothing. What it <b>paid</b> it asked for, and another tenant "
    "had it. Both are counted hour by hour, even if the tenant got as much back on another day. A job that was "
    "<b>refused</b> never runs: nothing is owed for it and its wait does not count, so look first for refused jobs."
)


def tenants_section(content: ReportContent) -> str:
    """Return the section of the first load and seed; "" with fewer than two tenants."""
    settings = seed_groups(content)
    load = settings[0].load
    runs = [setting.runs[0] for setting in settings if setting.load == load]
    shown = [(run, run.tenants) for run in runs if run.tenants is not None and len(run.tenants.names) > 1]
    if not shown:
        return ""
    only = sum(len(setting.replications) for setting in settings) > len(runs)
    which = f'<p class="hint">Load {load:g}, seed {runs[0].seed}: one run of each policy.</p>' if only else ""
    ranks = {label: rank for rank, label in enumerate(best_first(content))}
    shown.sort(key=lambda pair: ranks[pair[0].label])
    lists = "".join(exchange(run.label, tenants, is_open=not number) for number, (run, tenants) in enumerate(shown))
    tables = scrolled("Table of the tenants", table(shown[:MOST_COLUMNS], shown))
    if len(shown) > MOST_COLUMNS:
        more = scrolled("Table of the tenants under the other policies", table(shown[MOST_COLUMNS:], shown))
        tables += f"<details><summary>{plural(len(shown) - MOST_COLUMNS, 'more run')}</summary>{more}</details>"
    return (
        '<section id="for-the-committee" aria-label="For the committee" class="committee"><h2>For the committee: what '
        f"each tenant was owed, and what it got</h2><p>{INTRODUCTION}</p>{which}\n{tables}\n"
        f'<p class="hint">{FOOTNOTE}</p>\n<div class="loans">{lists}</div></section>'
    )


def scrolled(name: str, table: str) -> str:
    """Return a table that scrolls by itself on a narrow page."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escaped(name)}">{table}</div>'


def exchange(label: str, tenants: TenantFigures, *, is_open: bool) -> str:
    """Return what tenants gave to each other under one policy: a matrix, and the largest amounts in words."""
    lines = "".join(f"<li>{escaped(line)}</li>" for line in loans(tenants))
    matrix = scrolled(f"Payments and loans under {label}", payments(tenants))
    state = " open" if is_open else ""
    return (
        f"<details{state}><summary>Loans and payments under {escaped(label)}</summary>"
        f"{matrix if (tenants.paid + tenants.lent > 0).any() else ''}<ul>{lines}</ul></details>"
    )


def payments(tenants: TenantFigures) -> str:
    """Return the matrix of hours that each tenant (row) gave to each other (column): paid, and lent in brackets."""
    given = tenants.paid + tenants.lent
    large = np.argsort(-(given.sum(axis=0) + given.sum(axis=1)), kind="stable").tolist()[:MOST_IN_MATRIX]
    kept = [u for u in large if given[u].any() or given[:, u].any()]
    head = "".join(f'<th scope="col">to {escaped(tenants.names[u])}</th>' for u in kept)
    rows = []
    for u in kept:
        cells = "".join(f"<td>{amounts(float(tenants.paid[u, v]), float(tenants.lent[u, v]))}</td>" for v in kept)
        rows.append(f'<tr><th scope="row">{escaped(tenants.names[u])}</th>{cells}</tr>')
    left = len(tenants.names) - len(kept)
    smaller = f" {plural(left, 'tenant')} with smaller amounts, or none, not shown." if left else ""
    return (
        '<table class="matrix"><caption>Accelerator-hours that each row paid to each column; lent in brackets.'
        f'{smaller}</caption><thead><tr><th scope="col">From</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def amounts(paid: float, lent: float) -> str:
    """Return `12 (3.4)`, hours paid and lent; "" for nothing worth a tenth of an hour."""
    texts = [hours(paid) if paid >= HOUR / 10 else "", f"({hours(lent)})" if lent >= HOUR / 10 else ""]
    return " ".join(filter(None, texts))


def table(shown: Runs, every: Runs) -> str:
    """Return one row for each tenant and one column for each policy `shown`, the largest tenants of `every` first."""
    names = sorted(every[0][1].names, key=lambda name: (-size(name, every), name))
    most = max(float(np.max(np.maximum(t.received, t.deserved), initial=0.0)) for _, t in every)
    head = "".join(f'<th scope="col">{escaped(run.label)}</th>' for run, _ in shown)
    rows = "".join(row(name, shown, most) for name in names[:MOST_TENANTS])
    left = len(names) - MOST_TENANTS
    foot = f"<caption>and {plural(left, 'smaller tenant')}, in tenants.csv</caption>" if left > 0 else ""
    return f'<table>{foot}<thead><tr><th scope="col">Tenant</th>{head}</tr></thead><tbody>{rows}</tbody></table>'


def size(name: str, shown: Runs) -> float:
    """Return the most that a tenant was owed or got under any policy."""
    return float(
        max(
            (max(t.deserved[u], t.received[u]) for _, t in shown for u, n in enumerate(t.names) if n == name),
            default=0.0,
        )
    )


def row(name: str, shown: Runs, most: float) -> str:
    """Return the row of one tenant: its quota, and a cell for each policy."""
    first = shown[0][1]
    at = first.names.index(name)
    shared = " with those below it" if any(other.startswith(f"{name}/") for other in first.names) else ""
    part = f"{accelerators(float(first.quota[at]))}{shared}, {plural(int(first.jobs[at]), 'job')}"
    cells = "".join(cell(tenants, name, most) for _, tenants in shown)
    return f'<tr><th scope="row">{escaped(name)}<small>{part}</small></th>{cells}</tr>'


def accelerators(quota: float) -> str:
    """Return `1 accelerator`, `2.5 accelerators`."""
    return f"{f'{quota:,.3f}'.rstrip('0').rstrip('.')} accelerator{'s' * (quota != 1)}"


def cell(tenants: TenantFigures, name: str, most: float) -> str:
    """Return what a tenant got under one policy, as a bar and as text."""
    if name not in tenants.names:
        return "<td>–</td>"
    at = tenants.names.index(name)
    owed, got, refused = float(tenants.deserved[at]), float(tenants.received[at]), int(tenants.refusals()[at])
    short = ' class="short"' if owed > 0 and got < OWED_ENOUGH * owed else ""
    return (
        f"<td>{bar(got, owed, most)}<b{short}>{compare(got, owed, refused)}</b>"
        f"<small>{hours(got)} of {hours(owed)} h; {describe_jobs(tenants, at, refused)}</small></td>"
    )


def describe_jobs(tenants: TenantFigures, at: int, refused: int) -> str:
    """Return how long a tenant's jobs waited, and how many were refused."""
    wait = known(float(tenants.total_wait_s[at]))
    waited = "" if wait is None else f"waited {duration(wait)}" if wait > 0 else "did not wait"
    count = f"{refused:,} of {plural(int(tenants.jobs[at]), 'job')} {'was' if refused == 1 else 'were'} refused"
    return "; ".join(filter(None, (waited, count if refused else ""))) or "no job"


def bar(got: float, owed: float, most: float) -> str:
    """Return a bar of what was got, and a line at what was owed."""
    width, line = (200 * value / most if most > 0 else 0.0 for value in (got, owed))
    return (
        '<svg class="share" viewBox="0 0 202 14" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="had" x="0" y="2" width="{width:.1f}" height="10"/>'
        f'<rect class="owed" x="{line:.1f}" y="0" width="2" height="14"/></svg>'
    )


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
