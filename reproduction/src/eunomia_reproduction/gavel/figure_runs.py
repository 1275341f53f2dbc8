"""The runs behind the figures: what each of them is made of, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia_reproduction.gavel.artifact import AS_SOLVED, NEARBY
from eunomia_reproduction.gavel.published import JOB_TABLE
from eunomia_reproduction.gavel.reference import THROUGHPUTS
from eunomia_reproduction.gavel.simulate import MORE_JOBS, play
from eunomia_reproduction.table import Request

TYPES = ("k80", "p100", "v100")
PRICES = {"v100": 0.74, "p100": 0.43, "k80": 0.135}  # US$ per accelerator-hour, as in the published code
WINDOW = (4000, 4999)  # measured jobs of a stream
HOUR_S = 3600.0
# As when the figures were drawn: a gang does its steps as one.
ROUNDS: tuple[tuple[str, Any], ...] = (("name", "gavel"), ("split_steps", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRun:
    """One run: a policy on a stream of jobs, or with rate inf on so many jobs that are all there at the start."""

    policy: str
    rate: float  # jobs per hour
    multi: bool = False  # gangs of 1, 2, 4 and 8 accelerators, else 1
    seed: int = 0
    jobs: int = 0  # in all; 0 = the window and what comes after it
    window: tuple[int, int] | None = WINDOW  # first and last measured job; None = all
    types: tuple[str, ...] = TYPES  # 36 accelerators of each
    deadlines: bool = False
    priorities: bool = False  # a fifth of the jobs has weight 5
    table: str = JOB_TABLE  # the order of the job types
    durations: str = "philly"
    as_published: bool = True  # the policy does what the published code does under that name, where that differs
    as_solved: bool = False  # and ends where its solver does, not only near to it; takes five times as long
    mechanism: tuple[tuple[str, Any], ...] = ROUNDS
    draws: int = 0  # added to the seed of the policy's own draws

    @classmethod
    def of_dict(cls, said: Mapping[str, Any]) -> FigureRun:
        """Return the cell that `as_dict` wrote, whatever JSON made of it meanwhile."""
        window = None if said["window"] is None else tuple(said["window"])
        mechanism = tuple((name, value) for name, value in said["mechanism"])
        return cls(**{**said, "window": window, "types": tuple(said["types"]), "mechanism": mechanism})

    def as_dict(self) -> dict[str, Any]:
        """Return what makes it up."""
        return asdict(self)

    def scenario(self, throughputs: Path) -> Scenario:
        """Return what is run."""
        policy, _, parameters = self.policy.partition("?")
        workload = {
            "generator": "gavel",
            "jobs": self.jobs or 2 * WINDOW[1] + MORE_JOBS,
            "rate_per_hour": self.rate,
            "multi_accelerator": self.multi,
            "table": self.table,
            "durations": self.durations,
        }
        flags = {name: True for name in ("deadlines", "priorities") if getattr(self, name)}
        measured = {} if self.window is None else {"first_job": self.window[0], "last_job": self.window[1]}
        return scenario_from_dict(
            {
                "seed": self.seed,
                "cluster": {
                    "nodes": [{"type": kind, "count": 36, "accelerators": 1} for kind in self.types],
                    "prices": {kind: PRICES[kind] for kind in self.types},
                },
                "workload": workload | flags,
                "throughputs": {"source": str(throughputs)},
                "policy": {"name": f"{policy}?{parameters}" if parameters else policy},
                "mechanism": dict(self.mechanism),
                "measure": measured,
            },
            throughputs.parent,
            self.name,
        )

    @property
    def name(self) -> str:
        """Return the name of the run for progress messages."""
        load = f"{self.jobs} jobs" if self.rate == float("inf") else f"{self.rate:g} jobs/h"
        solved = ", as solved" if self.as_solved else ""
        draws = f", its draws of seed {self.seed + self.draws}" if self.draws else ""
        return f"{self.policy}, {load}, {'gangs' if self.multi else 'singles'}{solved}, seed {self.seed}{draws}"

    @property
    def weight(self) -> float:
        """Return roughly what it costs, in no unit: rounds, and what pairs add to them."""
        pairs = "packed" in self.policy or "gandiva" in self.policy
        return (1.0 + 9.0 * pairs) * (5.0 if self.as_solved else 1.0) / min(self.rate, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePoint:
    """What a run showed, as Gavel counts it."""

    jct_h: float  # mean over the measured jobs
    makespan_h: float
    cost_usd: float
    jct_s: Mapping[str, float | None]  # of every job that ended; None = dropped
    jct_by_weight_h: Mapping[str, float]  # mean over the measured jobs of a weight
    dropped: int
    late: int  # jobs that ended after their deadlines
    rounds: int
    leases_renewed: float | None  # part of those that could be
    cpu_s: float


def throughputs_in(request: Request) -> Path:
    """Return the table of throughputs in the reference folder, absolute. Raises InvalidInput when there is none."""
    path = request.folder("data/gavel").absolute() / THROUGHPUTS
    if not path.is_file():
        rule, fix = f"there is no {THROUGHPUTS}", "give a folder laid out like data/gavel"
        raise InvalidInput([Problem(file=str(path), column="--reference", rule=rule, fix=fix)])
    return path


def show(cell: FigureRun, throughputs: Path) -> FigurePoint:
    """Make the run. Raises ValueError when it says nothing of JCTs."""
    setup = set_up(cell.scenario(throughputs))
    name = cell.policy.removeprefix("gavel:")
    policies = AS_SOLVED if cell.as_solved else NEARBY
    if cell.as_published and name != cell.policy and name in policies:
        setup = replace(setup, policy=policies[name]({}, cell.seed + cell.draws))
    played = play(setup)
    if played.average_jct is None:
        raise ValueError(f"{cell.name}: every measured job was dropped")
    patience = {job.job_id: job.deadline - job.submitted for job in setup.jobs}
    first, last = cell.window or (0, len(played.jct) - 1)
    measured = {name: jct for name, jct in played.jct.items() if first <= int(name) <= last}
    return FigurePoint(
        jct_h=played.average_jct / HOUR_S,
        makespan_h=played.makespan / HOUR_S,
        cost_usd=played.cost_usd,
        jct_s=measured,
        jct_by_weight_h=_by_weight({job.job_id: job.weight for job in setup.jobs}, measured),
        dropped=sum(jct is None for jct in measured.values()),
        late=sum(jct is not None and jct > patience[name] for name, jct in measured.items()),
        rounds=played.rounds,
        leases_renewed=played.leases_renewed,
        cpu_s=played.cpu_s,
    )


def _by_weight(weight: Mapping[str, float], jct_s: Mapping[str, float | None]) -> dict[str, float]:
    """Return the average JCT in hours of the jobs of each weight; dropped jobs are left out."""
    found: dict[str, list[float]] = {}
    for name, jct in jct_s.items():
        if jct is not None:
            found.setdefault(f"{weight[name]:g}", []).append(jct / HOUR_S)
    return {heavy: float(np.mean(hours)) for heavy, hours in found.items()}
