"""Symphony beside Sparrow, Graphene, Paragon and the oracle on workloads that it has not seen.

In the world of `world`: 128 tasks a workload, loads from 0.4 to 1.2. A kernel's time is from when it could start to its
end, over its isolated time on the best processor. Published ratios are of run times on the authors' rack, so rows
beside them have no tolerance. Intervals are paired by workload (95 %, t of log ratios).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from eunomia.model.arrays import Floats
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.symphony import belief, machine
from eunomia_reproduction.symphony.counters import COUNTERS
from eunomia_reproduction.symphony.discrete_gradient import DiscreteNode, inference, sampled
from eunomia_reproduction.symphony.network import Symphony, SymphonyNetwork
from eunomia_reproduction.symphony.schedulers import KernelScheduler, baselines, play
from eunomia_reproduction.symphony.world import KernelDecision, KernelMoment, KernelWorld, draw_workload
from eunomia_reproduction.table import FigureRow, FigureTable, Request

TASKS, LOADS = 128, (0.4, 1.2)
FEWEST, FROM = 20, 700_000  # workloads, and the seed of the first
VALUES = 3  # of a discrete node
QUANTITIES: dict[str, Callable[[Floats], float]] = {
    "median": lambda times: float(np.median(times)),
    "p99": lambda times: float(np.sort(times)[int(0.99 * len(times))]),
    "mean": lambda times: float(times.mean()),
}
WITHOUT_BELIEF = (("graphene", "oracle"), ("oracle", "paragon"))  # what there is to gain by knowing loads
PUBLISHED = {("paragon", "median"): 0.68, ("paragon", "p99"): 0.68, ("oracle", "p99"): 1.06}
GOALS = {"sparrow": "below 1", "graphene": "below 1", "paragon": "below 1", "oracle": "p99 at most 1.10"}


class _Watched:
    """A scheduler, the CPU time of its decisions, and the belief beside the truth."""

    def __init__(self, scheduler: KernelScheduler):
        self._scheduler, self.took = scheduler, list[float]()
        self.ended = scheduler.ended

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Return one decision."""
        begin = time.process_time()
        decision = self._scheduler.handle(moment)
        self.took.append(time.process_time() - begin)
        return decision


def reproduce(request: Request) -> FigureTable:
    """Play every workload under every scheduler."""
    network = SymphonyNetwork.shipped()
    count = max(FEWEST, request.seeds)
    worlds: dict[str, list[KernelWorld]] = {}
    took: dict[str, list[float]] = {}
    for k, load in enumerate(np.linspace(*LOADS, count).tolist()):
        seed = FROM + k
        work = draw_workload(np.random.default_rng(seed), tasks=TASKS, load=load)
        for name, scheduler in {"symphony": Symphony(network, seed), **baselines(seed)}.items():
            watched = _Watched(scheduler)
            worlds.setdefault(name, []).append(play(work, watched, seed))
            took.setdefault(name, []).extend(watched.took)
        request.tell(f"workload {k + 1} of {count}, load {load:.2f}")
    rows = [
        FigureRow(series=name, quantity=f"{quantity} time of a kernel", unit="best isolated times",
                  measured=round(float(np.mean([measure(world.response) for world in played])), 4))
        for name, played in worlds.items() for quantity, measure in QUANTITIES.items()
    ]  # fmt: skip
    for other in GOALS:
        for quantity in QUANTITIES:
            rows += _ratio("symphony", other, quantity, worlds)
    for one, other in WITHOUT_BELIEF:
        for quantity in QUANTITIES:
            rows += _ratio(one, other, quantity, worlds)
    rows += [
        FigureRow(series=name, quantity="CPU time of a decision, median", unit="ms",
                  measured=round(statistics.median(times) * 1e3, 3))
        for name, times in took.items()
    ]  # fmt: skip
    rows += [*_correlations(network), _gradient(network), _published_gradient()]
    notes = (
        f"{count} workloads that were not used in training, seeds from {FROM:,}; 95 % intervals paired by workload.",
        "Kernels run in a simulator of their own. CPU times differ from run to run, the other rows do not.",
    )
    return FigureTable(rows=tuple(rows), notes=notes)


def _ratio(one: str, other: str, quantity: str, worlds: Mapping[str, Sequence[KernelWorld]]) -> list[FigureRow]:
    """Return the ratio of the means of the logarithms over the workloads, and the ends of its interval."""
    mine, theirs = ([QUANTITIES[quantity](world.response) for world in worlds[name]] for name in (one, other))
    published = PUBLISHED.get((other, quantity)) if one == "symphony" else None
    note = f"goal: {GOALS[other]}" if one == "symphony" else ""
    return ratio_rows(
        f"{one} ÷ {other}", f"{quantity} time of a kernel, ratio", mine, theirs, published=published, note=note
    )


def _correlations(network: SymphonyNetwork) -> list[FigureRow]:
    """Return how the belief about resources without counters follows the truth."""
    truth, believed, rng = [], [], np.random.default_rng(FROM)
    for k in range(3):
        work = draw_workload(np.random.default_rng(FROM + k), tasks=TASKS, load=0.8)
        world, scheduler = KernelWorld(work, np.random.default_rng(FROM + k)), Symphony(network)
        for moment in world.moments():
            truth.append(moment.load)
            values = belief.sample_values(moment.counters.readings, rng)
            believed.append(belief.utilisations(network.beliefs, values).mean(axis=0))
            world.carry_out(scheduler.handle(moment))
    loads, found = np.array(truth), np.array(believed)
    return [
        FigureRow(series=machine.RESOURCES[row], quantity=f"correlation of belief and {name}", unit="", note=goal,
                  measured=round(float(np.corrcoef(np.minimum(loads[:, row], most), found[:, row])[0, 1]), 4))
        for name, most, goal in (("utilisation", 1.0, "goal: 0.9 for the links"), ("load, up to 2", 2.0, ""))
        for row in machine.HIDDEN
    ]  # fmt: skip


def _gradient(network: SymphonyNetwork) -> FigureRow:
    """Return the CPU time of a link's gradient by full inference over that by 32 samples."""
    rng, weight = np.random.default_rng(FROM), network.beliefs["link"][0]
    readings = rng.normal(0.5, 0.05, (8, COUNTERS))
    mean, spread = readings.mean(axis=0), readings.std(axis=0)

    full = _cpu_s(lambda: belief.by_inference(weight, 0, mean, spread))
    drawn = _cpu_s(lambda: belief.link_gradient(weight, belief.sample_values(readings, rng), 0))
    return FigureRow(
        series="gradient of a link", quantity="CPU time, full inference ÷ sampling", unit="",
        measured=round(full / drawn, 2), note="domains of 7 values; published: whole training 4.3 times as fast",
    )  # fmt: skip


def _published_gradient() -> FigureRow:
    """Return the same ratio for discrete nodes and the published sampling: a link with its parents, as a network."""
    rng, names = np.random.default_rng(FROM), [f"v{counter}" for counter in belief.LINK_PARENTS[0]]
    network = {name: DiscreteNode((), rng.normal(size=VALUES)) for name in names}
    network["link"] = DiscreteNode(tuple(names), rng.normal(size=(VALUES,) * (len(names) + 1)))
    full = _cpu_s(lambda: inference(network, "link"))
    drawn = _cpu_s(lambda: sampled(network, "link", rng, belief.SAMPLES))
    return FigureRow(
        series="gradient of a discrete link", quantity="CPU time, full inference ÷ sampling", unit="",
        measured=round(full / drawn, 2), note=f"domains of {VALUES} values, {belief.SAMPLES} samples",
    )  # fmt: skip


def _cpu_s(once: Callable[[], object], times: int = 20) -> float:
    begin = time.process_time()
    for _ in range(times):
        once()
    return time.process_time() - begin
