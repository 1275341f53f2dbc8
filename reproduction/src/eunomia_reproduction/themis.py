"""Themis against its rivals on finish-time fairness, on searches that share 256 accelerators of one type.

K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 8: the worst ρ of any app
under two kinds of workload, and how it depends on f and on the length of leases. Its trace is not public. Here apps are
drawn by the distributions that it publishes (generator `searches`); which of their trials continue is decided by
HyperDrive in the first workload and by successive halving, with gangs twice as wide, in the second. Apps come as fast
as asks for about twice what there is, as at the peaks of its trace (460 accelerators wanted of 256). The published
values are a yardstick, not a target; what must hold is that no rival has a lower worst ρ.

Machines are of 8, 16 and 2 accelerators, in racks; gangs are slowed by where they sit (`placement = "themis"`). Whoever
is stopped loses 45 s. Rivals take jobs, not apps, each by its own rule: under the leases that Themis has, as in the
paper, and beside that asked whenever something changes, when they may stop any job.

ρ is T_sh / T_id, T_id = N x the time alone on the cluster. N, the mean number of apps present, depends on the policy:
one that keeps all apps in the cluster has a low ρ. So each table has ρ with another T_id too, the same for all
policies: that of the same searches under equal shares (`drf`), which is what T_id stands for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.runs.fingerprint import scenario_hash
from eunomia.runs.simulation import simulate
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, FigureTable, Request

WORKER = "eunomia_reproduction.themis_worker"
JOBS, RATE_PER_HOUR = 6000, 6.0  # 1,500 trials are some thirty apps, and the worst is one that was alone
LEASE_S = 1200.0
NODES = [
    *({"type": "gpu", "count": 4, "accelerators": 8, "rack": f"r{rack}"} for rack in range(4)),
    *({"type": "gpu", "count": 3, "accelerators": 16, "rack": f"r{rack}"} for rack in range(2)),
    *({"type": "gpu", "count": 4, "accelerators": 2, "rack": f"r{rack}"} for rack in range(4)),
]
STOP_S = 45.0
OURS, OF_JOBS = "Themis", "Themis, leases of jobs"  # the second auctions at once what a job leaves
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
QUANTITIES = (  # name, unit, and what is taken over the apps of a run
    ("rho_themis_max", ""),
    ("rho_fixed_max", ""),
    ("rho_themis_mean", ""),
    ("rho_fixed_mean", ""),
    ("app_jct_mean_s", "s"),
    ("cost_usd", "accelerator-h"),
)
AHEAD = {"rho_themis_max": "", "rho_fixed_max": ", T_id under equal shares"}  # what must be lowest, and its suffix
Summary = Mapping[str, float]


class Played(NamedTuple):
    """A run to make: under leases of so many seconds, or else as the policy says by itself."""

    work: str
    policy: str
    seed: int
    lease_s: float | None = None


class Shown(NamedTuple):
    """What a run showed: of each app the seconds to its end and its ρ, nan = it did not end; and accelerator-hours."""

    jct_s: list[float]
    rho: list[float]
    cost_usd: float


EQUAL = "drf", LEASE_S  # the tenants of `searches` are its apps


def w1(request: Request) -> FigureTable:
    """Play every policy on HyperDrive's searches."""
    return _against_rivals(request, "w1")


def w2(request: Request) -> FigureTable:
    """Play every policy on successive halving's searches with wide gangs."""
    return _against_rivals(request, "w2")


def sweep(request: Request) -> FigureTable:
    """Play Themis with different f and leases on HyperDrive's searches."""
    asked = [(lease, f) for lease, values in ASKED.items() for f in values]
    policies = {f"lease {lease} s, f {f:g}": (f"themis?f={f}&lease_s={lease}", None) for lease, f in asked}
    found, rows = _played(request, "w1", policies)
    for lease, f in asked:
        by_seed = found[f"lease {lease} s, f {f:g}"]
        for quantity, unit in (QUANTITIES[0], QUANTITIES[1], QUANTITIES[-1]):
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
    rivals = [policy for policy in POLICY if policy != OURS]
    policies: dict[str, tuple[str, float | None]] = {OURS: (POLICY[OURS], None)}
    policies[OF_JOBS] = f"{POLICY[OURS]}?app_leases=false", None
    policies |= {rival: (POLICY[rival], LEASE_S) for rival in rivals}
    policies |= {f"{rival}, at every event": (POLICY[rival], None) for rival in rivals}
    found, rows = _played(request, work, policies)
    for policy, by_seed in found.items():
        for quantity, unit in QUANTITIES:
            published = WORST[work].get(policy) if quantity == "rho_themis_max" else None
            rows.append(_mean(f"{work}: {policy}", quantity, unit, by_seed, published))
    rows += [_ahead(work, rival, quantity, found) for quantity in AHEAD for rival in rivals]
    return FigureTable(rows=tuple(rows), notes=_notes(request, work))


def _played(
    request: Request, work: str, policies: Mapping[str, tuple[str, float | None]]
) -> tuple[dict[str, list[Summary]], list[FigureRow]]:
    """Return the numbers of every policy under every seed, and rows of runs that failed."""
    seeds = range(request.seeds)
    runs = [Played(work, policy, seed, lease) for seed in seeds for policy, lease in (EQUAL, *policies.values())]
    orders = {}
    for run in runs:
        scenario = scenario_of(run.work, run.policy, run.seed, lease_s=run.lease_s)
        task = {"jobs": JOBS, **run._asdict()}
        orders[run] = RunRequest(scenario.name, scenario_hash(scenario), task)
    shown, failed = make_all(orders, WORKER, _read, lambda one: f"worst ρ {_worst(one.rho):.2f}", request)
    found: dict[str, list[Summary]] = {}
    for name, (policy, lease) in policies.items():
        pairs = [
            (shown.get(Played(work, policy, k, lease)), shown.get(Played(work, EQUAL[0], k, EQUAL[1]))) for k in seeds
        ]
        found[name] = [summary_of(one, equal) for one, equal in pairs if one is not None and equal is not None]
    return found, list(failures({orders[run].name: why for run, why in failed.items()}))


def show(said: Mapping[str, Any]) -> dict[str, Any]:
    """Make a run that a task describes, and return what it showed."""
    scenario = scenario_of(said["work"], said["policy"], said["seed"], said["jobs"], lease_s=said["lease_s"])
    result = simulate(scenario)
    apps = result.figures.apps
    rho, jct = (np.asarray(apps[name], dtype=float).tolist() for name in ("rho_themis", "jct_s"))
    return Shown(jct, rho, float(result.summary["cost_usd"] or 0.0))._asdict()


def _read(file: Path) -> Shown:
    return Shown(**json.loads(file.read_text(encoding="utf-8")))


def _worst(rho: Sequence[float]) -> float:
    return max((one for one in rho if not math.isnan(one)), default=math.nan)


def summary_of(one: Shown, equal: Shown) -> Summary:
    """Return the quantities of a run, with T_id of its own and with that of the run under equal shares."""
    jct = np.array(one.jct_s)
    fixed = jct * np.array(equal.rho) / np.array(equal.jct_s)
    by_name = {"themis": np.array(one.rho), "fixed": fixed}
    numbers = {"app_jct_mean_s": float(np.nanmean(jct)), "cost_usd": one.cost_usd}
    for name, rho in by_name.items():
        numbers |= {f"rho_{name}_max": float(np.nanmax(rho)), f"rho_{name}_mean": float(np.nanmean(rho))}
    return numbers


def scenario_of(
    work: str,
    policy: str,
    seed: int,
    jobs: int = JOBS,
    rate_per_hour: float = RATE_PER_HOUR,
    *,
    lease_s: float | None = None,
) -> Scenario:
    """Return one run. jobs are trials, rate_per_hour apps; lease_s None = the policy's own mechanism."""
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
    if lease_s is not None:
        said["mechanism"] = {"name": "leases", "length_s": lease_s, "aligned": False, "recall": False}
    under = "" if lease_s is None else f", leases of {lease_s:g} s"
    return scenario_from_dict(said, Path(), f"{work} {policy}{under}, seed {seed}")


def _mean(
    series: str, quantity: str, unit: str, by_seed: Sequence[Summary], published: float | None, x: float | str = ""
) -> FigureRow:
    values = [summary[quantity] for summary in by_seed]
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


def _ahead(work: str, rival: str, quantity: str, found: Mapping[str, Sequence[Summary]]) -> FigureRow:
    """Return under how many seeds Themis' worst ρ is not above the rival's; it has to be every one."""
    pairs = zip(found[OURS], found[rival], strict=True)
    ahead = sum(mine[quantity] <= other[quantity] for mine, other in pairs)
    return FigureRow(
        series=f"{work}: {OURS} not behind {rival}{AHEAD[quantity]}",
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
