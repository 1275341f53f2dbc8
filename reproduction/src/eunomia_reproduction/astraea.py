"""ASTRAEA against its rivals on how fairly tenants are served, on Philly's virtual clusters.

Z. Ye et al., "ASTRAEA", TPDS 2022: tenant fairness up to 9.42 times that of other schedulers, and no worse a mean JCT.
As in its evaluation the tenants are Philly's virtual clusters, with the weights of its artifact; `reproduction.week`
says what is played and how fairness is measured. Its own slice was modified in ways that are not published, so the
factor is a yardstick, not a target; what must hold is that no rival serves its worst-off tenant better.

A seed is another half of a week of the trace, of which it has ten busy ones, and another draw of the owners of the jobs
that name no virtual cluster. Leases that end together are measured beside those that end one by one, which are the
policy's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from eunomia import traces
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.mechanisms.leases import Leases
from eunomia.metrics.statistics import estimate
from eunomia.traces import Trace
from eunomia_reproduction.philly import traced
from eunomia_reproduction.philly_window import WindowFairness, WindowRun, measure, played
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, FigureTable, Request

DAYS = 3.5
FIRST_DAYS = tuple(49 + DAYS * seed for seed in range(10))  # of the trace; before and after them few jobs come
POLICIES: Mapping[str, tuple[str, Mapping[str, Any] | None]] = {  # and its leases; None: as the policy wants them
    "Themis": ("themis", None),
    "ASTRAEA": ("astraea", None),
    "ASTRAEA, common ends": ("astraea", {"length": 900.0, "aligned": True}),
    "Tiresias": ("tiresias", None),
    "static quotas": ("astraea?selection=fifo&quota=static", {}),
    "capacity queues": ("quotas", {}),  # of Hadoop as they are by default: idle capacity is lent, and no job preempted
    "FIFO": ("fifo", None),
}
OURS, PUBLISHED = "ASTRAEA", 9.42
SOURCE = "Ye et al., TPDS 2022, abstract"
Shown = Mapping[str, Mapping[int, WindowFairness]]  # policy and seed -> what it came to


@dataclass(frozen=True, slots=True)
class _Run:
    policy: str  # as people call it
    seed: int

    def order(self, trace: Path, digest: str) -> RunRequest:
        """Return the task of a worker. digest: of the trace."""
        policy, leases = POLICIES[self.policy]
        task = {"first": FIRST_DAYS[self.seed], "days": DAYS, "seed": self.seed, "policy": policy, "leases": leases}
        name = f"{self.policy}, {DAYS} days from day {FIRST_DAYS[self.seed]:g}"
        return RunRequest(name, {**task, "trace": str(trace.absolute())}, repr((digest, task)))


def reproduce(request: Request) -> FigureTable:
    """Play every policy on parts of the trace in the reference folder, laid out like data/traces/philly."""
    path = traced.file_in(request.folder(traced.LIKE))
    trace, digest = traces.read(path, "philly"), sha256(path.read_bytes()).hexdigest()
    seeds = min(request.seeds, len(FIRST_DAYS))
    notes = _notes(path, trace, seeds)
    runs = [_Run(policy, seed) for policy in POLICIES for seed in range(seeds)]
    found, failed = make_all({run: run.order(path, digest) for run in runs}, __name__, _read, _describe, request)
    shown: dict[str, dict[int, WindowFairness]] = {policy: {} for policy in POLICIES}
    for run, one in found.items():
        shown[run.policy][run.seed] = one
    if request.seeds > seeds:
        notes.append(f"{request.seeds} seeds were asked for, and the trace has {seeds} busy halves of weeks")
    lost = failures({run.order(path, digest).name: why for run, why in failed.items()})
    return FigureTable(rows=(*_values(shown), *_means(shown), *_ahead(shown), *lost), notes=tuple(notes))


def show(
    trace: str, first: float, days: float, seed: int, policy: str, leases: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Make one run, and return what it came to."""
    work = _work(Path(trace), first, days, seed)
    return asdict(measure(work, policy, None if leases is None else Leases(**leases)))


@cache
def _work(trace: Path, first: float, days: float, seed: int) -> WindowRun:
    return played(traces.read(trace, "philly"), first, days, seed)


def _notes(path: Path, trace: Trace, seeds: int) -> list[str]:
    """Return what was left out or cut of each part of the trace. Raises InvalidInput for one without a job to play."""
    notes, problems = [], []
    for seed, day in enumerate(FIRST_DAYS[:seeds]):
        work = played(trace, day, DAYS, seed)
        notes += [f"from day {day:g}: {note}" for note in work.notes]
        if not work.jobs:
            rule = f"there is no job of a tenant with a weight from day {day:g} to day {day + DAYS:g}"
            fix = "give the whole trace, as data/traces/philly has it, or ask for fewer --seeds"
            problems.append(Problem(file=str(path), column="submit_s", rule=rule, fix=fix))
    if problems:
        raise InvalidInput(problems)
    return notes


def _read(file: Path) -> WindowFairness:
    return WindowFairness(**json.loads(file.read_text(encoding="utf-8")))


def _describe(found: WindowFairness) -> str:
    return f"worst-off tenant {found.least:.3f}, mean JCT {found.jct_mean:.0f} s"


def _values(shown: Shown) -> list[FigureRow]:
    """Return what each policy came to in each part of the trace."""
    return [
        FigureRow(series=name, x=FIRST_DAYS[seed], quantity=quantity, unit=unit, measured=_known(value))
        for name, parts in shown.items()
        for seed, found in sorted(parts.items())
        for quantity, unit, value in _quantities(found)
    ]


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _quantities(found: WindowFairness) -> tuple[tuple[str, str, float], ...]:
    return (
        ("tenant_fairness_min", "", found.least),
        ("tenant_fairness_max_over_min", "", found.spread),
        ("tenant_hours_losing", "", found.losing),
        ("jct_mean", "s", found.jct_mean),
    )


def _means(shown: Shown) -> list[FigureRow]:
    """Return each policy's means over the parts, with their 95 % intervals in words."""
    rows = []
    for name, parts in shown.items():
        for values in zip(*(_quantities(found) for _, found in sorted(parts.items())), strict=True):
            mean = estimate(np.array([value for _, _, value in values]))
            if mean is None or not np.isfinite(mean.mean):
                continue
            note = "one seed" if mean.low is None else f"95 % interval {mean.low:.4g} to {mean.high:.4g}"
            quantity, unit, _ = values[0]
            rows.append(FigureRow(series=name, x="mean", quantity=quantity, unit=unit, measured=mean.mean, note=note))
    return rows


def _ahead(shown: Shown) -> list[FigureRow]:
    """Return ASTRAEA over each rival: the worst-off tenant has to be no worse off, under each seed."""
    rows, ours = [], shown[OURS]
    for name, theirs in shown.items():
        if name == OURS:
            continue
        series = f"{OURS} beside {name}"
        rival = not name.startswith(OURS)
        both = {seed: (ours[seed], found) for seed, found in theirs.items() if seed in ours}
        fairness = [(one.least, other.least) for one, other in both.values()]
        about = {"published": PUBLISHED, "source": SOURCE, "note": "published: up to that, of a modified trace"}
        rows += _factor(series, "tenant_fairness_min", fairness, **(about if rival else {}))  # type: ignore[arg-type]
        if rival:
            ahead = sum(one >= other for one, other in fairness)
            about = {"published": len(both), "measured": ahead, "tolerance": 0.0, "source": SOURCE}
            rows.append(FigureRow(series=series, quantity="seeds ahead", unit="", **about))  # type: ignore[arg-type]
        rows += _factor(series, "jct_mean", [(one.jct_mean, other.jct_mean) for one, other in both.values()])
    return rows


def _factor(
    series: str, quantity: str, pairs: Sequence[tuple[float, float]], published: float | None = None, source: str = "",
    note: str = "",
) -> list[FigureRow]:  # fmt: skip
    """Return the geometric mean of ours ÷ theirs over the seeds, with its 95 % interval; no number where one is 0."""
    if pairs and all(one > 0 and other > 0 for one, other in pairs):
        ours, theirs = zip(*pairs, strict=True)
        return ratio_rows(series, quantity, ours, theirs, unit="times", published=published, source=source, note=note)
    note = "a tenant got nothing at all under a seed"
    return [FigureRow(series=series, quantity=quantity, unit="times", published=published, source=source, note=note)]
