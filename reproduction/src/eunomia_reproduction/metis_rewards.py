"""Metis trained under two rewards, from the same greedy rule: what each adds to it, on traces that it has not seen.

Under the reward of the thesis, the decrease of normalised loss, no rule tried has more than the one that the network
begins as (`metis.py`), so training has nothing to add. The other reward is minus the time that jobs spend, a tenth of
it beyond 90 % of their quality: what is judged, and an end for every job. The reward of the thesis is played once more
where curves have plateaus, on which the decrease of the next slot says little of those after it; the rules are beside
it there, with `to the end`, which goes by the mean decrease to the end of a job. Training and network are those of
`eunomia train metis`; the best step is chosen by traces kept for that, by the time to 90 % quality in all cases, and
judged on the traces of `metis.py`, with plateaus where it was trained with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eunomia.learning.metis.baselines import BASELINES, Allocate, greedy
from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.metis.slot_world import NoNodesGiven, SlotRun, play
from eunomia.learning.training import trainable_class
from eunomia.model.arrays import Ints
from eunomia.scenario import scenario_from_dict
from eunomia_reproduction.metis import FEWEST, NODES, STARTS_AS, discounted, traces_judged
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.run_cache import RunRequest, failures, make_all
from eunomia_reproduction.table import FigureRow, FigureTable, Request

STEPS = 60  # the shipped model is of step 40
TO_THE_END = "to the end"
PLATEAUS = "curves with plateaus"
TRAINED_FOR = {  # by the name of the reward, and whether curves have plateaus
    ("time", False): "time to 90 % quality", ("loss", False): "decrease of the loss",
    ("loss", True): f"decrease of the loss, {PLATEAUS}",
}  # fmt: skip
SCENARIO = {
    "cluster": {"accelerators": {"v100": NODES}},
    "workload": {"generator": "poisson", "jobs": 20},
    "throughputs": {"source": "uniform"},
    "policy": {"name": "fifo"},
}


class Training(NamedTuple):
    """A training to make."""

    reward: str
    plateaus: bool
    seed: int

    @property
    def goal(self) -> str:
        """What it is trained for, in words."""
        return TRAINED_FOR[self.reward, self.plateaus]

    @property
    def order(self) -> RunRequest:
        """The request for a worker."""
        task = {"reward": self.reward, "plateaus": self.plateaus, "seed": self.seed, "steps": STEPS}
        return RunRequest(f"{self.goal}, seed {self.seed}", task)


class Trained(NamedTuple):
    """What a training came to: the best step, and of each trace that judges the mean times, in slots.

    They are infinite where the network leaves a job without nodes for ever.
    """

    step: int
    quality: tuple[float, ...]
    completion: tuple[float, ...]


def reproduce(request: Request) -> FigureTable:
    """Train under each reward with each seed, and judge. Raises InvalidInput where the extra is not installed."""
    trainable_class("metis")
    runs = [Training(*kind, seed) for kind in TRAINED_FOR for seed in range(request.seeds)]
    orders = {run: run.order for run in runs}
    found, failed = make_all(orders, __name__, _read, lambda one: f"best step {one.step}", request)
    played = {plateaus: _by_rule(plateaus) for plateaus in (False, True)}
    rows: list[FigureRow] = []
    for run, one in found.items():
        rows += _trained(run, one, played[run.plateaus][STARTS_AS])
    rows += [row for name in played[True] if name != STARTS_AS for row in _beside(name, played[True])]
    rows += failures({orders[run].name: why for run, why in failed.items()})
    notes = (f"{FEWEST} traces that were not used in training; 95 % intervals of a row paired by trace.",)
    return FigureTable(rows=tuple(rows), notes=notes)


def to_the_end(state: SlotState) -> Ints:
    """Return steps by what a node more adds at the mean decrease of the loss from here to the end of the job."""
    each = (1.0 - state.progress) / state.work_left
    rows = np.arange(state.jobs)

    def worth(step: Ints) -> Any:
        faster = state.speed[rows, np.minimum(step + 1, state.last_step)] - state.speed[rows, step]
        return each * faster / np.maximum(state.next_cost(step), 1)

    return greedy(state, worth)


def _by_rule(plateaus: bool) -> dict[str, list[SlotRun]]:
    """Play the traces that judge under the rule that the network begins as; with plateaus under the others too."""
    rules: dict[str, Allocate] = (
        {**BASELINES, TO_THE_END: to_the_end} if plateaus else {STARTS_AS: BASELINES[STARTS_AS]}
    )
    return {
        name: [play(jobs, NODES, rule) for jobs in traces_judged(FEWEST, plateaus=plateaus)]
        for name, rule in rules.items()
    }


def _trained(run: Training, one: Trained, played: Sequence[SlotRun]) -> list[FigureRow]:
    """Return the rows of a training beside the rule that it began as, over the traces that end."""
    series, rule = f"trained for the {run.goal} ÷ {STARTS_AS}", _times(played)
    ends = np.isfinite(one.quality)
    pairs = {"time to 90 % quality": (one.quality, rule.quality), "completion time": (one.completion, rule.completion)}
    rows = [
        row
        for what, (mine, theirs) in pairs.items()
        for row in ratio_rows(
            series, f"{what}, ratio", np.array(mine)[ends].tolist(), np.array(theirs)[ends].tolist(), x=run.seed
        )
    ]
    counts = {"best step": one.step, "traces that never end": int((~ends).sum())}
    return [
        *rows,
        *(
            FigureRow(series=series, x=run.seed, quantity=what, unit="", measured=count)
            for what, count in counts.items()
        ),
    ]


def _beside(name: str, played: Mapping[str, list[SlotRun]]) -> list[FigureRow]:
    """Return the rows of a rule beside the one that the network begins as, where curves have plateaus."""
    series = f"{name} ÷ {STARTS_AS}, {PLATEAUS}"
    rewards = [[discounted(run) for run in played[each]] for each in (name, STARTS_AS)]
    times = [[run.mean_time for run in played[each]] for each in (name, STARTS_AS)]
    return [
        *ratio_rows(series, "discounted reward, ratio", *rewards, digits=5),
        *ratio_rows(series, "time to 90 % quality, ratio", *times),
    ]


def _times(runs: Sequence[SlotRun]) -> Trained:
    """Return the mean times of each run."""
    return Trained(0, tuple(run.mean_time for run in runs), tuple(float(np.mean(run.completion)) for run in runs))


def _read(file: Path) -> Trained:
    showed = json.loads(file.read_bytes())
    times = (tuple(math.inf if time is None else time for time in showed[what]) for what in ("quality", "completion"))
    return Trained(showed["step"], *times)


def show(reward: str, plateaus: bool, seed: int, steps: int) -> dict[str, Any]:
    """Train to the last step, and play the best step that was judged on the traces that judge."""
    from eunomia.learning.metis.training import MetisTraining

    scenario = scenario_from_dict({**SCENARIO, "seed": seed}, Path(), "metis")
    work = MetisTraining(scenario, steps, np.random.default_rng(seed), reward, plateaus)
    best, kept, at = gain_of(work), work.network(), 0
    for step in range(steps):
        work.train(step)
        if (step + 1) % work.judge_every == 0 and (gain := gain_of(work)) > best:
            best, kept, at = gain, work.network(), step + 1
    quality, completion = [], []
    for jobs in traces_judged(FEWEST, plateaus=plateaus):
        try:
            run = play(jobs, NODES, kept.allocate)
        except NoNodesGiven:
            run = None
        quality.append(run and run.mean_time)
        completion.append(run and float(np.mean(run.completion)))
    return {"step": at, "quality": quality, "completion": completion}


def gain_of(work: Any) -> float:
    """Return the metric that chooses the best step; no gain where jobs that judge are never given nodes."""
    try:
        return float(next(iter(work.judge().values())))
    except NoNodesGiven:
        return -math.inf
