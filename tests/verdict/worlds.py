"""Small random worlds: a cluster, jobs of tenants and apps, throughputs, costs of preemption, failures and outages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TYPES = ("v100", "p100", "k80")
KINDS = ("slow", "even", "fast")  # job types
HEADER = "job_id,submitted_s,scale_factor,job_type,total_steps,tenant,weight,app,deadline_s,retries"


@dataclass(frozen=True, kw_only=True)
class World:
    """One world as a scenario, and the facts of it that a plain implementation needs."""

    scenario: dict[str, Any]
    nodes: tuple[tuple[str, int], ...]  # type and accelerators of each machine
    rate: dict[tuple[str, str, int], float]  # accelerator type, job type, scale factor → steps/s of the gang
    prices: dict[str, float]
    tenants: dict[str, tuple[float, float]]  # declared ones: weight and quota, nan = none

    @property
    def types(self) -> tuple[str, ...]:
        """The accelerator types in order."""
        return tuple(dict.fromkeys(name for name, _ in self.nodes))


def random_world(seed: int, folder: Path) -> World:
    """Return the world of a seed; its trace and its throughputs are written into `folder`."""
    rng = np.random.default_rng(seed)
    groups = [
        {"type": name, "count": int(rng.integers(1, 3)), "accelerators": int(rng.choice([2, 4])), "rack": f"r{k % 2}"}
        for k, name in enumerate(TYPES[: rng.integers(1, 4)])
    ]
    nodes = tuple((group["type"], group["accelerators"]) for group in groups for _ in range(group["count"]))
    most = {name: sum(size for kind, size in nodes if kind == name) for name, _ in nodes}
    widths = [z for z in (1, 1, 2, 4) if z <= max(most.values())]
    rate = {
        (name, kind, z): round(float(rng.uniform(0.5, 2.0)) * (1 + 0.8 * (z - 1)) * (3 - TYPES.index(name)), 3)
        for name in most for kind in KINDS for z in set(widths)
    }  # fmt: skip
    lines = ["type,job_type,scale_factor,steps_per_s,partner_job_type,partner_steps_per_s"]
    lines += [f"{name},{kind},{z},{value},," for (name, kind, z), value in rate.items()]
    if rng.random() < 0.3:  # two jobs together are faster than one after the other
        lines += [
            f"{name},{kind},{z},{0.7 * value:.4f},{other},{0.7 * rate[name, other, z]:.4f}"
            for (name, kind, z), value in rate.items() for other in KINDS if kind <= other
        ]  # fmt: skip
    (folder / "rates.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = ["a", "b", "lab/x"][: rng.integers(1, 4)]
    (folder / "jobs.csv").write_text(_trace(rng, names, widths), encoding="utf-8")
    tenants = _tenants(rng, names, sum(most.values())) if rng.random() < 0.5 else {}
    prices = {name: float(rng.choice([0.5, 1.0, 3.0])) for name in most}
    scenario: dict[str, Any] = {
        "seed": int(seed % 7),
        "cluster": {"nodes": groups, "prices": prices},
        "workload": {"trace": str(folder / "jobs.csv")},
        "throughputs": {"source": str(folder / "rates.csv")},
        "overheads": {"start_s": 20.0, "checkpoint_s": 10.0, "restore_s": 45.0} if rng.random() < 0.5 else {},
    }
    if tenants:
        scenario["tenants"] = {
            name: {"weight": weight} | ({} if math.isnan(quota) else {"quota": quota})
            for name, (weight, quota) in tenants.items()
        }
    if rng.random() < 0.5:
        scenario["world"] = {
            "job_failures_per_hour": float(rng.choice([0.0, 3.0])), "cancel_fraction": float(rng.choice([0.0, 0.2])),
            "node_failures_per_hour": float(rng.choice([0.0, 2.0])), "node_repair_s": 600.0,
        }  # fmt: skip
    return World(scenario=scenario, nodes=nodes, rate=rate, prices=prices, tenants=tenants)


def _trace(rng: np.random.Generator, tenants: list[str], widths: list[int]) -> str:
    """Return a trace of 5 to 14 jobs, at a busy or at an idle cluster, some with deadlines and some of apps."""
    gap_s, at = float(rng.choice([30.0, 300.0, 3000.0])), 0.0
    with_apps, with_deadlines, weights = (rng.random() < 0.4 for _ in range(3))
    lines = [HEADER]
    for k in range(int(rng.integers(5, 15))):
        at += float(rng.exponential(gap_s)) * (rng.random() < 0.9)
        size, run_s = int(rng.choice(widths)), float(np.exp(rng.normal(6.5, 1.0)))
        tenant = str(rng.choice(tenants)) if rng.random() < 0.9 else ""
        app = f"{tenant or 'none'}-{rng.integers(2)}" if with_apps and rng.random() < 0.7 else ""
        deadline = f"{at + run_s * rng.uniform(0.5, 5.0):.1f}" if with_deadlines and rng.random() < 0.6 else ""
        weight = float(rng.choice([1.0, 2.0, 0.5])) if weights else 1.0
        row = (f"j{k}", f"{at:.1f}", size, str(rng.choice(KINDS)), f"{run_s * 2:.1f}", tenant, weight, app, deadline,
               int(rng.integers(3)))  # fmt: skip
        lines.append(",".join(map(str, row)))
    return "\n".join(lines) + "\n"


def _tenants(rng: np.random.Generator, names: list[str], accelerators: int) -> dict[str, tuple[float, float]]:
    """Return declared tenants with weights, one of them perhaps with a quota."""
    found = {name: (float(rng.choice([1.0, 2.0, 3.0])), math.nan) for name in names}
    if rng.random() < 0.5:
        found[names[0]] = (found[names[0]][0], float(min(rng.integers(0, 4), accelerators)))
    return found
