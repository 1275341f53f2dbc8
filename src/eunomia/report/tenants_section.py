"""The section for those who share a cluster and read no formulas: what tenants were owed and got, who paid for whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.report.content import ReportContent, RunFigures, TenantFigures
from eunomia.report.escape import escaped
from eunomia.report.number_format import HOUR, duration, plural, three_digits
from eunomia.report.numbers import known
from eunomia.report.seed_groups import seed_groups

MOST_TENANTS = 40  # that get a row
MOST_LINES = 6  # told of each policy
NEARLY = 0.005  # of all that was owed: a smaller sum is not worth a sentence

INTRODUCTION = (
    "Each tenant owns a part of the cluster. It is <b>owed</b> that part for as long as its jobs ask for it: nobody is "
    "owed what nobody asked for. The bar is what it <b>got</b>, the upright line what it was owed. A bar that ends "
    "before the line got less than its own; one that goes past it also used what belonged to others. All amounts are "
    "accelerator-hours: one accelerator, held for one hour."
)
BELOW = (
    "Different policies owe different amounts, as a job that waits long goes on asking. What a tenant <b>lent</b> it "
    "did not ask for, and giving it cost nothing. What it <b>paid</b> it asked for, and somebody else had it. Both are "
    "counted hour by hour, also when it came back on another day. A job that was <b>refused</b> is never served: "
    "nothing is owed for it and it waits for nothing, so look first at who was refused."
)


def tenants_section(content: ReportContent) -> str:
    """Return the section; nothing when fewer than two tenants share."""
    every = seed_groups(content)
    load = every[0].load
    runs = [setting.runs[0] for setting in every if setting.load == load]
    shown = [(run, run.tenants) for run in runs if run.tenants is not None and len(run.tenants.names) > 1]
    if not shown:
        return ""
    only = len(content.runs) > len(runs)
    which = f'<p class="hint">Load {load:g}, seed {runs[0].seed}: one run of each policy.</p>' if only else ""
    told = "".join(
        f"<div><h3>Who paid for whom under {escaped(run.label)}</h3><ul>"
        f"{''.join(f'<li>{escaped(line)}</li>' for line in loans(tenants))}</ul></div>"
        for run, tenants in shown
    )
    return (
        '<section aria-label="For the committee" class="committee"><h2>For the committee: what each tenant was owed, '
        f"and what it got</h2><p>{INTRODUCTION}</p>{which}\n"
        f'<div class="wide" tabindex="0" role="region" aria-label="Table of the tenants">{table(shown)}</div>\n'
        f'<p class="hint">{BELOW}</p>\n<div class="loans">{told}</div></section>'
    )


def table(shown: Sequence[tuple[RunFigures, TenantFigures]]) -> str:
    """Return one row for each tenant and one column for each policy, the largest tenants first."""
    first = shown[0][1]
    names = sorted(first.names, key=lambda name: (-size(name, shown), name))
    most = max(float(np.max(np.maximum(t.received, t.deserved), initial=0.0)) for _, t in shown)
    head = "".join(f'<th scope="col">{escaped(run.label)}</th>' for run, _ in shown)
    rows = "".join(row(name, shown, most) for name in names[:MOST_TENANTS])
    left = len(names) - MOST_TENANTS
    foot = f"<caption>and {plural(left, 'smaller tenant')}, in tenants.csv</caption>" if left > 0 else ""
    return f'<table>{foot}<thead><tr><th scope="col">Tenant</th>{head}</tr></thead><tbody>{rows}</tbody></table>'


def size(name: str, shown: Sequence[tuple[RunFigures, TenantFigures]]) -> float:
    """Return the most that a tenant was owed or got."""
    found = [max(t.deserved[t.names.index(name)], t.received[t.names.index(name)]) for _, t in shown if name in t.names]
    return float(max(found, default=0.0))


def row(name: str, shown: Sequence[tuple[RunFigures, TenantFigures]], most: float) -> str:
    """Return one tenant: its part, and how it fared under each policy."""
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
    """Return what a tenant got under one policy, as a bar and in words."""
    if name not in tenants.names:
        return "<td>–</td>"
    at = tenants.names.index(name)
    owed, got, refused = float(tenants.deserved[at]), float(tenants.received[at]), int(tenants.refusals()[at])
    return (
        f"<td>{bar(got, owed, most)}<b>{judged(got, owed, refused)}</b>"
        f"<small>got {hours(got)} of {hours(owed)} owed; {fate(tenants, at, refused)}</small></td>"
    )


def fate(tenants: TenantFigures, at: int, refused: int) -> str:
    """Return how long a tenant's jobs waited, and how many were refused."""
    wait = known(float(tenants.wait_s[at]))
    waited = "" if wait is None else f"a job waited {duration(wait)}" if wait >= 1 else "jobs did not wait"
    away = f"{refused_of(refused, int(tenants.jobs[at]))} refused" if refused else ""
    return "; ".join(filter(None, (waited, away))) or "no job"


def refused_of(refused: int, jobs: int) -> str:
    """Return `1 of 2 jobs was`, `2 of 2 jobs were`."""
    return f"{refused:,} of {plural(jobs, 'job')} {'was' if refused == 1 else 'were'}"


def bar(got: float, owed: float, most: float) -> str:
    """Return a bar and the line up to which it should reach."""
    width, line = (200 * value / most if most > 0 else 0.0 for value in (got, owed))
    return (
        '<svg class="share" viewBox="0 0 202 14" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="had" x="0" y="2" width="{width:.1f}" height="10"/>'
        f'<rect class="owed" x="{line:.1f}" y="0" width="2" height="14"/></svg>'
    )


def judged(got: float, owed: float, refused: int) -> str:
    """Return how what was got compares with what was owed, in words; `refused` counts jobs."""
    if owed <= 0 and got <= 0:
        return "never served" if refused else "nothing was owed"
    if owed <= 0:
        return "only what others lent"
    part = round(100 * got / owed)
    return "all that it was owed" if part == 100 else f"{part:,} % of what it was owed"


def hours(seconds: float) -> str:
    """Return accelerator-seconds as accelerator-hours."""
    return three_digits(float(seconds) / HOUR)


def loans(tenants: TenantFigures) -> list[str]:
    """Return who was refused, who paid for whom, who was short for nobody's gain, who lent to whom; largest first."""
    least = NEARLY * float(tenants.deserved.sum())
    paid, lent = tenants.paid.sum(axis=1), tenants.lent.sum(axis=1)
    idle = tenants.deserved - tenants.received - paid
    found = [(paid[u], paying(tenants, u, float(idle[u]), least)) for u in np.flatnonzero(paid > least).tolist()]
    found += [
        (idle[u], f"{tenants.names[u]} went without {hours(idle[u])} hours that it was owed and nobody else used.")
        for u in np.flatnonzero((idle > least) & (paid <= least)).tolist()
    ]
    refused = refusals(tenants)
    lines = refused + [line for _, line in sorted(found, key=lambda one: -one[0])] or ["Nobody paid for anybody."]
    lines += [
        f"{tenants.names[u]} lent {hours(lent[u])} hours that it did not ask for: {to(tenants, tenants.lent[u])}."
        for u in np.argsort(-lent, kind="stable").tolist()
        if lent[u] > least
    ]
    more = len(lines) - MOST_LINES
    return lines[:MOST_LINES] + ([f"And {plural(more, 'smaller sum')}."] if more > 0 else [])


def refusals(tenants: TenantFigures) -> list[str]:
    """Return whose jobs were refused, the most first, in one line; nothing where none were."""
    refused = tenants.refusals()
    order = [u for u in np.argsort(-refused, kind="stable").tolist() if refused[u]]
    if not order:
        return []
    named = [f"{refused[u]:,} of {plural(int(tenants.jobs[u]), 'job')} of {tenants.names[u]}" for u in order[:3]]
    left = int(refused[order[3:]].sum())
    return [f"Refused, and so never served: {', '.join(named)}{f', {left:,} of others' if left else ''}."]


def paying(tenants: TenantFigures, u: int, idle: float, least: float) -> str:
    """Return to whom a tenant paid, what else it went without, and whether it came back."""
    paid = tenants.paid[u]
    text = f"{tenants.names[u]} paid {hours(paid.sum())} hours that it asked for: {to(tenants, paid)}."
    if idle > least:
        text += f" It went without another {hours(idle)} hours that nobody used."
    if tenants.received[u] >= (1 - NEARLY) * tenants.deserved[u]:
        text += " At other times it had as much from others: in all it got what it was owed."
    return text


def to(tenants: TenantFigures, amounts: Floats) -> str:
    """Return who had how much of a sum: the three largest, and the others."""
    large = [v for v in np.argsort(-amounts, kind="stable").tolist() if amounts[v] > NEARLY * amounts.sum()]
    named = [f"{hours(amounts[v])} to {tenants.names[v]}" for v in large[:3]]
    left = float(amounts[large[3:]].sum())
    return ", ".join(named) + (f", {hours(left)} to others" if left > 0 else "")
