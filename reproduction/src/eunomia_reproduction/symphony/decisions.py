"""Symphony beside Graphene when decisions take time: charged to the clock of the simulated machine.

A decision takes the CPU time that was measured once, as in `symphony`; kernels there take 6 to 25 s alone. Kernels that
are FASTER times as fast see decisions that take so many times as long, and a batch decides for several tasks in one
invocation. Workloads, loads and intervals are those of `symphony`. Published: the median decision is 1.6 times as fast
as Graphene's, and batches cut the tail of its latency up to 12 times.
"""

from __future__ import annotations

import numpy as np

from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.symphony.experiment import FEWEST, FROM, LOADS, QUANTITIES, TASKS
from eunomia_reproduction.symphony.network import Symphony, SymphonyNetwork
from eunomia_reproduction.symphony.schedulers import EarliestEnd, play
from eunomia_reproduction.symphony.world import KernelWorld, draw_workload
from eunomia_reproduction.table import FigureRow, FigureTable, Request

DECISION_S = {"symphony": 4e-3, "graphene": 1e-4}  # of one core, as `symphony` measures it
CASES = ((100, 1), (1000, 1), (1000, 8))  # how many times as fast kernels are, and tasks of an invocation


def reproduce(request: Request) -> FigureTable:
    """Play every workload under both in each case."""
    network = SymphonyNetwork.shipped()
    count = max(FEWEST, request.seeds)
    rows: list[FigureRow] = []
    for faster, batch in CASES:
        worlds: dict[str, list[KernelWorld]] = {name: [] for name in DECISION_S}
        for k, load in enumerate(np.linspace(*LOADS, count).tolist()):
            seed = FROM + k
            work = draw_workload(np.random.default_rng(seed), tasks=TASKS, load=load)
            for name, scheduler in (("symphony", Symphony(network, seed)), ("graphene", EarliestEnd(by_path=True))):
                worlds[name].append(play(work, scheduler, seed, decision_s=faster * DECISION_S[name], batch=batch))
        request.tell(f"kernels {faster} times as fast, {batch} tasks of an invocation")
        for quantity, measure in QUANTITIES.items():
            mine, theirs = ([measure(world.response) for world in worlds[name]] for name in DECISION_S)
            series = f"symphony ÷ graphene, kernels {faster} times as fast, batches of {batch}"
            rows += ratio_rows(series, f"{quantity} time of a kernel, ratio", mine, theirs)
    notes = (
        f"{count} workloads that were not used in training, seeds from {FROM:,}; a decision takes {DECISION_S} s.",
    )
    return FigureTable(rows=tuple(rows), notes=notes)
