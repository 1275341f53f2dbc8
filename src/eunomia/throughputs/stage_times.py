"""How long an iteration keeps each resource busy: Muri's table, and what follows when jobs share resources.

    u[r] = min(1, stage time on r / iteration time)          r: CPU and data loading, accelerator, network
    speed beside others / speed alone = 1 / max(1, max_r Σ_j u_j[r])

Jobs interleave freely until one resource is always busy, then share it in proportion: the analytic model's rule for the
accelerator, over three resources. Stage times: Y. Zhao et al., "Multi-Resource Interleaving for Deep Learning
Training", SIGCOMM 2022 (measured on V100; stages of one job may overlap, so they may add up to more than an iteration).
The rule is ours: Muri runs jobs in step, which is slower for jobs with unlike iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.throughputs.job_type_facts import model_of
from eunomia.throughputs.long_table import ABOVE_0, AT_LEAST_0, COUNT, read_layout
from eunomia.throughputs.measured_table import nearest_size

STAGES = ("resource_time_0", "resource_time_1", "resource_time_2")
LAYOUTS = {"muri": ("model_name", "batch_size", "num_gpu", "iteration_time", *STAGES)}
CPU, ACCELERATOR, NETWORK = range(3)


@dataclass(frozen=True, slots=True)
class Stages:
    """Shares of an iteration that each resource is busy, by model and accelerators."""

    name: str
    busy_by_size: Mapping[str, Mapping[int, Floats]]  # model → accelerators → (resource,)

    def busy(self, job_type: str, scale_factor: int) -> Floats | None:
        """Return u (resource,) at the nearest measured size; None for a model that is not in the table."""
        sizes = self.busy_by_size.get(model_of(job_type))
        return None if sizes is None else sizes[nearest_size(sizes, scale_factor)]


def kept(busy: Sequence[Floats]) -> float:
    """Return what share of its speed alone each of these jobs keeps; `busy` holds u (resource,) of each."""
    return 1.0 / max(1.0, float(np.sum(busy, axis=0).max()))


def read_stages(path: Path, name: str) -> Stages:
    """Return a table of stage times; rows of one model and size are averaged. Raises InvalidInput with all problems."""
    _, table = read_layout(path, name, LAYOUTS)
    sizes, iteration = table.whole("num_gpu", COUNT).tolist(), table.number("iteration_time", ABOVE_0)
    stages = np.stack([table.number(stage, AT_LEAST_0) for stage in STAGES], axis=1)  # (row, stage)
    table.raise_if_any()
    found: dict[str, dict[int, list[Floats]]] = {}
    for model, size, row in zip(table.text("model_name"), sizes, stages / iteration[:, None], strict=True):
        found.setdefault(model_of(model), {}).setdefault(size, []).append(np.minimum(row, 1.0))
    busy = {model: {n: np.mean(rows, axis=0) for n, rows in sizes.items()} for model, sizes in found.items()}
    return Stages(name, busy)
