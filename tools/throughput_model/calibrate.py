"""Fits the facts of `jobs.toml`: least squares on Gavel's rows of one accelerator.

The step time of a family is linear in its facts (see `analytic`), so each family is a small non-negative least squares
problem over its batch sizes and K80, P100 and V100, weighted by relative error. FLOP per sample are fitted only where
no source states them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.equations import least_squares
from eunomia.model.products import dot
from eunomia.model.rounding import drawn
from eunomia.throughputs import read_table
from eunomia.throughputs.analytic import GIGA, PEAK_SHARE, TERA
from eunomia.throughputs.catalogue import accelerators
from eunomia.throughputs.job_type_facts import GAVEL_FAMILIES, JobFacts, job_types
from eunomia.throughputs.measured_table import Measurements

TABLE = "gavel/simulation_throughputs.json.gz"
TYPES = ("k80", "p100", "v100")
ROUNDS = 20  # of reweighting; the weights converge long before
UNKNOWNS = ("step_overhead_s", "bytes_per_sample", "host_s_per_sample", "flops_per_sample")


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted facts of one family, by field, and the median ratio between the model and the rows fitted."""

    family: str
    facts: dict[str, float]
    median_ratio: float


def fit_steps(reference: Path) -> list[Fit]:
    """Return the fitted facts of each of Gavel's families. `reference` is the folder that holds `gavel/`."""
    table = read_table(TABLE, reference)
    return [_fit_family(family, table) for family in GAVEL_FAMILIES]


def fit_memory(reference: Path, *, steps: int = 4000, seed: int = 0) -> tuple[dict[str, tuple[float, float]], float]:
    """Return (memory_gb, memory_gb_per_sample) by family, and the share of pairs that they predict to fit or not.

    Seeded random search: two jobs of one accelerator fit together if their memories do, as the zeros of the table say.
    """
    table, names = read_table(TABLE, reference), _gavel_names()
    family = np.array([GAVEL_FAMILIES.index(job_types()[name].family) for name in names])
    batch = np.array([job_types()[name].batch_size for name in names])
    room, fits = _pair_observations(table, names)
    rng = np.random.default_rng(seed)
    largest = np.array([batch[family == each].max() for each in range(len(GAVEL_FAMILIES))])
    best = np.stack([np.full(len(largest), 0.6), 4.0 / largest])
    score = _predicted_share(best, family, batch, room, fits)
    for _ in range(steps):
        trial = best.copy()
        trial[rng.integers(2), rng.integers(len(largest))] *= elementary.exp(drawn(rng.normal(0, 0.3)))
        trial[0] = np.maximum(trial[0], 0.3)  # the runtime itself
        if (new := _predicted_share(trial, family, batch, room, fits)) >= score:
            best, score = trial, new
    found = {name: (float(best[0, k]), float(best[1, k])) for k, name in enumerate(GAVEL_FAMILIES)}
    return found, score


def _fit_family(family: str, table: Measurements) -> Fit:
    jobs = [job_types()[name] for name in _gavel_names() if job_types()[name].family == family]
    rows = [(job, each, table.alone[each, job.name, 1]) for job in jobs for each in TYPES]
    y = np.array([1 / rate for *_, rate in rows])
    matrix = np.array([_coefficients(job, each) for job, each, _ in rows])
    stated = 0.0 if "flops_per_sample" in jobs[0].fitted else jobs[0].flops_per_sample
    known = matrix[:, 3] * stated
    free = [k for k, name in enumerate(UNKNOWNS) if name in jobs[0].fitted]
    x = _relative_least_squares(matrix[:, free], y, known)
    ratio = elementary.exp(np.abs(elementary.log((dot(matrix[:, free], x) + known) / y)))
    facts = {UNKNOWNS[k]: float(value) for k, value in zip(free, x, strict=True)}
    return Fit(family, facts, float(np.median(ratio)))


def _coefficients(job: JobFacts, type_name: str) -> list[float]:
    accelerator, b = accelerators()[type_name], job.batch_size
    bandwidth = accelerator.bandwidth_gb_s * GIGA * accelerator.efficiency
    peak = accelerator.fp32_tflops * TERA * PEAK_SHARE["fp32"] * accelerator.efficiency
    return [1.0, b / bandwidth, float(b), b / peak]


def _relative_least_squares(matrix: Floats, y: Floats, known: Floats) -> Floats:
    """Return the non-negative x for which matrix @ x + known is nearest to y by ratio."""
    weight = 1 / y
    x = np.zeros(matrix.shape[1])
    for _ in range(ROUNDS):
        x = non_negative_least_squares(matrix * weight[:, None], (y - known) * weight)
        weight = 1 / np.sqrt(y * np.maximum(dot(matrix, x) + known, 1e-9))
    return x


def non_negative_least_squares(matrix: Floats, y: Floats) -> Floats:
    """Return x ≥ 0 with the least |matrix @ x - y|; it tries every set of columns, so use few columns."""
    best, least = np.zeros(matrix.shape[1]), float(dot(y, y))
    for count in range(1, matrix.shape[1] + 1):
        for columns in combinations(range(matrix.shape[1]), count):
            scale = np.abs(matrix[:, columns]).max(axis=0)  # seconds and floating-point operations differ in magnitude
            scale = np.where(scale > 0, scale, 1.0)
            x = least_squares(matrix[:, columns] / scale, y) / scale
            residual = dot(matrix[:, columns], x) - y
            if (x >= 0).all() and dot(residual, residual) < least:
                best, least = np.zeros(matrix.shape[1]), float(dot(residual, residual))
                best[list(columns)] = x
    return best


def _gavel_names() -> list[str]:
    return [name for name, job in job_types().items() if job.family in GAVEL_FAMILIES]


def _pair_observations(table: Measurements, names: list[str]) -> tuple[Floats, Floats]:
    """Return the memory of each type, shape (type, 1, 1), and whether pairs ran, shape (type, job, job)."""
    room = np.array([accelerators()[each].memory_gb for each in TYPES], dtype=float)[:, None, None]
    ran = [[[table.pairs[each, a, b, 1] > 0 for b in names] for a in names] for each in TYPES]
    return room, np.array(ran, dtype=float)


def _predicted_share(memory: Floats, family: Ints, batch: Ints, room: Floats, ran: Floats) -> float:
    """Return the share of pairs predicted; 0 if a job that ran alone on every type would not fit the smallest."""
    need = memory[0, family] + memory[1, family] * batch
    if need.max() > room.min():
        return 0.0
    return float(((need[:, None] + need[None, :] <= room) == (ran > 0)).mean())
