"""Symphony beside Graphene when decisions take time, charged to the clock of the machine, and with late counters.

A decision takes the CPU time that was measured once, as in `symphony`; kernels there take 6 to 25 s alone. Kernels that
are FASTER times as fast see decisions that take so many times as long, and a batch decides for several tasks in one
invocation. Workloads, loads and intervals are those of `symphony`. Published: the median decision is 1.6 times as fast
as Graphene's, and batches cut the tail of its latency up to 12 times.

Late counters are those of so many decisions before, as of machines that are read over a network; the queue, processors
and what they run are known at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from eunomia.model.arrays import Ints
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.symphony.counters import Counters
from eunomia_reproduction.symphony.experiment import FEWEST, FROM, LOADS, QUANTITIES, TASKS
from eunomia_reproduction.symphony.network import Symphony, SymphonyNetwork
from eunomia_reproduction.symphony.schedulers import EarliestEnd, KernelScheduler, play
from eunomia_reproduction.symphony.world import KernelDecision, KernelMoment, KernelWorld, draw_workload
from eunomia_reproduction.table import FigureRow, FigureTable, Request

DECISION_S = {"symphony": 4e-3, "graphene": 1e-4}  # of one core, as `symphony` measures it
LATE = (1, 4)  # decisions
CASES = ((100, 1), (1000, 1), (1000, 8))  # how many times as fast kernels are, and tasks of an invocation


class Late:
    """A scheduler that has the counters of so many decisions before, or the first ones."""

    def __init__(self, inner: KernelScheduler, decisions: int) -> None:
        self._inner, self._seen = inner, deque[Counters](maxlen=decisions + 1)

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Decide by the late counters."""
        self._seen.append(moment.counters)
        return self._inner.handle(replace(moment, counters=self._seen[0]))

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Take in how a kernel ran."""
        self._inner.ended(kernel, slow, beside)


def reproduce(request: Request) -> FigureTable:
    """Play every workload under both in each case, and under Symphony with late counters."""
    network = SymphonyNetwork.shipped()
    count = max(FEWEST, request.seeds)
    rows: list[FigureRow] = []
    for faster, batch in CASES:
        costs = {name: faster * decision_s for name, decision_s in DECISION_S.items()}
        worlds = {
            "symphony": _played(lambda seed: Symphony(network, seed), count, costs["symphony"], batch),
            "graphene": _played(lambda _: EarliestEnd(by_path=True), count, costs["graphene"], batch),
        }
        request.tell(f"kernels {faster} times as fast, {batch} tasks of an invocation")
        rows += _ratios(f"symphony ÷ graphene, kernels {faster} times as fast, batches of {batch}", *worlds.values())
    rows += late_rows(network, count)
    notes = (
        f"{count} workloads that were not used in training, seeds from {FROM:,}; a decision takes {DECISION_S} s.",
    )
    return FigureTable(rows=tuple(rows), notes=notes)


def late_rows(network: SymphonyNetwork, count: int) -> list[FigureRow]:
    """Return the times of kernels with late counters over those with counters on time."""
    on_time = _played(lambda seed: Symphony(network, seed), count)
    rows: list[FigureRow] = []
    for late in LATE:
        worlds = _played(partial(_late, network, late), count)
        rows += _ratios(f"symphony, counters late by {late} ÷ on time", worlds, on_time)
    return rows


def _late(network: SymphonyNetwork, decisions: int, seed: int) -> KernelScheduler:
    return Late(Symphony(network, seed), decisions)


def _played(
    scheduler: Callable[[int], KernelScheduler], count: int, decision_s: float = 0.0, batch: int = 1
) -> list[KernelWorld]:
    """Play so many workloads, each under a scheduler of its seed."""
    worlds = []
    for k, load in enumerate(np.linspace(*LOADS, count).tolist()):
        seed = FROM + k
        work = draw_workload(np.random.default_rng(seed), tasks=TASKS, load=load)
        worlds.append(play(work, scheduler(seed), seed, decision_s=decision_s, batch=batch))
    return worlds


def _ratios(series: str, mine: list[KernelWorld], theirs: list[KernelWorld]) -> list[FigureRow]:
    return [
        row
        for quantity, measure in QUANTITIES.items()
        for row in ratio_rows(
            series,
            f"{quantity} time of a kernel, ratio",
            *([measure(world.response) for world in worlds] for worlds in (mine, theirs)),
        )
    ]
