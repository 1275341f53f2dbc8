"""Themis against its rivals on finish-time fairness, on searches that share 256 accelerators of one type.

K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 8: the worst ρ of any app
under two kinds of workload, and how it depends on f and on the length of leases. Its trace is not public. Here apps are
drawn by the distributions that it publishes (generator `searches`); which of their trials continue is decided by
HyperDrive in the first workload and by successive halving, with gangs twice as wide, in the second. Apps come as fast
as asks for about twice what there is, as at the peaks of its trace (460 accelerators wanted of 256). The published
values are a yardstick, not a target; what must hold is that no rival has a lower worst ρ.

Machines are of 8, 16 and 2 accelerators, in racks; gangs are slowed by where they sit (`placement = "themis"`). Whoever
is stopped loses 45 s. Rivals take jobs, not apps: each by its own rule, asked whenever something changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.sweeps.batch import simulate_many
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.table import FigureRow, FigureTable, Request

JOBS, RATE_PER_HOUR = 1500, 6.0
NODES = [
    *({"type": "gpu", "count": 4, "accelerators": 8, "rack": f"r{rack}"} for rack in range(4)),
    *({"type": "gpu", "count": 3, "accelerators": 16, "rack": f"r{rack}"} for rack in range(2)),
    *({"type": "gpu", "count": 4, "accelerators": 2, "rack": f"r{rack}"} for rack in range(4)),
]
STOP_S = 45.0
OURS = "Themis"
POLICY = {
    OURS: "themis",
    "SRSF": "srtf?measure=service",
    "SRTF": "srtf",
    "Tiresias": "las",
    "Gandiva": "locality",
    "SLAQ": "slaq",
    "Optimus": "optimus",
}
WORST = {  # figures 5 and 6, read off: ± 0.1
    "w1": {"Themis": 1.3, "SRSF": 1.75, "SRTF": 2.0, "Tiresias": 2.6, "Gandiva": 2.6, "SLAQ": 3.95, "Optimus": 3.95},
    "w2": {"Themis": 2.15, "SRSF": 2.35, "Gandiva": 2.8, "Optimus": 3.2, "SLAQ": 3.7, "SRTF": 4.0, "Tiresias": 4.25},
}
WORK: Mapping[str, tuple[str, str]] = {"w1": ("small", "hyperdrive"), "w2": ("network", "halving")}  # gangs, tuner
BY_F = {  # worst ρ by f, for leases of so many seconds
    1200: {0.0: 9.8, 0.1: 6.5, 0.3: 6.1, 0.5: 5.4, 0.6: 4.0, 0.8: 3.8, 1.0: 4.8},
    300: {0.0: 9.4, 0.3: 5.2, 0.5: 3.9, 0.8: 1.8, 1.0: 2.7},
}
ASKED: Mapping[int, tuple[float, ...]] = {  # f for each length of leases; the paper tells values for two of them
    300: tuple(BY_F[300]),
    600: tuple(BY_F[300]),
    1200: tuple(BY_F[1200]),
    2400: tuple(BY_F[300]),
}
SOURCE = "Mahajan et al., NSDI 2020, section 8"
ENOUGH_SEEDS = 10
QUANTITIES = (("rho_themis_max", ""), ("rho_themis_mean", ""), ("app_jct_mean_s", "s"), ("cost_usd", "accelerator-h"))
Summary = Mapping[str, float | int | None]


def w1(request: Request) -> FigureTable:
    """Play every policy on HyperDrive's searches."""
    return _against_rivals(request, "w1")


def w2(request: Request) -> FigureTable:
    """Play every policy on successive halving's searches with wide gangs."""
    return _against_rivals(request, "w2")


def sweep(request: Request) -> FigureTable:
    """Play Themis with different f and leases on HyperDrive's searches."""
    asked = [(lease, f) for lease, values in ASKED.items() for f in values]
    found = _played(request, "w1", {f"lease {lease} s, f {f:g}": f"themis?f={f}&lease_s={lease}" for lease, f in asked})
    rows = []
    for lease, f in asked:
        by_seed = found[f"lease {lease} s, f {f:g}"]
        for quantity, unit in (QUANTITIES[0], QUANTITIES[3]):
            published = BY_F.get(lease, {}).get(f) if quantity == "rho_themis_max" else None
            rows.append(_mean(f"w1, leases of {lease} s", quantity, unit, by_seed, published, x=f))
    figure = Figure(
        name="themis-sweep",
        title="The worst app's finish-time fairness under Themis, by f",
        x_label="f: the larger, the fewer apps may bid",
        y_label="worst ρ",
        curves=tuple(curve for lease in ASKED for curve in _curves(lease, rows)),
    )
    return FigureTable(rows=tuple(rows), notes=_notes(request, "w1"), figures=(figure,))


def _curves(lease: int, rows: Sequence[FigureRow]) -> list[FigureCurve]:
    """Return the published curve for leases of that length, where there is one, and the measured one."""
    series = f"w1, leases of {lease} s"
    mine = [row for row in rows if row.series == series and row.quantity == "rho_themis_max"]
    name, x = f"leases of {lease / 60:g} min", list(ASKED[lease])
    measured = FigureCurve(name=name, x=x, y=[float(row.measured or 0) for row in mine])
    if lease not in BY_F:
        return [measured]
    return [FigureCurve(name=name, x=x, y=[float(row.published or 0) for row in mine], published=True), measured]


def _against_rivals(request: Request, work: str) -> FigureTable:
    found = _played(request, work, POLICY)
    rows = []
    for policy, by_seed in found.items():
        for quantity, unit in QUANTITIES:
            published = WORST[work][policy] if quantity == "rho_themis_max" else None
            rows.append(_mean(f"{work}: {policy}", quantity, unit, by_seed, published))
    for rival in POLICY:
        if rival != OURS:
            rows.append(_ahead(work, rival, found))
    return FigureTable(rows=tuple(rows), notes=_notes(request, work))


def _played(request: Request, work: str, policies: Mapping[str, str]) -> dict[str, list[Summary]]:
    """Return the numbers of every policy under every seed."""
    tasks = [(name, seed) for name in policies for seed in range(request.seeds)]
    request.tell(f"{len(tasks)} runs of {JOBS:,} jobs each")
    scenarios = [scenario_of(work, policies[name], seed) for name, seed in tasks]
    keep = None if request.keep is None else request.keep / "runs"
    found: dict[str, list[Summary]] = {name: [] for name in policies}
    summaries = simulate_many(scenarios, workers=os.cpu_count() or 1, folder=keep)
    for (name, _), summary in zip(tasks, summaries, strict=True):
        found[name].append(summary)
    return found


def scenario_of(work: str, policy: str, seed: int, jobs: int = JOBS, rate_per_hour: float = RATE_PER_HOUR) -> Scenario:
    """Return one run. jobs are trials, rate_per_hour apps."""
    gangs, tuner = WORK[work]
    said: dict[str, Any] = {
        "seed": seed,
        "cluster": {"nodes": NODES, "prices": {"gpu": 1.0}},  # so that the cost is accelerator-hours
        "workload": {
            "generator": "searches",
            "jobs": jobs,
            "rate_per_hour": rate_per_hour,
            "gangs": gangs,
            "elastic": "halves",
        },
        "throughputs": {"source": "linear"},
        "apps": {"tuner": tuner} | ({"pause": False} if tuner == "halving" else {}),  # trials run on until beaten
        "policy": {"name": policy},
        "physics": {"placement": "themis", "accelerators_per_slot": 2},
        "overheads": {"restore_s": STOP_S},
    }
    return scenario_from_dict(said, Path(), f"{work} {policy} seed {seed}")


def _mean(
    series: str, quantity: str, unit: str, by_seed: Sequence[Summary], published: float | None, x: float | str = ""
) -> FigureRow:
    values = [float(value) for summary in by_seed if (value := summary[quantity]) is not None]
    mean = estimate(np.array(values))
    if mean is None:
        note = "no app finished"
    elif mean.low is None:
        note = "one seed"
    else:
        note = f"mean of {len(values)} seeds, 95 % interval {mean.low:.4g} to {mean.high:.4g}"
    return FigureRow(
        series=series,
        x=x,
        quantity=quantity,
        unit=unit,
        published=published,
        measured=None if mean is None else mean.mean,
        source=SOURCE if published is not None else "",
        note=note,
    )


def _ahead(work: str, rival: str, found: Mapping[str, Sequence[Summary]]) -> FigureRow:
    """Return under how many seeds Themis' worst ρ is not above the rival's; it has to be every one."""
    pairs = zip(found[OURS], found[rival], strict=True)
    ahead = sum(mine["rho_themis_max"] <= other["rho_themis_max"] for mine, other in pairs)  # type: ignore[operator]
    return FigureRow(
        series=f"{work}: {OURS} not behind {rival}",
        quantity="seeds",
        unit="",
        published=len(found[OURS]),
        measured=ahead,
        tolerance=0.0,
        source=SOURCE,
    )


def _notes(request: Request, work: str) -> tuple[str, ...]:
    gangs, tuner = WORK[work]
    notes = [
        f"{JOBS:,} trials in apps that arrive {RATE_PER_HOUR:g} an hour, {gangs} gangs, tuner {tuner}, "
        f"on 256 accelerators; a stop costs {STOP_S:g} s"
    ]
    if request.seeds < ENOUGH_SEEDS:
        notes.append(f"drawn with {request.seeds} seeds: give --seeds {ENOUGH_SEEDS} for intervals worth reading")
    return tuple(notes)
