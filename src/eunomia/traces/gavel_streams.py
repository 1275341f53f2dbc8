"""The workload of Gavel's simulator, from its own random streams: the same seed gives the same jobs.

Jobs come from one stream, gaps between them from another. A gang has 2, 4 or 8 accelerators with probabilities 0.1,
0.15 and 0.05, else 1; a duration on a V100 is 10^U(1.5, 3) minutes, or 10^U(3, 4) with probability 0.2; a job type is
one of 26, redrawn for gangs of several accelerators until it is a distributed one.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 7.1 and its published simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.traces.table import Trace, trace_of

# What a duration is drawn from: Philly's lengths, or days, as in the published code when the section on cost was run.
DURATIONS = ("philly", "days")
_DAYS = (0.5, 1, 2, 4, 8)
# Offsets of the streams' seeds.
_JOBS, _ARRIVALS, _DEADLINES = 2, 3, 6
_BATCH_SIZES = {
    "ResNet-18": (16, 32, 64, 128, 256),
    "ResNet-50": (16, 32, 64, 128),
    "Transformer": (16, 32, 64, 128, 256),
    "LM": (5, 10, 20, 40, 80),
    "Recommendation": (512, 1024, 2048, 4096, 8192),
}
_SCALABLE = ("ResNet-18", "ResNet-50", "Transformer", "LM")  # models that run on several accelerators
_SIZED = tuple(
    (f"{model} (batch size {size})", model in _SCALABLE) for model, sizes in _BATCH_SIZES.items() for size in sizes
)
_A3C, _CYCLEGAN = ("A3C", False), ("CycleGAN", False)
_RESNET_50 = tuple(row for row in _SIZED if row[0].startswith("ResNet-50"))
_TRANSFORMERS_END = 14  # rows before the language models
# The order decides which job type a random number draws.
JOB_TABLES = {
    "artifact": (*_SIZED, _A3C, _CYCLEGAN),  # the published code since its commit 19a0dd2, of 2020-08-29
    "published": (*_SIZED[:_TRANSFORMERS_END], _A3C, *_SIZED[_TRANSFORMERS_END:], _CYCLEGAN),  # before: the figures
    "cost": (*_RESNET_50, *[_A3C] * len(_RESNET_50)),  # half ResNet-50, half A3C: the paper's section on cost
}


@dataclass(frozen=True, kw_only=True)
class GavelStreams:
    """Poisson arrivals, Philly-like sizes and durations; with `priorities` a fifth of the jobs has weight 5.

    With `deadlines` a job is due after 1.2 (33 % of jobs), 2 (34 %) or 10 (33 %) times its duration. `table` has
    the job types in order: that of the published code, the earlier one with which the paper's figures were drawn, or
    the two models of its section on cost. `durations` of "days" are 0.5, 1, 2, 4 or 8 days, drawn evenly, after the
    job type: as the published code had it in March and April of 2020 (commits 1201d84 to bc3e2bf).
    """

    jobs: int = 1000
    rate_per_hour: float = 4.0
    multi_accelerator: bool = False
    priorities: bool = False
    deadlines: bool = False
    table: str = "artifact"
    durations: str = "philly"

    def draw(self, seed: int) -> Trace:
        """Return the trace; durations are on the reference type, v100 in Gavel."""
        rng = Random(seed + _JOBS)
        jobs = [self._draw_job(rng) for _ in range(self.jobs)]
        size, duration, job_type, weight = zip(*jobs, strict=True)
        arrivals = self._draw_arrivals(Random(seed + _ARRIVALS))
        due = self._draw_slack(Random(seed + _DEADLINES)) * np.array(duration)
        return trace_of(
            "gavel",
            tuple(map(str, range(self.jobs))),
            arrivals,
            np.array(size, dtype=np.int64),
            duration_s=np.array(duration),
            job_type=job_type,
            weight=np.array(weight),
            deadline_s=arrivals + due,
        )

    def _draw_job(self, rng: Random) -> tuple[int, float, str, float]:
        """Draw scale factor, duration, job type and weight, in the simulator's order."""
        table = JOB_TABLES[self.table]
        if self.durations == "days":
            name, distributed = rng.choice(table)
            duration = 86400.0 * rng.choice(_DAYS)
            size = _gang_size(rng.uniform(0, 1)) if self.multi_accelerator else 1
        else:
            size, duration = self._draw_philly(rng)
            name, distributed = rng.choice(table)
        while size > 1 and not distributed:
            name, distributed = rng.choice(table)
        weight = 5.0 if self.priorities and rng.uniform(0, 1) <= 0.2 else 1.0
        return size, duration, name, weight

    def _draw_philly(self, rng: Random) -> tuple[int, float]:
        """Draw scale factor and duration, in this order."""
        size = _gang_size(rng.uniform(0, 1))  # drawn even if it is not used
        if not self.multi_accelerator:
            size = 1
        low, high = (3, 4) if rng.random() >= 0.8 else (1.5, 3)
        return size, 60 * elementary.power(10, rng.uniform(low, high))

    def _draw_slack(self, rng: Random) -> Floats:
        """Return the deadlines as multiples of the durations, (job,); inf without deadlines."""
        if not self.deadlines:
            return np.full(self.jobs, math.inf)
        drawn = np.array([rng.uniform(0, 1) for _ in range(self.jobs)])
        return np.where(drawn < 0.33, 1.2, np.where(drawn < 0.67, 2.0, 10.0))

    def _draw_arrivals(self, rng: Random) -> Floats:
        """Return submission times in seconds, (job,); the first is 0, and all are at an infinite rate."""
        arrived_s, arrivals = 0.0, []
        for _ in range(self.jobs):
            arrivals.append(arrived_s)
            if self.rate_per_hour < math.inf:
                arrived_s += -elementary.log(1.0 - rng.random()) / (1.0 / (3600.0 / self.rate_per_hour))
        return np.array(arrivals)


def _gang_size(drawn: float) -> int:
    if 0.7 <= drawn <= 0.8:
        return 2
    if 0.8 <= drawn <= 0.95:
        return 4
    return 8 if drawn >= 0.95 else 1
