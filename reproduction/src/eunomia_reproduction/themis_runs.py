"""Runs of Themis' experiments: the cluster, the searches, the policies, and what is kept of each run.

Machines are of 8, 16 and 2 accelerators, in racks, 256 in all; gangs are slowed by where they are (`placement =
"themis"`), and a stop costs 45 s. Apps are drawn by the distributions that the paper publishes (generator `searches`).
HyperDrive decides which trials of the first workload continue, successive halving those of the second, whose gangs are
twice as wide.

Whether trials may run on fewer accelerators is a world of its own, the same for every policy: in `rigid` a trial runs
on all of its gang or waits; in `elastic` it also runs on a half, a quarter … of it, down to one, and every policy gives
a trial what is left where its gang does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia.metrics.job_summary import LOSS
from eunomia.model.finish_time import IDEAL_TIMES
from eunomia.runs.fingerprint import scenario_hash
from eunomia.runs.simulation import simulate
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, Request

JOBS, RATE_PER_HOUR = 3000, 6.0  # some fifty apps
LEASE_S = 1200.0
NODES = [
    *({"type": "gpu", "count": 4, "accelerators": 8, "rack": f"r{rack}"} for rack in range(4)),
    *({"type": "gpu", "count": 3, "accelerators": 16, "rack": f"r{rack}"} for rack in range(2)),
    *({"type": "gpu", "count": 4, "accelerators": 2, "rack": f"r{rack}"} for rack in range(4)),
]
STOP_S = 45.0
WORK: Mapping[str, tuple[str, str]] = {"w1": ("small", "hyperdrive"), "w2": ("network", "halving")}  # gangs, tuner
WORLDS: Mapping[str, str] = {"rigid": "off", "elastic": "halves"}  # workload.elastic
TAKES_LESS = ("themis", "slaq", "optimus")  # these know several sizes of a gang themselves
Summary = Mapping[str, float]


class Played(NamedTuple):
    """A run to make: under leases of so many seconds, or else as the policy says by itself."""

    work: str
    policy: str
    seed: int
    lease_s: float | None = None
    world: str = "rigid"
    jobs: int = JOBS
    rate_per_hour: float = RATE_PER_HOUR
    network_bound: float | None = None  # share of apps whose models are slowed most by being spread


class Shown(NamedTuple):
    """What a run showed: of each app the seconds to its end and its ρ by each reading, nan = it did not end."""

    jct_s: list[float]
    rho: dict[str, list[float]]
    cost_usd: float  # accelerator-hours
    placement: float  # accelerator-seconds of finished trials at their best place over those that they held
    decisions: float  # CPU time of all decisions, seconds


def in_world(policy: str, world: str) -> str:
    """Return the spelling of a policy that knows whole gangs only as it runs in a world."""
    if world == "rigid" or policy.startswith(TAKES_LESS):
        return policy
    return f"{policy}?shrink=true" if policy == "locality" else f"shrinking?inner={policy}"


def played(
    request: Request, runs: Mapping[str, Sequence[Played]]
) -> tuple[dict[str, dict[int, Shown]], list[FigureRow]]:
    """Make the runs of each name, once each; return what each showed by name and seed, and rows of failed runs."""
    orders = {}
    for run in [run for some in runs.values() for run in some]:
        scenario = scenario_of(run)
        orders[run] = RunRequest(scenario.name, run._asdict(), scenario_hash(scenario))
    orders = dict(sorted(orders.items(), key=lambda pair: pair[0].seed))  # whole seeds first
    shown, failed = make_all(orders, __name__, _read, _worst_of, request)
    found = {name: {run.seed: shown[run] for run in some if run in shown} for name, some in runs.items()}
    return found, list(failures({orders[run].name: why for run, why in failed.items()}))


def show(**run: Any) -> dict[str, Any]:
    """Make a run, given by the fields of `Played`, and return what it showed."""
    result = simulate(scenario_of(Played(**run)))
    figures, jobs = result.figures, result.jobs
    done = (jobs["status"] == "finished") & (jobs["attained_service_s"] > 0)
    alone = np.asarray(figures.alone_s) * jobs["scale_factor"]
    held = float(jobs["attained_service_s"][done].sum())
    return Shown(
        jct_s=np.asarray(figures.apps["jct_s"], dtype=float).tolist(),
        rho={ideal: np.asarray(figures.rho_by_ideal[ideal], dtype=float).tolist() for ideal in IDEAL_TIMES},
        cost_usd=float(result.summary["cost_usd"] or 0.0),
        placement=float(alone[done].sum()) / held if held > 0 else float("nan"),
        decisions=float(result.timing["policy_cpu_s"] or 0.0),
    )._asdict()


def _read(file: Path) -> Shown:
    return Shown(**json.loads(file.read_text(encoding="utf-8")))


def _worst_of(one: Shown) -> str:
    return f"worst ρ {np.nanmax(one.rho['share']):.2f}"


def summary_of(one: Shown) -> Summary:
    """Return the numbers of a run: the worst ρ by each reading, and how many apps lost by sharing, and how much."""
    jct, share = np.array(one.jct_s), np.array(one.rho["share"])
    behind = share[share > 1 / LOSS] - 1
    numbers = {f"rho_{ideal}_max": float(np.nanmax(rho)) for ideal, rho in one.rho.items()}
    return numbers | {
        "rho_share_mean": float(np.nanmean(share)),
        "apps_behind": float(len(behind)),
        "apps_behind_by": float(behind.mean()) if len(behind) else 0.0,
        "app_jct_mean_s": float(np.nanmean(jct)),
        "cost_usd": one.cost_usd,
        "placement_score": one.placement,
        "CPU time of decisions": one.decisions,
    }


def scenario_of(run: Played) -> Scenario:
    """Return the scenario of one run. `jobs` are trials, `rate_per_hour` apps."""
    gangs, tuner = WORK[run.work]
    workload: dict[str, Any] = {
        "generator": "searches",
        "jobs": run.jobs,
        "rate_per_hour": run.rate_per_hour,
        "gangs": gangs,
        "elastic": WORLDS[run.world],
    }
    name = f"{run.work} {run.world} {run.policy}"
    if run.network_bound is not None:
        workload["network_bound"] = run.network_bound
        name += f", {run.network_bound:.0%} network-bound"
    if run.rate_per_hour != RATE_PER_HOUR:
        name += f", {run.rate_per_hour:g} apps an hour"
    said: dict[str, Any] = {
        "seed": run.seed,
        "cluster": {"nodes": NODES, "prices": {"gpu": 1.0}},  # so that the cost is accelerator-hours
        "workload": workload,
        "throughputs": {"source": "linear"},
        "apps": {"tuner": tuner} | ({"pause": False} if tuner == "halving" else {}),  # trials run on until beaten
        "policy": {"name": run.policy},
        "physics": {"placement": "themis", "accelerators_per_slot": 2},
        "overheads": {"restore_s": STOP_S},
    }
    if run.lease_s is not None:
        said["mechanism"] = {"name": "leases", "length_s": run.lease_s, "aligned": False, "recall": False}
        name += f", leases of {run.lease_s:g} s"
    return scenario_from_dict(said, Path(), f"{name}, seed {run.seed}")
