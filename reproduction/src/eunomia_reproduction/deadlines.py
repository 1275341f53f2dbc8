"""Deadlines missed by policies that go by deadlines, where the cluster has room for all.

Jobs of Gavel's generator on one accelerator each, with deadlines of 1.2, 2 or 10 times their duration on a V100, on 36
V100, 36 P100 and 36 K80, under the default leases. Where most throughput misses no deadline there is room for all, and
a policy that knows the deadlines has no excuse: at most 2 % of its jobs may be late. Where it does miss some, rows
are not checked.
"""

from __future__ import annotations

import eunomia
from eunomia_reproduction.table import FigureRow, FigureTable, Request

FASTEST = "max_throughput"
POLICIES = (FASTEST, "edf", "least_slack", "min_cost", "throughput_per_cost?deadlines=true")
RATES = (4.0, 6.0)  # jobs per hour
JOBS, LATE_AT_MOST = 500, 2.0  # jobs; % of them
TYPES, PRICES = ("v100", "p100", "k80"), {"v100": 0.74, "p100": 0.43, "k80": 0.135}


def reproduce(request: Request) -> FigureTable:
    """Return the late jobs, the utilisation and the cost of each policy at each load, as means over the seeds."""
    rows = []
    for rate in RATES:
        late: dict[str, float] = {}
        for policy in POLICIES:
            each = [_summary(policy, rate, seed) for seed in range(request.seeds)]
            late[policy], busy, cost = (sum(of) / len(each) for of in zip(*each, strict=True))
            request.tell(f"{policy} at {rate:g} jobs per hour: {late[policy]:.2f} % late, {busy:.0f} % busy")
            checked = policy != FASTEST and late[FASTEST] == 0
            rows += [
                FigureRow(
                    series=policy,
                    x=rate,
                    quantity="jobs after their deadline",
                    unit="%",
                    published=0 if checked else None,
                    measured=late[policy],
                    tolerance=LATE_AT_MOST if checked else None,
                    note="most throughput misses none" if checked else "",
                ),
                FigureRow(series=policy, x=rate, quantity="utilisation", unit="%", measured=busy),
                FigureRow(series=policy, x=rate, quantity="cost", unit="US$", measured=cost),
            ]
    return FigureTable(rows=tuple(rows), notes=(f"{JOBS} jobs, {request.seeds} seed(s).",))


def _summary(policy: str, rate: float, seed: int) -> tuple[float, float, float]:
    """Return the late jobs and the utilisation in %, and the cost in US$."""
    scenario = {
        "seed": seed,
        "cluster": {
            "nodes": [{"type": kind, "count": 36, "accelerators": 1} for kind in TYPES],
            "prices": PRICES,
        },
        "workload": {"generator": "gavel", "jobs": JOBS, "rate_per_hour": rate, "deadlines": True},
        "policy": {"name": policy},
    }
    summary = eunomia.simulate(scenario).summary
    late, busy, cost = (float(summary[name] or 0.0) for name in ("deadlines_missed", "utilization", "cost_usd"))
    return 100.0 * late / JOBS, 100.0 * busy, cost
