"""Metis trained under two rewards, from the same greedy rule: what each adds to it, on traces that it has not seen.

Under the reward of the thesis, the decrease of normalised loss, no rule tried has more than the one that the network
begins as (`metis.py`), so training has nothing to add. The other reward is minus the time that jobs spend, a tenth of
it beyond 90 % of their quality: what is judged, and an end for every job. Training and network are those of `eunomia
train metis`; the best step is chosen by traces kept for that, by the time to 90 % quality under both rewards, and
judged on the traces of `metis.py`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia.learning.metis.baselines import steepest
from eunomia.learning.metis.network import MetisNetwork
from eunomia.learning.metis.slot_world import NoNodesGiven, play
from eunomia.learning.training import trainable_class
from eunomia.scenario import scenario_from_dict
from eunomia_reproduction.metis import FEWEST, NODES, STARTS_AS, traces_judged
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, FigureTable, Request

STEPS = 60  # the shipped model is of step 40
TRAINED_FOR = {"loss": "decrease of the loss", "time": "time to 90 % quality"}  # by the name of the reward
SCENARIO = {
    "cluster": {"accelerators": {"v100": NODES}},
    "workload": {"generator": "poisson", "jobs": 20},
    "throughputs": {"source": "uniform"},
    "policy": {"name": "fifo"},
}


class Training(NamedTuple):
    """A training to make."""

    reward: str
    seed: int

    @property
    def order(self) -> RunRequest:
        """The request for a worker."""
        name = f"{TRAINED_FOR[self.reward]}, seed {self.seed}"
        return RunRequest(name, {"reward": self.reward, "seed": self.seed, "steps": STEPS})


class Trained(NamedTuple):
    """What a training came to: the best step, and of each trace that judges the mean times, in slots."""

    step: int
    quality: tuple[float, ...]
    completion: tuple[float, ...]


def reproduce(request: Request) -> FigureTable:
    """Train under each reward with each seed, and judge. Raises InvalidInput where the extra is not installed."""
    trainable_class("metis")
    runs = [Training(reward, seed) for reward in reversed(TRAINED_FOR) for seed in range(request.seeds)]
    orders = {run: run.order for run in runs}
    found, failed = make_all(orders, __name__, _read, lambda one: f"best step {one.step}", request)
    rule = [play(jobs, NODES, steepest) for jobs in traces_judged(FEWEST)]
    theirs = [run.mean_time for run in rule], [float(np.mean(run.completion)) for run in rule]
    rows: list[FigureRow] = []
    for run, one in found.items():
        series = f"trained for the {TRAINED_FOR[run.reward]} ÷ {STARTS_AS}"
        rows += ratio_rows(series, "time to 90 % quality, ratio", one.quality, theirs[0], x=run.seed)
        rows += ratio_rows(series, "completion time, ratio", one.completion, theirs[1], x=run.seed)
        rows.append(FigureRow(series=series, x=run.seed, quantity="best step", unit="", measured=one.step))
    rows += failures({orders[run].name: why for run, why in failed.items()})
    notes = (f"{FEWEST} traces that were not used in training; 95 % intervals of a row paired by trace.",)
    return FigureTable(rows=tuple(rows), notes=notes)


def _read(file: Path) -> Trained:
    showed = json.loads(file.read_bytes())
    return Trained(showed["step"], tuple(showed["quality"]), tuple(showed["completion"]))


def show(reward: str, seed: int, steps: int) -> dict[str, Any]:
    """Train to the last step, and play the best step that was judged on the traces that judge."""
    from eunomia.learning.metis.training import MetisTraining

    scenario = scenario_from_dict({**SCENARIO, "seed": seed}, Path(), "metis")
    work = MetisTraining(scenario, steps, np.random.default_rng(seed), reward)
    best, kept, at = gain_of(work), work.network(), 0
    for step in range(steps):
        work.train(step)
        if (step + 1) % work.judge_every == 0 and (gain := gain_of(work)) > best:
            best, kept, at = gain, work.network(), step + 1
    return {"step": at, **judged(kept)}


def gain_of(work: Any) -> float:
    """Return the metric that chooses the best step; no gain where jobs that judge are never given nodes."""
    try:
        return float(next(iter(work.judge().values())))
    except NoNodesGiven:
        return -math.inf


def judged(network: MetisNetwork) -> dict[str, list[float]]:
    """Return the mean time to 90 % quality and the mean completion time of each trace that judges."""
    runs = [play(jobs, NODES, network.allocate) for jobs in traces_judged(FEWEST)]
    return {
        "quality": [run.mean_time for run in runs], "completion": [float(np.mean(run.completion)) for run in runs]
    }  # fmt: skip
