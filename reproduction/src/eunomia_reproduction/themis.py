"""Themis against its rivals on finish-time fairness, on searches that share 256 accelerators of one type.

K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 8: the worst ρ of any app
under two kinds of workload, and how it depends on f. Its trace is not public; `themis_runs` says what is played. Apps
come as fast as asks for about twice what there is, as at the peaks of its trace (460 accelerators wanted of 256). The
published values are a yardstick, not a target; what must hold is that no rival has a lower worst ρ.

Rivals take jobs, not apps, each by its own rule, under the leases that Themis has, as in the paper; `drf` is beside
them. ρ = T_sh / T_id is shown by each reading of T_id (`eunomia.model.finish_time`); Themis goes by each of them, and
rivals by none, so that one schedule of theirs has three values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.model.finish_time import IDEAL_TIMES, SHARE
from eunomia.policies.grants.themis.themis import Themis
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.table import FigureRow, FigureTable, Request
from eunomia_reproduction.themis_rows import SOURCE, mean_rows, ratios, summaries
from eunomia_reproduction.themis_runs import (
    JOBS,
    LEASE_S,
    RATE_PER_HOUR,
    STOP_S,
    WORK,
    WORLDS,
    Played,
    Shown,
    in_world,
    played,
    summary_of,
)

OURS = "Themis"
RIVALS = {
    "SRSF": "srtf?measure=service",
    "SRTF": "srtf",
    "Tiresias": "las",
    "Gandiva": "locality",
    "SLAQ": "slaq",
    "Optimus": "optimus",
}
BESIDE = {"DRF": "drf"}  # of which the figures have nothing
WORST = {  # figures 5 and 6, read off: ± 0.1
    "w1": {"Themis": 1.3, "SRSF": 1.75, "SRTF": 2.0, "Tiresias": 2.6, "Gandiva": 2.6, "SLAQ": 3.95, "Optimus": 3.95},
    "w2": {"Themis": 2.15, "SRSF": 2.35, "Gandiva": 2.8, "Optimus": 3.2, "SLAQ": 3.7, "SRTF": 4.0, "Tiresias": 4.25},
}
BY_F = {0.0: 9.8, 0.1: 6.5, 0.3: 6.1, 0.5: 5.4, 0.6: 4.0, 0.8: 3.8, 1.0: 4.8}  # worst ρ, leases of 20 minutes
ENOUGH_SEEDS = 10
QUANTITIES = (  # name, unit; means over seeds
    *((f"rho_{ideal}_max", "") for ideal in IDEAL_TIMES),
    ("rho_share_mean", ""),
    ("apps_behind", "apps"),
    ("apps_behind_by", ""),
    ("app_jct_mean_s", "s"),
    ("cost_usd", "accelerator-h"),
    ("placement_score", ""),
)


def w1(request: Request) -> FigureTable:
    """Play every policy on HyperDrive's searches."""
    return _against_rivals(request, "w1")


def w2(request: Request) -> FigureTable:
    """Play every policy on successive halving's searches with wide gangs."""
    return _against_rivals(request, "w2")


def sweep(request: Request) -> FigureTable:
    """Play Themis with different f on both workloads."""
    asked = [(work, f) for work in WORK for f in BY_F]
    runs = {f"{work} {f}": [Played(work, _ours(f=f), seed) for seed in range(request.seeds)] for work, f in asked}
    found, rows = played(request, runs)
    for work, f in asked:
        by_seed = summaries(found[f"{work} {f}"])
        for quantity, unit in QUANTITIES:
            published = BY_F[f] if quantity == "rho_share_max" else None
            rows += mean_rows(f"{work}: leases of {LEASE_S:g} s", quantity, unit, by_seed, published, x=f)
    figure = Figure(
        name="themis-sweep",
        title="The worst app's finish-time fairness under Themis, by f",
        x_label="f: the larger, the fewer apps may bid",
        y_label="worst ρ",
        curves=(
            FigureCurve(name="published", x=list(BY_F), y=list(BY_F.values()), published=True),
            *(_curve(work, rows) for work in WORK),
        ),
    )
    return FigureTable(rows=tuple(rows), notes=_notes(request, *WORK), figures=(figure,))


def _curve(work: str, rows: Sequence[FigureRow]) -> FigureCurve:
    mine = [row for row in rows if row.series.startswith(f"{work}:") and row.quantity == "rho_share_max"]
    return FigureCurve(name=work, x=list(BY_F), y=[float(row.measured or 0) for row in mine])


def _ours(ideal: str = SHARE, **parameters: float | str) -> str:
    """Return the spelling of Themis with these parameters."""
    said = {"ideal": ideal} | parameters
    said = {key: value for key, value in said.items() if value != getattr(Themis, key)}  # one run for one policy
    return "themis" + ("?" if said else "") + "&".join(f"{key}={value}" for key, value in said.items())


def _against_rivals(request: Request, work: str) -> FigureTable:
    seeds, runs = range(request.seeds), dict[str, list[Played]]()
    for world in WORLDS:
        for ideal in IDEAL_TIMES:
            name = _series(work, world, _name(ideal))
            runs[name] = [Played(work, _ours(ideal), seed, world=world) for seed in seeds]
        for rival, policy in (RIVALS | BESIDE).items():
            name = _series(work, world, rival)
            runs[name] = [Played(work, in_world(policy, world), seed, LEASE_S, world) for seed in seeds]
    found, rows = played(request, runs)
    for name, by_seed in found.items():
        policy = name.rpartition(": ")[2].partition(",")[0]
        for quantity, unit in QUANTITIES:
            published = WORST[work].get(policy) if quantity == "rho_share_max" else None
            rows += mean_rows(name, quantity, unit, summaries(by_seed), published)
    for world in WORLDS:
        for ideal in IDEAL_TIMES:
            rows += [_ahead(work, world, ideal, rival, found) for rival in RIVALS]
        rows += _beside_rivals(work, world, found)
    figures = tuple(_distribution(work, world, found) for world in WORLDS)
    return FigureTable(rows=tuple(rows), notes=_notes(request, work), figures=figures)


def _series(work: str, world: str, policy: str) -> str:
    return f"{work}, {world}: {policy}"


def _name(ideal: str) -> str:
    return OURS if ideal == SHARE else f"{OURS}, ideal={ideal}"


def _ahead(work: str, world: str, ideal: str, rival: str, found: Mapping[str, Mapping[int, Shown]]) -> FigureRow:
    """Return under how many seeds the worst ρ of Themis that goes by `ideal` is not above the rival's by it."""
    mine, other = found[_series(work, world, _name(ideal))], found[_series(work, world, rival)]
    seeds, quantity = sorted(mine.keys() & other.keys()), f"rho_{ideal}_max"
    ahead = sum(summary_of(mine[seed])[quantity] <= summary_of(other[seed])[quantity] for seed in seeds)
    return FigureRow(
        series=f"{_series(work, world, OURS)} not behind {rival}",
        x=ideal,
        quantity="seeds",
        unit="",
        published=len(seeds),
        measured=ahead,
        tolerance=0.0,
        source=SOURCE,
    )


def _beside_rivals(work: str, world: str, found: Mapping[str, Mapping[int, Shown]]) -> list[FigureRow]:
    """Return what rivals come to over what Themis does: the worst ρ by each reading that it goes by, and the cost."""
    rows = list[FigureRow]()
    for rival in (*RIVALS, *BESIDE):
        series, theirs = f"{_series(work, world, rival)} ÷ {OURS}", found[_series(work, world, rival)]
        for ideal in IDEAL_TIMES:
            mine = found[_series(work, world, _name(ideal))]
            rows += ratios(series, f"rho_{ideal}_max", theirs, mine)
            rows += ratios(series, "cost_usd", theirs, mine, ideal)
    return rows


def _distribution(work: str, world: str, found: Mapping[str, Mapping[int, Shown]]) -> Figure:
    """Return the share of apps up to each ρ, the apps of all seeds together."""
    curves = []
    for policy in (OURS, *RIVALS, *BESIDE):
        by_seed = found[_series(work, world, policy)]
        rho = np.sort(np.concatenate([np.zeros(0), *(np.array(one.rho[SHARE]) for one in by_seed.values())]))
        rho = rho[~np.isnan(rho)]
        curves.append(FigureCurve(name=policy, x=rho.tolist(), y=((np.arange(len(rho)) + 1) / len(rho)).tolist()))
    return Figure(
        name=f"themis-{work}-{world}",
        title=f"Who finishes later than on a private part: right of 1 ({work}, {world})",
        x_label="finish-time fairness ρ of an app, ideal=share",
        y_label="share of apps",
        curves=tuple(curves),
        x_log=True,
        steps=True,
    )


def _notes(request: Request, *works: str) -> tuple[str, ...]:
    kinds = "; ".join(f"{work}: {gangs} gangs, tuner {tuner}" for work, (gangs, tuner) in WORK.items() if work in works)
    notes = [
        f"{JOBS:,} trials in apps that arrive {RATE_PER_HOUR:g} an hour on 256 accelerators; {kinds}; a stop costs "
        f"{STOP_S:g} s"
    ]
    if request.seeds < ENOUGH_SEEDS:
        notes.append(f"drawn with {request.seeds} seeds: give --seeds {ENOUGH_SEEDS} for intervals worth reading")
    return tuple(notes)
