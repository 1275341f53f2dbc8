"""What each part of Harmony's training is worth: a model trained without it, judged on traces that none has seen.

As published, training has no imitation: the actor-critic begins with random weights. That, and that without one of its
parts, is trained with the steps of `eunomia train harmony`; the best step is chosen by the traces kept for that, and
judged on those of `harmony.py`. The paper leaves out value network, exploration and replay in turn (section VI).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eunomia.inputs.install_hint import install_command
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.learning.harmony.baselines import baselines
from eunomia.learning.harmony.world import WorldConfig, synthetic_truth
from eunomia.scenario import scenario_from_dict
from eunomia_reproduction.harmony import SERVERS, jcts, paired_row
from eunomia_reproduction.table import FigureTable, Request

if TYPE_CHECKING:
    from eunomia.learning.harmony.training import HarmonyTraining

VARIANTS: Mapping[str, tuple[str, ...]] = {  # parts that are left out
    "with imitation": (),
    "as published, from random weights": ("warm_start",),
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
    try:
        from eunomia.learning.harmony import training
    except ModuleNotFoundError as error:
        rule = f"training needs {error.name}, which is not installed"
        raise InvalidInput(
            [Problem(file="command line", column="NAME", rule=rule, fix=install_command("learning"))]
        ) from error
    config = WorldConfig(truth=synthetic_truth(), capacity=SERVERS)
    by_name = baselines(config)
    heuristics = {name: jcts(config, by_name[name]) for name in ("load balancing", "Tetris")}
    better = min(heuristics, key=lambda name: float(heuristics[name].mean()))
    rows = []
    for series, without in VARIANTS.items():
        use = training.TrainingParts(**dict.fromkeys(without, False))
        for seed in range(request.seeds):
            scenario = scenario_from_dict({**SCENARIO, "seed": seed}, Path(), "harmony")
            rng = np.random.default_rng(seed)
            work = training.HarmonyTraining(scenario, training.HarmonyTraining.default_steps, rng, use)
            found = _trained(work)
            ours = jcts(config, work.choose)
            name = f"{series}; seed {seed}" if request.seeds > 1 else series
            rows.append(paired_row(name, f"mean JCT over that of {better}", ours, heuristics[better]))
            request.tell(f"{name}: {rows[-1].measured}, step {found} chosen")
    return FigureTable(rows=tuple(rows), notes=("An interval is of the 20 traces, not of the seeds of training.",))


def _trained(work: HarmonyTraining) -> int:
    """Train to the last step, go back to the best one that was judged, and return it."""
    best, chosen, kept = -np.inf, 0, work.state()
    for step in range(work.steps):
        work.train(step)
        if (step + 1) % work.judge_every == 0:
            gain = work.judge()["gain"]
            if gain > best:
                best, chosen, kept = gain, step + 1, work.state()
    work.restore(kept)
    return chosen
