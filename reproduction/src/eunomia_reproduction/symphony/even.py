"""What it is worth to know loads where processors are 2 to 8 times apart: two that do not, beside the oracle that does.

Training to a goal half-way between Graphene and the oracle would test what a belief saves; this shows how far apart
they are on the machine `EVEN`, and how much their ratio differs from workload to workload. Nothing is trained.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia_reproduction.ratio_rows import ratio_rows
from eunomia_reproduction.symphony.experiment import LOADS, QUANTITIES, TASKS
from eunomia_reproduction.symphony.machine import EVEN
from eunomia_reproduction.symphony.schedulers import baselines, play
from eunomia_reproduction.symphony.world import draw_workload
from eunomia_reproduction.table import FigureRow, FigureTable, Request

FEWEST, FROM = 20, 850_000  # workloads, and the seed of the first
NAMES = ("graphene", "paragon", "oracle")


def reproduce(request: Request) -> FigureTable:
    """Play every workload under each of them."""
    count = max(FEWEST, request.seeds)
    times: dict[str, list[Floats]] = {name: [] for name in NAMES}
    for seed, load in enumerate(np.linspace(*LOADS, count).tolist(), FROM):
        work, by_name = (
            draw_workload(np.random.default_rng(seed), tasks=TASKS, load=load, machine=EVEN),
            baselines(seed),
        )
        for name in NAMES:
            times[name].append(play(work, by_name[name], seed).response)
        request.tell(f"workload {seed - FROM + 1} of {count}, load {load:.2f}")
    rows: list[FigureRow] = []
    for other in NAMES[:-1]:
        for quantity, measure in QUANTITIES.items():
            mine, oracle = ([measure(one) for one in times[name]] for name in (other, NAMES[-1]))
            what = f"{quantity} time of a kernel, ratio"
            rows += ratio_rows(f"{other} ÷ oracle", what, mine, oracle)
            spread = float(np.std(np.log(np.array(mine) / oracle), ddof=1))
            rows.append(FigureRow(series=f"{other} ÷ oracle", quantity=f"{what}, deviation of its logarithm", unit="",
                                  measured=round(spread, 3)))  # fmt: skip
    notes = (f"{count} workloads, seeds from {FROM:,}; 95 % intervals paired by workload.",)
    return FigureTable(rows=tuple(rows), notes=notes)
