"""What each part of Harmony's training is worth: a model trained without it, judged on traces that none has seen.

As published, training has no imitation: the actor-critic begins with random weights. That, that without one of its
parts, and that with four times the steps, is trained with the steps of `eunomia train harmony`; the best step is chosen
by the traces kept for that, and judged on those of `harmony.py`. So is the learning rate of the actor, once, by the
published training with seed 0: that of the shipped training was set for weights that imitation has trained. The paper
leaves out value network, exploration and replay in turn (section VI).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eunomia.learning.harmony.baselines import baselines
from eunomia.learning.harmony.world import WorldConfig, synthetic_truth
from eunomia.learning.training import trainable_class
from eunomia.scenario import scenario_from_dict
from eunomia_reproduction.harmony import SERVERS, compared, jcts
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, FigureTable, Request

if TYPE_CHECKING:
    from eunomia.learning.harmony.training import HarmonyTraining

RATES = (3e-5, 3e-4)  # of the actor: that of the shipped training, and ten times as much
PUBLISHED = "as published, from random weights"
LONG, TIMES = "the same with four times the steps", 4
GAIN = "gain over the better heuristic on the traces kept for choices"
VARIANTS: Mapping[str, tuple[str, ...]] = {  # parts that are left out
    PUBLISHED: ("warm_start",),
    "the same without the value network": ("warm_start", "value_network"),
    "the same without exploration": ("warm_start", "exploration"),
    "the same without replay": ("warm_start", "replay"),
    LONG: ("warm_start",),
    "the same without the reward model": ("warm_start", "reward_model"),
    "with imitation": (),
}
SCENARIO = {
    "cluster": {"nodes": [{"type": "1080ti", "count": 6, "accelerators": 2, "cpus": 8}]},
    "workload": {"generator": "poisson", "jobs": 60, "rate_per_hour": 3.0},
    "throughputs": {"source": "uniform"},
    "physics": {"neighbours": "synthetic"},
    "policy": {"name": "fifo"},
}


class Training(NamedTuple):
    """A training to make: a variant, its seed, and the learning rate of the actor."""

    variant: str
    seed: int
    rate: float

    @property
    def order(self) -> RunRequest:
        """The request for a worker."""
        times = TIMES if self.variant == LONG else 1
        task = {"without": VARIANTS[self.variant], "seed": self.seed, "rate": self.rate, "times": times}
        return RunRequest(f"{self.variant}, seed {self.seed}, rate {self.rate:g}", task)


class Trained(NamedTuple):
    """What a training came to: its gain on the traces kept for choices, and the mean JCTs of those that judge."""

    gain: float
    jct: tuple[float, ...]


def reproduce(request: Request) -> FigureTable:
    """Train every variant with each seed, and judge it. Raises InvalidInput where the extra is not installed."""
    trainable_class("harmony")
    config = WorldConfig(truth=synthetic_truth(), capacity=SERVERS)
    by_name = baselines(config)
    heuristics = {name: jcts(config, by_name[name]) for name in ("load balancing", "Tetris")}
    better = min(heuristics, key=lambda name: float(heuristics[name].mean()))
    seeds = range(request.seeds)

    def row(series: str, run: Training, found: Trained) -> FigureRow:
        ratio = compared(series, f"mean JCT over that of {better}", np.array(found.jct), heuristics[better])[0]
        return replace(ratio, x=run.seed)

    tried, failed = _trained([Training(PUBLISHED, 0, rate) for rate in RATES], request)
    rows = []
    for run, found in tried.items():
        judged = row(f"{PUBLISHED}, rate {run.rate:g}", run, found)
        rows += [judged, replace(judged, quantity=GAIN, measured=round(found.gain, 4))]
    chosen = max(tried, key=lambda run: tried[run].gain).rate if tried else RATES[0]
    request.tell(f"learning rate of the actor: {chosen:g}")
    more, more_failed = _trained([Training(name, seed, chosen) for name in VARIANTS for seed in seeds], request)
    rows += [row(name, run, found) for name in VARIANTS for run, found in more.items() if run.variant == name]
    rows += failures(failed | more_failed)
    notes = (f"learning rate of the actor {chosen:g}, chosen of {RATES} on traces that do not judge.",)
    return FigureTable(rows=tuple(rows), notes=notes)


def _trained(runs: Iterable[Training], request: Request) -> tuple[dict[Training, Trained], dict[str, str]]:
    """Make the trainings that are not kept; return what each came to, and why the others failed."""
    orders = {run: run.order for run in runs}
    found, failed = make_all(orders, __name__, _read, lambda one: f"gain {one.gain:.4f}", request)
    return found, {run.order.name: why for run, why in failed.items()}


def _read(file: Path) -> Trained:
    showed = json.loads(file.read_bytes())
    return Trained(showed["gain"], tuple(showed["jct"]))


def show(without: Iterable[str], seed: int, rate: float, times: int) -> dict[str, Any]:
    """Train to the last step; return the gain of the best step that was judged, and the mean JCTs under it."""
    from eunomia.learning.harmony.training import TrainingParts

    work = deepcopy(_with_reward_model(seed, times))
    work.use = replace(TrainingParts(actor_rate=rate), **dict.fromkeys(without, False))
    best, kept = -np.inf, work.state()
    for step in range(work.stages[0], work.steps):
        work.train(step)
        if (step + 1) % work.judge_every == 0:
            gain = work.judge()["gain"]
            if gain > best:
                best, kept = gain, work.state()
    work.restore(kept)
    return {"gain": best, "jct": jcts(WorldConfig(truth=synthetic_truth(), capacity=SERVERS), work.choose).tolist()}


@cache
def _with_reward_model(seed: int, times: int) -> HarmonyTraining:
    """Return the training at the end of its first stage, which is the same for all variants and rates."""
    from eunomia.learning.harmony.training import HarmonyTraining

    scenario = scenario_from_dict({**SCENARIO, "seed": seed}, Path(), "harmony")
    work = HarmonyTraining(scenario, times * HarmonyTraining.default_steps, np.random.default_rng(seed))
    for step in range(work.stages[0]):
        work.train(step)
    work.reward_model.data()  # before it is copied
    return work
