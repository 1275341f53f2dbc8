"""Metis beside equal shares, FIFO, SRTF, Optimus and SLAQ on traces that it has not seen.

In the slotted world of `eunomia.learning.metis`: 16 nodes, 60 jobs a trace, loads from 0.5 to 1.2, and every method
sees the same predicted curves. The thesis' own numbers are not available, so rows have goals: Metis beats equal shares
and FIFO, and is within 5 % of SLAQ. `steepest` is SLAQ without the node that every job gets first, which is what the
network begins as: its row says what training has added. `towards 90 %` is a greedy rule that is sooner there: it
divides the gain by the root of what is missing to 90 %, and serves jobs beyond that last. Of every method the reward of
the thesis is shown, the decrease of normalised loss, discounted by slot as in training. With at most 4 jobs on 8 nodes
Metis is compared with the allocation that is best in each slot. At least 20 traces; intervals are paired (95 %,
Student's t of log ratios).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from eunomia.learning.metis.baselines import BASELINES, Allocate, exhaustive, gain_per_node, greedy
from eunomia.learning.metis.network import MetisNetwork
from eunomia.learning.metis.slot_state import SlotState
from eunomia.learning.metis.slot_world import SLOT_S, ElasticJobs, SlotRun, draw_jobs, play
from eunomia.learning.shipped import load_model
from eunomia.metrics.statistics import paired
from eunomia.model import elementary
from eunomia.model.arrays import Ints
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.table import FigureRow, FigureTable, Request

NODES, JOBS, LOADS = 16, 60, (0.5, 1.2)
FEWEST, FROM = 20, 500_000  # traces, and the seed of the first
SMALL_NODES, SMALL_JOBS = 8, 4
GAMMA = 0.95  # of training, by slot
STARTS_AS, TOWARDS = "steepest", "towards 90 %"
QUALITY = 0.9
BEYOND = 1e-6  # what a job beyond 90 % counts
GOALS = {"drf": "below 1", "fifo": "below 1", "slaq": "at most 1.05"}


def reproduce(request: Request) -> FigureTable:
    """Play every trace under every method."""
    network = MetisNetwork.of(load_model("", "metis"))
    traces = max(FEWEST, request.seeds)
    methods: dict[str, Allocate] = {"metis": network.allocate, **BASELINES, TOWARDS: towards_quality}
    runs: dict[str, list[SlotRun]] = {name: [] for name in methods}
    workloads: list[ElasticJobs] = []
    for jobs in traces_judged(traces):
        workloads.append(jobs)
        for name, allocate in methods.items():
            runs[name].append(play(jobs, NODES, allocate))
        request.tell(f"trace {len(workloads)} of {traces}")
    rows = [row for name, played in runs.items() for row in _means(name, played, workloads)]
    for other in BASELINES:
        mine, theirs = ([run.mean_time for run in runs[name]] for name in ("metis", other))
        rows += _ratio(f"metis ÷ {other}", mine, theirs, GOALS.get(other, ""))
    mine, theirs = ([run.mean_time for run in runs[name]] for name in (TOWARDS, STARTS_AS))
    rows += _ratio(f"{TOWARDS} ÷ {STARTS_AS}", mine, theirs, "")
    for name in methods:
        if name != STARTS_AS:
            mine, theirs = ([discounted(run) for run in runs[each]] for each in (name, STARTS_AS))
            rows += ratio_rows(f"{name} ÷ {STARTS_AS}", "discounted reward, ratio", mine, theirs, digits=5)
    rows += _small(network, traces)
    notes = (
        f"{traces} traces that were not used in training, seeds from {FROM:,}; 95 % intervals paired by trace.",
        f"A slot is {SLOT_S / 60:g} minutes. All methods know the curves; the simulator is slotted, not the core.",
    )
    return FigureTable(rows=tuple(rows), notes=notes)


def traces_judged(count: int, *, plateaus: bool = False) -> Iterator[ElasticJobs]:
    """Yield the traces, of rising load."""
    for k, load in enumerate(np.linspace(*LOADS, count).tolist()):
        yield draw_jobs(np.random.default_rng(FROM + k), jobs=JOBS, nodes=NODES, load=load, plateaus=plateaus)


def towards_quality(state: SlotState) -> Ints:
    """Return steps by the gain per node over the root of what is missing to 90 % quality; jobs beyond it come last."""
    missing = QUALITY - state.progress
    urgency = np.where(missing > 0, 1.0 / np.sqrt(np.maximum(missing, BEYOND)), BEYOND)
    return greedy(state, lambda step: gain_per_node(state, step) * urgency)


def discounted(run: SlotRun) -> float:
    """Return the reward of all slots of a run, later ones discounted."""
    return math.fsum(reward * GAMMA**slot for slot, reward in enumerate(run.rewards))


def mean_loss(jobs: ElasticJobs, run: SlotRun) -> float:
    """Return the normalised loss of the jobs that have arrived, on average over them and the slots of arrivals."""
    slots = np.arange(int(jobs.arrival.max()) + 1)
    arrived = np.searchsorted(np.sort(jobs.arrival), slots, side="right")
    gained = np.concatenate(([0.0], np.cumsum(run.rewards)))[slots]
    return float(np.mean((arrived - gained) / arrived))


def _means(name: str, played: list[SlotRun], workloads: list[ElasticJobs]) -> list[FigureRow]:
    hours = SLOT_S / 3600
    times = {
        f"mean time to {quality} % quality": [float(np.mean(run.time_to[k])) for run in played]
        for k, quality in enumerate((90, 95, 99))
    }
    times["mean completion time"] = [float(np.mean(run.completion)) for run in played]
    times["makespan"] = [run.makespan for run in played]
    loss = float(np.mean([mean_loss(jobs, run) for jobs, run in zip(workloads, played, strict=True)]))
    return [
        *(
            FigureRow(series=name, quantity=quantity, unit="h", measured=round(float(np.mean(values)) * hours, 4))
            for quantity, values in times.items()
        ),
        FigureRow(series=name, quantity="mean normalised loss over time", unit="", measured=round(loss, 4)),
    ]


def _ratio(series: str, mine: list[float], theirs: list[float], goal: str) -> list[FigureRow]:
    """Return the ratio of the means of the logarithms, and the ends of its interval."""
    found = paired(dict(enumerate(mine)), dict(enumerate(theirs)), 0.95)
    assert found is not None and found.log_ratio is not None
    ratio = found.log_ratio
    quantity = "time to 90 % quality, ratio"
    return [
        FigureRow(
            series=series, quantity=f"{quantity}{end}", unit="", measured=round(float(elementary.exp(value)), 4),
            note=f"goal: {goal}" if goal and not end else "",
        )
        for end, value in (("", ratio.mean), (", low", ratio.low), (", high", ratio.high))
        if value is not None
    ]  # fmt: skip


def _small(network: MetisNetwork, traces: int) -> list[FigureRow]:
    """Return the ratio to the exhaustive allocation, at most four jobs at once."""

    def draw(seed: int) -> ElasticJobs:
        return draw_jobs(np.random.default_rng(seed), jobs=SMALL_JOBS, nodes=SMALL_NODES, load=0.8)

    pairs = [
        tuple(play(draw(2 * FROM + k), SMALL_NODES, allocate).mean_time for allocate in (network.allocate, exhaustive))
        for k in range(traces)
    ]
    mine, theirs = ([pair[k] for pair in pairs] for k in range(2))
    return _ratio("metis ÷ exhaustive, 4 jobs on 8 nodes", mine, theirs, "at most 1.05")
