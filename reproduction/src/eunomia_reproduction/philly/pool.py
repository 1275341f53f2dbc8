"""A pool for first runs (section 5), judged by the starts of whole gangs that it saves.

A gang that fails within the pre-run never holds the accelerators of a gang. By Table 7, with its lognormal run times to
failure, about half of the failed trials of gangs end within five minutes. Played is a busy cluster of 160 accelerators
under Philly's scheduler without a pool, with one for gangs, and with one for every job.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eunomia.failures.philly_reasons import REASONS
from eunomia.failures.run_times import MINUTE_S, P90
from eunomia.model import elementary
from eunomia.model.decisions import Decision, Start, one_by_one
from eunomia.model.events import JobFailed, JobSubmitted, Moment
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import virtual_backend
from eunomia_reproduction.philly.averages import range_note
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.table import FigureRow, FigureTable, Request

PRERUN_S = 300.0
POOLS: Mapping[str, dict[str, Any]] = {
    "no pool": {},
    "a pool for gangs": {"prerun_s": PRERUN_S},
    "a pool for every job": {"prerun_s": PRERUN_S, "prerun": "all"},
}
BARE = "no pool"
JOBS, ACCELERATORS, LEAST_SEEDS = 1500, 160, 5
SOURCE = "Jeon et al., ATC 2019, section 5"
QUANTITIES = {  # unit of each
    "starts": "starts of whole gangs",
    "early": "starts of whole gangs that failed within the pre-run",
    "spared": "trials of gangs that failed in the pool",
    "first_wait": "s",
    "jct_mean": "s",
}


@dataclass(slots=True)
class GangStarts:
    """An observer that counts starts of gangs, and those of their trials that failed early."""

    starts: int = 0  # with all accelerators
    early: int = 0  # of these, that failed within the pre-run
    spared: int = 0  # trials that failed on one accelerator
    gangs: set[str] = field(default_factory=set)
    last: dict[str, tuple[float, int]] = field(default_factory=dict)  # when it started, on how many accelerators

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Receive one moment and its decisions."""
        for event in moment.events:
            if isinstance(event, JobSubmitted) and event.job.scale_factor > 1:
                self.gangs.add(event.job.job_id)
            elif isinstance(event, JobFailed) and event.job_id in self.gangs:
                started, size = self.last[event.job_id]
                self.spared += size == 1
                self.early += size > 1 and moment.at - started <= PRERUN_S
        for order in one_by_one(decisions):
            if isinstance(order, Start) and order.job_id in self.gangs:
                self.last[order.job_id] = (moment.at, len(order.seats))
                self.starts += len(order.seats) > 1


def reproduce(request: Request) -> FigureTable:
    """Play each pool with five seeds, or more if asked."""
    seeds = max(request.seeds, LEAST_SEEDS)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in POOLS}
    for seed in range(seeds):
        for name, parameters in POOLS.items():
            request.tell(f"philly-pool: {name}, seed {seed + 1} of {seeds}")
            found[name].append(played(seed, parameters))
    rows = [early_trials(), *_values(found), *_ratios(found)]
    return FigureTable(rows=tuple(rows), notes=(f"{JOBS} jobs on {ACCELERATORS} accelerators; {seeds} seeds",))


def early_trials() -> FigureRow:
    """Return which part of the failed trials of gangs ends within the pre-run, by the lognormals of Table 7."""
    early = gangs = 0.0
    for reason in REASONS:
        wide = sum(reason.trials_by_size[1:])
        sigma = elementary.log(reason.p90_min / reason.p50_min) / P90
        z = elementary.log(PRERUN_S / MINUTE_S / reason.p50_min) / sigma if sigma else math.inf
        early += wide * 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))
        gangs += wide
    return FigureRow(
        series="failed trials of gangs that end within 5 minutes",
        quantity="trials",
        unit="of all",
        measured=round(early / gangs, 6),
        source="Jeon et al., ATC 2019, Table 7",
        note="not published: by the medians and 90th percentiles of the table",
    )


def played(seed: int, parameters: Mapping[str, Any], jobs: int = JOBS) -> dict[str, float]:
    """Play the workload of a seed; return the numbers named in QUANTITIES."""
    scenario = scenario_from_dict(
        {
            "seed": seed,
            "cluster": {"accelerators": {"gpu": ACCELERATORS}},
            "workload": {
                "generator": "philly-like",
                "distribution": "philly-submitted",
                "jobs": jobs,
                "rate_per_hour": 14,
                "tenants": 4,
                "elastic": "halves",
            },
            "throughputs": {"source": "linear"},
            "policy": {"name": "philly", **parameters},
            "physics": {"fates": "philly"},
        },
        Path(),
    )
    setup, counts = set_up(scenario), GangStarts()
    metrics = setup.metrics()
    run(setup.scheduler(), virtual_backend(setup), InlinePolicyRunner(setup.policy), [metrics, counts])
    summary = metrics.figures().summary
    times = {"first_wait": summary["queueing_mean_s"] or 0.0, "jct_mean": summary["jct_mean_s"] or 0.0}
    return {"starts": counts.starts, "early": counts.early, "spared": counts.spared, **times}


def _values(found: Mapping[str, list[dict[str, float]]]) -> list[FigureRow]:
    """Return the averages over the seeds."""
    return [
        FigureRow(
            series=name,
            quantity=quantity,
            unit=unit,
            measured=sum(one[quantity] for one in mine) / len(mine),
            source=SOURCE,
            note=range_note([one[quantity] for one in mine]),
        )
        for name, mine in found.items()
        for quantity, unit in QUANTITIES.items()
    ]


def _ratios(found: Mapping[str, list[dict[str, float]]]) -> list[FigureRow]:
    """Return starts, first waits and completion times over those without a pool, seed by seed."""
    return [
        row
        for name, mine in found.items()
        for quantity in ("starts", "first_wait", "jct_mean")
        if name != BARE
        for row in ratio_rows(
            f"{name} ÷ {BARE}",
            quantity,
            [one[quantity] for one in mine],
            [one[quantity] for one in found[BARE]],
            source=SOURCE,
        )
    ]
