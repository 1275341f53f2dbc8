"""Themis' smaller experiments: bid errors, a lying app, network-bound apps, contention, placement and overheads.

K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, section 8, on the first workload of
`themis_runs` with fewer trials and rigid gangs. DRF, Quincy and Carbyne are beside the rivals of the paper. The liar
says with every bid that what it would win helps it more than it does; its own time is compared with that of the same
run where it is honest. The CPU time of all decisions is shown and not compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.table import FigureRow, FigureTable, Request
from eunomia_reproduction.themis_rows import SOURCE, mean_rows, ratios, summaries
from eunomia_reproduction.themis_runs import LEASE_S, RATE_PER_HOUR, Played, Shown, played

JOBS = 1000
ERRORS = (0.0, 0.05, 0.1, 0.2)
LIES = (1.0, 3.0, 10.0)
LIAR = 2  # number of the app, in order of submission
BIDS = {"empty=finite": "themis", "empty=infinite, lease": "themis?empty=infinite&indivisible=lease"}
NETWORK_BOUND = (0.0, 0.5, 1.0)
RATES_PER_HOUR = (3.0, 12.0)  # a half of and twice that of the other experiments
OURS = "Themis"
POLICIES: Mapping[str, tuple[str, float | None]] = {
    OURS: ("themis", None),
    "Tiresias": ("las", LEASE_S),
    "Gandiva": ("locality", LEASE_S),
    "DRF": ("drf", LEASE_S),
    "Quincy": ("quincy", None),
    "Carbyne": ("carbyne", None),
}
QUANTITIES = (
    ("rho_share_max", ""),
    ("apps_behind", "apps"),
    ("cost_usd", "accelerator-h"),
    ("placement_score", ""),
    ("CPU time of decisions", "s"),
)


def more(request: Request) -> FigureTable:
    """Play the smaller experiments."""
    runs: dict[tuple[str, float], list[Played]] = {}
    seeds = range(request.seeds)

    def add(
        series: str,
        x: float,
        policy: str,
        lease_s: float | None = None,
        *,
        rate: float = RATE_PER_HOUR,
        network_bound: float | None = None,
    ) -> None:
        one = Played("w1", policy, 0, lease_s, jobs=JOBS, rate_per_hour=rate, network_bound=network_bound)
        runs[series, x] = [one._replace(seed=seed) for seed in seeds]

    for error in ERRORS:
        add("bid error", error, f"themis?bid_error={error}" if error else "themis")
    for name, bids in BIDS.items():
        for lie in LIES:
            mark = "&" if "?" in bids else "?"
            add(_lying(name), lie, bids if lie == 1 else f"{bids}{mark}liar=app-{LIAR}&lie={lie}")
    for name, (policy, lease_s) in POLICIES.items():
        for share in NETWORK_BOUND:
            add(f"network-bound: {name}", share, policy, lease_s, network_bound=share)
        for rate in RATES_PER_HOUR:
            add(f"apps an hour: {name}", rate, policy, lease_s, rate=rate)
    found, rows = played(request, {f"{series}|{x}": some for (series, x), some in runs.items()})
    for series, x in runs:
        by_seed = found[f"{series}|{x}"]
        rows += [row for name, unit in QUANTITIES for row in mean_rows(series, name, unit, summaries(by_seed), None, x)]
    rows += [row for name in BIDS for lie in LIES[1:] for row in _liar(name, lie, found)]
    for error in ERRORS[1:]:
        rows += ratios("bid error ÷ none", "rho_share_max", found[f"bid error|{error}"], found["bid error|0.0"], error)
    for share in NETWORK_BOUND:
        mine = found[f"network-bound: {OURS}|{share}"]
        for name in list(POLICIES)[1:]:
            theirs = found[f"network-bound: {name}|{share}"]
            rows += ratios(f"network-bound: {name} ÷ {OURS}", "cost_usd", theirs, mine, share)
    notes = (f"{JOBS:,} trials of the first workload, rigid gangs, {request.seeds} seeds",)
    return FigureTable(rows=tuple(rows), notes=notes)


def _lying(bids: str) -> str:
    return f"liar: {bids}"


def _liar(bids: str, lie: float, found: Mapping[str, Mapping[int, Shown]]) -> list[FigureRow]:
    """Return the liar's time over that of the same app in the same run without the lie."""
    honest, lies = found[f"{_lying(bids)}|{LIES[0]}"], found[f"{_lying(bids)}|{lie}"]
    seeds = sorted(honest.keys() & lies.keys())
    times = [[one[seed].jct_s[LIAR] for seed in seeds] for one in (lies, honest)]
    if not np.isfinite(times).all():  # it did not end
        return []
    note = "a liar must not finish sooner"
    return ratio_rows(_lying(bids), "time of the liar ÷ its honest time", *times, x=lie, source=SOURCE, note=note)
