"""Themis and its rivals in the world of the authors' simulator: the sweep of f, the rivals, network and contention."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia_reproduction.figure import Figure, FigureCurve
from eunomia_reproduction.ratio_rows import HIGH, LOW, ratio_rows
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, FigureTable, Request
from eunomia_reproduction.themis import BY_F, WORST
from eunomia_reproduction.themis_simulator.bids import DRAWN, LOWEST_FIRST, WORST_FIRST
from eunomia_reproduction.themis_simulator.fairness import jain, rho_as_reported, rho_by_arrivals, rho_by_present
from eunomia_reproduction.themis_simulator.play import FEWEST, MOST, Auctions, play
from eunomia_reproduction.themis_simulator.rivals import GANDIVA, OPTIMUS, SLAQ, SRSF, SRTF, TIRESIAS, WHOLE
from eunomia_reproduction.themis_simulator.workloads import MIXED, REGULAR, offline, online, philly, searches

SOURCE = "Mahajan et al., NSDI 2020, section 8"
RIVALS = {"SRSF": SRSF, "SRTF": SRTF, "Tiresias": TIRESIAS, "Gandiva": GANDIVA, "SLAQ": SLAQ, "Optimus": OPTIMUS}
THEMIS, USUAL_F, USUAL_LEASE = "Themis", 0.8, 20
TIES = {
    "equal bids drawn": (DRAWN, FEWEST),
    "equal bids drawn, most winners": (DRAWN, MOST),
    "of equal bids the worst-off": (WORST_FIRST, FEWEST),
    "of equal bids the lowest number": (LOWEST_FIRST, FEWEST),
}
BY_DEFAULT = next(iter(TIES))
WORST_BY_F = {  # by minutes of a lease
    20: BY_F,
    5: {0.0: 9.4, 0.3: 5.2, 0.5: 3.9, 0.8: 1.8, 1.0: 2.7},
}
HOURS_BY_F = {0.0: 2090, 0.3: 2090, 0.5: 2090, 0.6: 2090, 0.8: 2200, 1.0: 2600}  # leases of 20 minutes, read off
LEASES, NETWORK, CONTENTION = (10, 40), (0.0, 0.6, 1.0), (2.0, 4.0)
LONG_SEEDS, LONG_F = 1, (0.0, 0.8, 1.0)  # of the 502 trials, ten times the work of the others, and of Philly's
PHILLY_LEASES, PHILLY_LEASE = (60, 240, 1440), 240  # Themis', and its rivals'
LEASES_GIVEN = "leases"
QUANTITIES = {
    "worst ρ": "",
    "worst ρ, as reported": "",
    "worst ρ, by arrivals": "",
    "Jain's index": "",
    "accelerator time": "h",
    "mean time of a job": "h",
}
Figures = Mapping[str, float]


class Setting(NamedTuple):
    """One run, without its draw."""

    workload: str  # searches, testbed, offline or philly
    policy: str = THEMIS
    f: float = USUAL_F
    lease: int = USUAL_LEASE
    ties: str = BY_DEFAULT
    network: float = 0.6
    contention: float = 1.0
    whole: bool = False  # a rival serves whole jobs, not single accelerators

    @property
    def name(self) -> str:
        """What rows and files call it, without f."""
        parts = [self.workload, self.policy, f"leases of {self.lease} min"]
        parts += [self.ties] if self.ties != BY_DEFAULT else []
        parts += [f"network-bound {self.network:.0%}"] if self.network != Setting(self.workload).network else []
        parts += [f"contention {self.contention:g} x"] if self.contention != 1.0 else []
        parts += ["whole jobs"] if self.whole else []
        return ", ".join(parts)


def settings(seed: int) -> Iterator[Setting]:
    """Yield the runs that are made with a seed."""
    for lease, values in WORST_BY_F.items():
        yield from (Setting("searches", f=f, lease=lease) for f in values)
    yield from (Setting("searches", lease=lease) for lease in LEASES)
    yield from (Setting("searches", f=f, ties=ties) for ties in TIES if ties != BY_DEFAULT for f in (0.0, USUAL_F))
    yield from (Setting("searches", rival) for rival in RIVALS)
    for policy in (THEMIS, *RIVALS):
        yield from (Setting("testbed", policy, network=part) for part in NETWORK)
        yield from (Setting("testbed", policy, contention=times) for times in CONTENTION)
    yield from (Setting(workload, rival, whole=True) for workload in ("searches", "testbed") for rival in RIVALS)
    if seed < LONG_SEEDS:
        yield from (Setting("offline", f=f) for f in LONG_F)
        yield from (Setting("philly", lease=lease) for lease in PHILLY_LEASES)
        yield from (Setting("philly", rival, lease=PHILLY_LEASE) for rival in RIVALS)


def figures_of(setting: Setting, seed: int) -> Figures:
    """Make one run and return its quantities, by `QUANTITIES`."""
    if setting.workload == "testbed":
        cluster, jobs = MIXED, online(seed, setting.network, setting.contention)
    else:
        cluster, jobs = REGULAR, {"searches": searches, "offline": offline, "philly": philly}[setting.workload](seed)
    rule: Auctions | int = Auctions(1.0 - setting.f, *TIES[setting.ties])
    if setting.policy != THEMIS:
        rule = RIVALS[setting.policy] + WHOLE * setting.whole
    played = play(cluster, jobs, rule, float(setting.lease), seed)
    rho = rho_by_present(jobs, played.ended, len(cluster.unit))
    values = (
        rho.max(),
        rho_as_reported(jobs, played.ended, len(cluster.unit)).max(),
        rho_by_arrivals(jobs, played.ended, len(cluster.unit)).max(),
        jain(rho),
        played.used.sum() / 60.0,
        (played.ended - jobs.arrival).mean() / 60.0,
    )
    return dict(zip(QUANTITIES, map(float, values), strict=True)) | {LEASES_GIVEN: float(played.leases)}


def show(seed: int) -> dict[str, Any]:
    """Make all runs of a seed; the quantities of each by its name and f."""
    return {_key(setting): figures_of(setting, seed) for setting in settings(seed)}


def reproduce(request: Request) -> FigureTable:
    """Play the workloads of the authors' simulator by its rules."""
    seeds = range(request.seeds)
    orders = {seed: RunRequest(f"draw {seed}", {"seed": seed}) for seed in seeds}
    shown, failed = make_all(orders, __name__, _read, lambda runs: f"{len(runs)} runs", request)
    rows = list(failures({orders[seed].name: why for seed, why in failed.items()}))
    found = {
        setting: [shown[seed][_key(setting)] for seed in seeds if seed in shown and _key(setting) in shown[seed]]
        for setting in settings(0)
    }
    for setting, by_seed in found.items():
        for quantity, unit in QUANTITIES.items():
            rows += mean_rows(setting, quantity, unit, [one[quantity] for one in by_seed])
        if setting.workload == "philly":
            rows += mean_rows(setting, LEASES_GIVEN, "leases", [one[LEASES_GIVEN] for one in by_seed])
    rows += _comparisons(found)
    note = f"{len(shown)} draws of each workload, {min(len(shown), LONG_SEEDS)} of offline and philly"
    return FigureTable(rows=tuple(rows), notes=(note,), figures=(_figure(found),))


def mean_rows(setting: Setting, quantity: str, unit: str, values: Sequence[float]) -> list[FigureRow]:
    """Return the mean over draws, and with several draws the ends of its 95 % interval."""
    mean = estimate(np.array(values))
    if mean is None:
        return []
    published = _published(setting, quantity)
    x = setting.f if setting.policy == THEMIS else ""
    return [
        FigureRow(
            series=setting.name, x=x, quantity=quantity + end, unit=unit, measured=value,
            published=published if not end else None, source=SOURCE if published is not None and not end else "",
            note=f"mean of {len(values)} draws" if not end else "",
        )
        for end, value in (("", mean.mean), (LOW, mean.low), (HIGH, mean.high))
        if value is not None
    ]  # fmt: skip


def _published(setting: Setting, quantity: str) -> float | None:
    """Return what was published of a run; which list of trials is behind the figure of the rivals is not known."""
    usual = Setting(setting.workload, setting.policy, setting.f, setting.lease)
    if setting != usual or setting.workload in ("offline", "philly"):
        return None
    if quantity == "worst ρ" and (setting.policy != THEMIS or setting.workload == "testbed"):
        return WORST["w1"][setting.policy]
    if quantity == "worst ρ":
        return WORST_BY_F.get(setting.lease, {}).get(setting.f)
    by_f = setting.workload == "searches" and setting.policy == THEMIS and setting.lease == USUAL_LEASE
    return HOURS_BY_F.get(setting.f) if quantity == "accelerator time" and by_f else None


def _comparisons(found: Mapping[Setting, Sequence[Figures]]) -> list[FigureRow]:
    """Return in how many draws each published order holds; all of them are asked for."""
    rows = []
    for lease in WORST_BY_F:
        at = {f: found[Setting("searches", f=f, lease=lease)] for f in (0.0, USUAL_F, 1.0)}
        for words, more, less in (("at f = 0 than at 0.8", 0.0, USUAL_F), ("at f = 1 than at 0.8", 1.0, USUAL_F)):
            rows.append(_draws(f"worst ρ is larger {words}, leases of {lease} min", at[more], at[less], "worst ρ"))
    at = {f: found[Setting("searches", f=f)] for f in (USUAL_F, 1.0, 0.0)}
    rows.append(_draws("more accelerator time at f = 1 than at 0.8", at[1.0], at[USUAL_F], "accelerator time"))
    rows.append(_draws("more accelerator time at f = 0 than at 0.8", at[0.0], at[USUAL_F], "accelerator time"))
    for workload in ("searches", "testbed"):
        for rival in RIVALS:
            singly, whole = found[Setting(workload, rival)], found[Setting(workload, rival, whole=True)]
            for quantity in ("worst ρ", "accelerator time"):
                series = f"{workload}: {rival}, whole jobs ÷ one accelerator at a time"
                both = ([one[quantity] for one in some] for some in (whole, singly))
                rows += ratio_rows(series, quantity, *both) if whole else []
            words = f"{workload}: {rival} that serves whole jobs has a larger worst ρ than Themis"
            rows.append(_draws(words, whole, found[Setting(workload)], "worst ρ"))
            for quantity in ("worst ρ", "worst ρ, as reported", "worst ρ, by arrivals", "accelerator time"):
                words = f"{workload}: {rival} has a larger {quantity} than Themis"
                rows.append(_draws(words, found[Setting(workload, rival)], found[Setting(workload)], quantity))
    return rows


def _draws(words: str, more: Sequence[Figures], less: Sequence[Figures], quantity: str) -> FigureRow:
    held = sum(one[quantity] > other[quantity] for one, other in zip(more, less, strict=True))
    return FigureRow(series=words, quantity="draws", unit="", published=len(more), measured=held, tolerance=0.0,
                     source=SOURCE)  # fmt: skip


def _figure(found: Mapping[Setting, Sequence[Figures]]) -> Figure:
    """Return the worst ρ by f, published and measured."""
    curves = []
    for lease, published in WORST_BY_F.items():
        name, x = f"leases of {lease} min", list(published)
        curves.append(FigureCurve(name=name, x=x, y=list(published.values()), published=True))
        means = [
            estimate(np.array([one["worst ρ"] for one in found[Setting("searches", f=f, lease=lease)]])) for f in x
        ]
        known = [mean for mean in means if mean is not None]
        low, high = ([float(end) for end in ends if end is not None] for ends in (
            [mean.low for mean in known], [mean.high for mean in known]))  # fmt: skip
        if len(known) == len(x):
            curves.append(FigureCurve(name=name, x=x, y=[mean.mean for mean in known], low=low, high=high))
    return Figure(
        name="themis-simulator",
        title="The worst job's finish-time fairness in the authors' simulator, by f",
        x_label="f: the larger, the fewer jobs may bid",
        y_label="worst ρ",
        curves=tuple(curves),
    )


def _key(setting: Setting) -> str:
    return f"{setting.name}, f = {setting.f:g}"


def _read(file: Path) -> dict[str, Figures]:
    return dict(json.loads(file.read_text(encoding="utf-8")))
