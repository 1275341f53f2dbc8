"""What each part of Harmony's training is worth: a model trained without it, judged on traces that none has seen.

As published, training has no imitation: the actor-critic begins with random weights. That, and that without one of its
parts, is trained with the steps of `eunomia train harmony`; the best step is chosen by the traces kept for that, and
judged on those of `harmony.py`. So is the learning rate of the actor, once, by the published training with seed 0: that
of the shipped training was set for weights that imitation has trained. The paper leaves out value
network, exploration and replay in turn (section VI).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.learning.harmony.baselines import baselines
from eunomia.learning.harmony.world import WorldConfig, synthetic_truth
from eunomia.model.arrays import Floats
from eunomia.scenario import scenario_from_dict
from eunomia_reproduction.harmony import SERVERS, compared, jcts
from eunomia_reproduction.table import FigureRow, FigureTable, Request

RATES = (3e-5, 3e-4)  # of the actor: that of the shipped training, and ten times as much
PUBLISHED = "as published, from random weights"
GAIN = "gain over the better heuristic on the traces kept for choices"
VARIANTS: Mapping[str, tuple[str, ...]] = {  # parts that are left out
    "with imitation": (),
    PUBLISHED: ("warm_start",),
    "the same without the value network": ("warm_start", "value_network"),
    "the same without exploration": ("warm_start", "exploration"),
    "the same without replay": ("warm_start", "replay"),
    "the same without the reward model": ("warm_start", "reward_model"),
}
SCENARIO = {
    "cluster": {"nodes": [{"type": "1080ti", "count": 6, "accelerators": 2, "cpus": 8}]},
    "workload": {"generator": "poisson", "jobs": 60, "rate_per_hour": 3.0},
    "throughputs": {"source": "uniform"},
    "physics": {"neighbours": "synthetic"},
    "policy": {"name": "fifo"},
}


def reproduce(request: Request) -> FigureTable:
    """Train every variant with each seed, and judge it. Raises InvalidInput where the extra is not installed."""
    _require_training()
    config = WorldConfig(truth=synthetic_truth(), capacity=SERVERS)
    by_name = baselines(config)
    heuristics = {name: jcts(config, by_name[name]) for name in ("load balancing", "Tetris")}
    better = min(heuristics, key=lambda name: float(heuristics[name].mean()))

    def judged(variant: str, seed: int, rate: float) -> TrainedVariant:
        gain, ours = _trained(VARIANTS[variant], seed, rate)
        ratio = compared(variant, f"mean JCT over that of {better}", ours, heuristics[better])[0]
        request.tell(f"{variant}, seed {seed}, rate {rate:g}: {ratio.measured}, gain {gain:.4f} on the traces kept")
        return TrainedVariant(gain, replace(ratio, x=seed))

    tried = {rate: judged(PUBLISHED, 0, rate) for rate in RATES}
    chosen = max(RATES, key=lambda rate: tried[rate].gain)
    rows = [row for rate, one in tried.items() for row in one.rows_at(rate)]
    for variant in VARIANTS:
        for seed in range(request.seeds):
            known = (variant, seed) == (PUBLISHED, 0)
            rows.append((tried[chosen] if known else judged(variant, seed, chosen)).ratio)
    notes = (f"learning rate of the actor {chosen:g}, chosen of {RATES} on traces that do not judge.",)
    return FigureTable(rows=tuple(rows), notes=notes)


@dataclass(frozen=True, slots=True)
class TrainedVariant:
    """What a training came to: its gain on the traces kept for choices, and its ratio on those that judge."""

    gain: float
    ratio: FigureRow

    def rows_at(self, rate: float) -> list[FigureRow]:
        """Return both as rows named by the learning rate."""
        series = f"{self.ratio.series}, rate {rate:g}"
        gain = replace(self.ratio, series=series, quantity=GAIN, measured=round(self.gain, 4))
        return [replace(self.ratio, series=series), gain]


def _require_training() -> None:
    """Raise InvalidInput where the extra `learning` is not installed."""
    try:
        import_module("eunomia.learning.harmony.training")
    except ModuleNotFoundError as error:
        rule = f"training needs {error.name}, which is not installed"
        raise InvalidInput(
            [Problem(file="command line", column="NAME", rule=rule, fix=install_command("learning"))]
        ) from error


def _trained(without: tuple[str, ...], seed: int, rate: float) -> tuple[float, Floats]:
    """Train to the last step; return the gain of the best step that was judged, and the mean JCTs under it."""
    from eunomia.learning.harmony.training import HarmonyTraining, TrainingParts

    use = replace(TrainingParts(actor_rate=rate), **dict.fromkeys(without, False))
    scenario = scenario_from_dict({**SCENARIO, "seed": seed}, Path(), "harmony")
    work = HarmonyTraining(scenario, HarmonyTraining.default_steps, np.random.default_rng(seed), use)
    best, kept = -np.inf, work.state()
    for step in range(work.steps):
        work.train(step)
        if (step + 1) % work.judge_every == 0:
            gain = work.judge()["gain"]
            if gain > best:
                best, kept = gain, work.state()
    work.restore(kept)
    return best, jcts(WorldConfig(truth=synthetic_truth(), capacity=SERVERS), work.choose)
