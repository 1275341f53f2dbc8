"""Tiresias against its rivals on average JCT, on 15 machines of 4 accelerators, as in its testbed.

J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, section 6.2: 480 jobs scaled
down from a trace that is not public. Here they are drawn: sizes and durations as on Philly, models evenly from the ten
of table 2, arrivals so that their work is LOADS times what the cluster can do while they come. With a reference folder
its trace of 480 jobs is played too. The published factor is a yardstick, not a target; what must hold is the order of
the policies.

A stopped job loses 60 s. Seats do not change how fast a gang goes: consolidation costs waiting and gains nothing.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from eunomia import traces
from eunomia.backends.simulated import Simulation
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.mechanisms.leases import Leases
from eunomia.metrics.statistics import paired
from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.throughputs import load
from eunomia.throughputs.job_type_facts import LARGEST_OF_MB
from eunomia.traces import Trace
from eunomia_reproduction.peers.running import lives
from eunomia_reproduction.table import FigureRow, FigureTable, Request

JOBS, MACHINES, ACCELERATORS = 480, 15, 4
LOADS = (0.9, 2.0)  # figure 13 has a median JCT 20 times as long under FIFO as under Tiresias: more came than fitted
COSTS = Overheads(checkpoint_s=30.0, restore_s=30.0)
POLICY = {
    "YARN-CS": "consolidated",
    "best effort": "fifo?backfill=skip",
    "SRTF": "srtf",
    "Tiresias-L": "tiresias",
    "Tiresias-G": "tiresias?index=gittins",
}
FIFO, RIVALS, TIRESIAS = "YARN-CS", ("YARN-CS", "best effort"), ("Tiresias-L", "Tiresias-G")
PUBLISHED = {"jct_mean": 5.5, "jct_p95": 1.6}  # FIFO ÷ Tiresias
SOURCE = "Gu et al., NSDI 2019, section 6"
ENOUGH_SEEDS = 10
Measures = Mapping[str, float]  # by quantity, seconds
Shown = dict[tuple[str, str], dict[int, Measures]]  # by work and policy, by seed


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs to play: a trace, or what is drawn by seed at a load."""

    name: str
    seed: int
    load: float = 1.0
    trace: Trace | None = None


def reproduce(request: Request) -> FigureTable:
    """Play every policy on jobs drawn with each seed at each load and, with a reference folder, on its trace."""
    work = [Work(f"drawn, load {load:g}", seed, load) for load in LOADS for seed in range(request.seeds)]
    if request.reference is not None:
        work.append(Work("w480", 0, trace=_trace_in(request.reference)))
    tasks = [(one, policy) for one in work for policy in POLICY]
    shown: Shown = {}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for (one, policy), measures in zip(tasks, pool.map(_measure, *zip(*tasks, strict=True)), strict=True):
            shown.setdefault((one.name, policy), {})[one.seed] = measures
            request.tell(f"{one.name}, seed {one.seed}, {policy}: mean JCT {measures['jct_mean']:.0f} s")
    names = dict.fromkeys(one.name for one in work)
    rows = [row for name in names for row in (*_values(name, shown), *_factors(name, shown), *_ahead(name, shown))]
    notes = [f"{JOBS} jobs on {MACHINES} machines of {ACCELERATORS} accelerators; a stop costs 60 s"]
    if request.seeds < ENOUGH_SEEDS:
        notes.append(f"drawn with {request.seeds} seeds: give --seeds {ENOUGH_SEEDS} for intervals worth reading")
    return FigureTable(rows=tuple(rows), notes=tuple(notes))


def _values(name: str, shown: Shown) -> list[FigureRow]:
    """Return the mean JCT of each policy under each seed."""
    return [
        FigureRow(series=f"{name}: {policy}", x=seed, quantity="jct_mean", unit="s", measured=measures["jct_mean"])
        for policy in POLICY
        for seed, measures in shown[name, policy].items()
    ]


def _factors(name: str, shown: Shown) -> list[FigureRow]:
    """Return by what factor each policy beats FIFO; reported, not checked."""
    return [
        FigureRow(
            series=f"{name}: {FIFO} ÷ {policy}",
            quantity=quantity,
            unit="",
            published=published if policy in TIRESIAS else None,
            measured=factor,
            source=SOURCE if policy in TIRESIAS else "",
            note=interval,
        )
        for policy in POLICY
        for quantity, published in PUBLISHED.items()
        for factor, interval in [_factor(*(_by_seed(shown[name, one], quantity) for one in (FIFO, policy)))]
        if policy != FIFO
    ]


def _ahead(name: str, shown: Shown) -> list[FigureRow]:
    """Return under how many seeds Tiresias has the lower mean JCT; it has to be every one."""
    found = []
    for policy in TIRESIAS:
        for rival in RIVALS:
            mine, other = (_by_seed(shown[name, one], "jct_mean") for one in (policy, rival))
            ahead, series = sum(mine[seed] < other[seed] for seed in mine), f"{name}: {policy} ahead of {rival}"
            found.append(
                FigureRow(
                    series=series,
                    quantity="seeds",
                    unit="",
                    published=len(mine),
                    measured=ahead,
                    tolerance=0.0,
                    source=SOURCE,
                )
            )
    return found


def _by_seed(measures: Mapping[int, Measures], quantity: str) -> dict[int, float]:
    return {seed: found[quantity] for seed, found in measures.items()}


def _factor(fifo: Mapping[int, float], other: Mapping[int, float]) -> tuple[float, str]:
    """Return the geometric mean of FIFO ÷ other over the seeds, and the 95 % interval in words."""
    found = paired(fifo, other)
    assert found is not None
    assert found.log_ratio is not None  # every JCT is above 0
    low, high = found.log_ratio.low, found.log_ratio.high
    note = (
        "one seed"
        if low is None or high is None
        else f"95 % interval {elementary.exp(low):.2f} to {elementary.exp(high):.2f}"
    )
    return elementary.exp(found.log_ratio.mean), note


def _measure(work: Work, policy: str) -> Measures:
    """Return what one run came to."""
    jobs = _jobs(work.trace or _drawn(work.seed, work.load))
    nodes = [Node(type="gpu", accelerators=ACCELERATORS)] * MACHINES
    topology, spelling = Topology.of(nodes), POLICY[policy]
    world = Simulation(jobs, topology, load("uniform", topology.types), overheads=COSTS)
    recall = build(spelling).info.mechanism.recall
    ended = lives(jobs, nodes, spelling, Leases(recall=recall), world=world)
    jct: Floats = np.array([ended[job.job_id].end - job.submitted for job in jobs])
    return {"jct_mean": float(jct.mean()), "jct_p95": float(np.percentile(jct, 95))}


def _drawn(seed: int, load: float) -> Trace:
    """Return jobs whose work is `load` times what the cluster can do in the time in which they come."""
    trace = traces.generate("philly-like", seed, jobs=JOBS, distribution="philly")
    work = float((trace.scale_factor * trace.duration_s).sum())
    span = work / (load * MACHINES * ACCELERATORS)
    models = np.random.default_rng((seed, 1)).choice(list(LARGEST_OF_MB), JOBS).tolist()
    return replace(trace, submitted_s=trace.submitted_s * span / trace.submitted_s[-1], job_type=tuple(models))


def _jobs(trace: Trace) -> list[Job]:
    """Return the jobs of a trace; a step is a second."""
    models: Sequence[str] = trace.job_type or ("",) * len(trace)
    columns = zip(trace.job_id, models, trace.scale_factor.tolist(), trace.submitted_s.tolist(), strict=True)
    return [
        Job(job_id=name, sequence=row, job_type=model, scale_factor=size, submitted=at, total_steps=seconds)
        for row, ((name, model, size, at), seconds) in enumerate(zip(columns, trace.duration_s.tolist(), strict=True))
    ]


def _trace_in(folder: Path) -> Trace:
    """Return the trace of 480 jobs in a folder laid out like data/peers/tiresias. Raises InvalidInput without one."""
    for path in (folder / "w480" / "trace.csv", folder / "tiresias" / "w480" / "trace.csv", folder / "trace.csv"):
        if path.is_file():
            return traces.read(path, "tiresias", models=True)
    rule, fix = "there is no w480/trace.csv", "give a folder laid out like data/peers/tiresias"
    raise InvalidInput([Problem(file=str(folder), column="--reference", rule=rule, fix=fix)])
