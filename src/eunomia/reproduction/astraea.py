"""ASTRAEA against its rivals on how fairly tenants are served, on Philly's virtual clusters.

Z. Ye et al., "ASTRAEA", TPDS 2022: tenant fairness up to 9.42 times that of other schedulers, and no worse a mean JCT.
As in its evaluation the tenants are Philly's virtual clusters, with the weights of its artifact; `reproduction.week`
says what is played and how fairness is measured. Its own slice was modified in ways that are not told, so the factor is
a yardstick, not a target; what must hold is that no rival serves its worst-off tenant better.

Nothing is drawn: a seed is another week of the trace, the busiest first. Leases that end together are measured beside
those that end one by one, which are the policy's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from eunomia import traces
from eunomia.core.mechanisms.leases import Leases
from eunomia.experiment.tenancy import PHILLY as WEIGHT
from eunomia.metrics.statistics import paired
from eunomia.model.problems import InvalidInput, Problem
from eunomia.model.tenants import Tenant
from eunomia.reproduction.table import Request, Row, Table
from eunomia.reproduction.week import Measured, measure, played

FIRST_DAYS, DAYS = (70, 63, 77, 56, 49), 7  # weeks of the trace; before them few jobs come
POLICIES: Mapping[str, tuple[str, Leases | None]] = {  # None: time is cut as the policy wants it
    "FIFO": ("fifo", None),
    "static quotas": ("astraea?selection=fifo&quota=static", Leases()),
    "Tiresias": ("tiresias", None),
    "ASTRAEA": ("astraea", None),
    "ASTRAEA, common ends": ("astraea", Leases(length=900.0, aligned=True)),
    "Themis": ("themis", None),
}
OURS, PUBLISHED = "ASTRAEA", 9.42
SOURCE = "Ye et al., TPDS 2022, abstract"
Shown = Mapping[str, Mapping[int, Measured]]  # policy and first day of the week -> what it came to


def reproduce(request: Request) -> Table:
    """Play every policy on weeks of the trace in the reference folder, laid out like data/traces/philly."""
    tenants = {name: Tenant(weight=float(weight)) for name, weight in WEIGHT.items()}
    trace = traces.read(_table_in(request.folder("data/traces/philly")), "philly")
    weeks = {day: played(trace, tenants, day, DAYS) for day in FIRST_DAYS[: request.seeds]}
    shown: dict[str, dict[int, Measured]] = {name: {} for name in POLICIES}
    for name, (policy, leases) in POLICIES.items():
        for day, work in weeks.items():
            shown[name][day] = found = measure(work, policy, leases)
            told = f"worst-off tenant {found.least:.3f}, mean JCT {found.jct_mean:.0f} s"
            request.tell(f"week from day {day}, {len(work.jobs)} jobs, {name}: {told}")
    notes = [f"week from day {day}: {note}" for day, work in weeks.items() for note in work.notes]
    if request.seeds > len(FIRST_DAYS):
        notes.append(f"{request.seeds} seeds were asked for, and the trace has {len(FIRST_DAYS)} busy weeks")
    return Table(rows=(*_values(shown), *_ahead(shown)), notes=tuple(notes))


def _table_in(folder: Path) -> Path:
    path = folder / "philly_jobs.csv.gz"
    if not path.is_file():
        rule, mend = f"there is no {path.name}", "give a folder laid out like data/traces/philly"
        raise InvalidInput([Problem(file=str(folder), column="--reference", rule=rule, mend=mend)])
    return path


def _values(shown: Shown) -> list[Row]:
    """Return what each policy came to in each week."""
    return [
        Row(series=name, x=day, quantity=quantity, unit=unit, measured=value if np.isfinite(value) else None)
        for name, weeks in shown.items()
        for day, found in weeks.items()
        for quantity, unit, value in (
            ("tenant_fairness_min", "", found.least),
            ("tenant_fairness_max_over_min", "", found.spread),
            ("tenant_hours_losing", "", found.losing),
            ("jct_mean", "s", found.jct_mean),
        )
    ]


def _ahead(shown: Shown) -> list[Row]:
    """Return ASTRAEA over each rival: the worst-off tenant has to be no worse off in any week; the factor is told."""
    rows, ours = [], shown[OURS]
    for name, theirs in shown.items():
        if name == OURS:
            continue
        series = f"{OURS} beside {name}"
        rival = not name.startswith(OURS)
        fairness, told = _factor({day: (ours[day].least, found.least) for day, found in theirs.items()})
        rows.append(
            Row(
                series=series,
                quantity="tenant_fairness_min",
                unit="times",
                published=PUBLISHED if rival else None,
                measured=fairness,
                source=SOURCE if rival else "",
                note=f"{told}; published: up to that, of a modified trace" if rival else told,
            )
        )
        if rival:
            weeks = sum(ours[day].least >= found.least for day, found in theirs.items())
            about = {"published": len(theirs), "measured": weeks, "tolerance": 0.0, "source": SOURCE}
            rows.append(Row(series=series, quantity="weeks ahead", unit="", **about))  # type: ignore[arg-type]
        jct, told = _factor({day: (ours[day].jct_mean, found.jct_mean) for day, found in theirs.items()})
        rows.append(Row(series=series, quantity="jct_mean", unit="times", measured=jct, note=told))
    return rows


def _factor(pairs: Mapping[int, tuple[float, float]]) -> tuple[float | None, str]:
    """Return the geometric mean of ours ÷ theirs over the weeks, and the 95 % interval in words."""
    ours, theirs = ({day: pair[side] for day, pair in pairs.items()} for side in (0, 1))
    found = paired(ours, theirs)
    if found is None or found.log_ratio is None:
        return None, "somebody got nothing at all in a week"
    low, high = found.log_ratio.low, found.log_ratio.high
    told = "one week" if low is None or high is None else f"95 % interval {math.exp(low):.2f} to {math.exp(high):.2f}"
    return math.exp(found.log_ratio.mean), told
