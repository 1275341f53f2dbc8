"""What fairness costs in a sweep: each run against the best of its policies, as `compare` counts it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.runs.compare import PRICES, Case, prices_of_fairness
from eunomia.runs.simulation import Result
from eunomia.sweeps.plan import PlannedRun

Numbers = Mapping[str, float | int | None]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What of a `Result` was kept, as far as prices look at it."""

    summary: Numbers
    jobs: Mapping[str, Floats]


def prices_of(rows: Sequence[PlannedRun], summaries: Sequence[Numbers], service_s: Sequence[float]) -> list[Numbers]:
    """Return the `PRICES` of each run among those that differ from it by nothing but the policy.

    `service_s` are the accelerator-seconds that the jobs of each run held, (run,).
    """
    groups: dict[tuple[tuple[str, object], ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        groups[tuple((key, value) for key, value in row.labels.items() if key != "policy")].append(number)
    prices: list[Numbers] = [dict.fromkeys(PRICES) for _ in rows]
    for group in groups.values():
        kept = [(_case(rows[n]), _Kept(summaries[n], {"attained_service_s": np.array([service_s[n]])})) for n in group]
        found = prices_of_fairness(cast(list[tuple[Case, Result]], kept))
        for number, price in zip(group, found, strict=True):
            prices[number] = price
    return prices


def _case(row: PlannedRun) -> Case:
    scenario = row.scenario
    return Case(policy=str(row.labels["policy"]), load=scenario.workload.load, seed=scenario.seed, scenario=scenario)
