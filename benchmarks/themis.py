"""Themis with thousands of apps: searches by HyperDrive on 256 accelerators, leases of 20 minutes.

The workload is that of `eunomia reproduce themis-w1`, longer, and with apps that come more slowly, so that they pile up
less. `python -m benchmarks.themis`, eight minutes of CPU time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.side_by_side import on_one_thread
from eunomia.model.answers import Grants
from eunomia.model.view import View
from eunomia.policies.grants.themis.themis import Themis
from eunomia.runs.simulation import simulate
from eunomia.traces.generators import Searches
from eunomia_reproduction.themis_runs import Played, scenario_of

APPS, RATE_PER_HOUR = 2000, 3.75
MOST_TRIALS = 101  # more than any app has
decide = Themis.decide
HEAD = "apps | trials | rate/h | days | apps there | asks | auctions | p50, p95, p99 ms | policy s | CPU s | worst ρ"


def trials_of(apps: int, seed: int) -> int:
    """Return how many trials the first `apps` apps have."""
    return Searches(jobs=MOST_TRIALS * apps).draw(seed).app.index(f"app-{apps}")


def main() -> None:
    """Play it, and print a row of docs/performance.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.themis", description=__doc__)
    parser.add_argument("--apps", type=int, default=APPS)
    parser.add_argument("--rate", type=float, default=RATE_PER_HOUR, help="apps that arrive per hour")
    parser.add_argument("--policy", default="themis", help="with parameters, as in themis?f=0.5")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    simulate(scenario_of(Played("w1", asked.policy, asked.seed, jobs=150)))  # the warm-up
    spent: list[float] = []
    auctions: list[bool] = []

    def timed(policy: Themis, view: View) -> Grants:
        before = time.process_time()
        answer = decide(policy, view)
        spent.append(time.process_time() - before)
        auctions.append(answer.certificate is not None)
        return answer

    Themis.decide = timed  # type: ignore[method-assign,assignment]
    trials = trials_of(asked.apps, asked.seed)
    scenario = scenario_of(Played("w1", asked.policy, asked.seed, jobs=trials, rate_per_hour=asked.rate))
    before = time.process_time()
    summary = simulate(scenario).summary
    cpu_s = time.process_time() - before
    jct, end = (float(summary[name] or np.nan) for name in ("app_jct_mean_s", "end_s"))
    p50, p95, p99 = 1000 * np.percentile(spent, [50, 95, 99])
    print(HEAD)
    print(
        f"{summary['apps_finished']:,} | {summary['jobs_submitted']:,} | {asked.rate:g} | {end / 86400:.1f} | "
        f"{asked.apps * jct / end:.1f} | {len(spent):,} | {sum(auctions):,} | {p50:.2f}, {p95:.2f}, {p99:.2f} | "
        f"{sum(spent):.0f} | {cpu_s:.0f} | {summary['rho_themis_max']:.3g}"
    )


if __name__ == "__main__":
    on_one_thread()
    main()
