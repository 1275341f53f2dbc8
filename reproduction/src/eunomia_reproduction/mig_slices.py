"""MIG slices from a shared run (MISO's table): how slow a job is alone on each slice, by its nearest neighbours.

B. Li et al., "MISO: Exploiting Multi-Instance GPU Capability on Multi-Tenant GPU Clusters", SoCC 2022. A job is known
by its step times while up to seven share the accelerator, at three limits of their share, over the largest of them, and
by the mean of its partners'; with `utilization` by that of the accelerator and its memory while it ran alone, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Array, Bools, Floats

SHARED = ("mps100_rel_step_time", "mps50_rel_step_time", "mps14_rel_step_time")
SLICES = ("mig7g_rel_step_time", "mig4g_rel_step_time", "mig3g_rel_step_time")
NEIGHBOURS = 15
SLOTS = 7
FILLER = "dummy"
PARTNERS, COUNT = 0.7, 0.3  # weights beside the job's own ratios


def judge_slices(folder: Path, *, unseen: str, utilization: bool, seed: int = 0) -> float:
    """Return the mean error of the ratios of jobs whose mixes (a quarter, drawn) or models (each in turn) are left out.

    `unseen` is mix or model. With models each counts once.
    """
    mixes = read_table(folder / "mps_mixes.csv.gz", "mps_mixes.csv.gz").stripped()
    models, batches = np.array(mixes.text("model"), dtype=object), mixes.text("batch_size")
    features, truth = (
        _features(mixes, _alone(folder, models, batches) if utilization else None),
        _columns(mixes, SLICES),
    )
    real = models != FILLER
    if unseen == "model":
        return float(
            np.mean([_error(features, truth, real, real & (models == name)) for name in np.unique(models[real])])
        )
    mix = np.array(mixes.text("mix"))
    names = np.unique(mix)
    drawn = np.random.default_rng(seed).permutation(len(names))[: len(names) // 4]
    return _error(features, truth, real, real & np.isin(mix, names[drawn]))


def _columns(table: InputTable, names: tuple[str, ...]) -> Floats:
    return np.array([table.text(name) for name in names], dtype=float).T


def _features(mixes: InputTable, utilization: Floats | None) -> Floats:
    own = _columns(mixes, SHARED)
    together = own.reshape(-1, SLOTS, len(SHARED))
    partners = (together.sum(axis=1, keepdims=True) - together) / (SLOTS - 1)
    jobs = _columns(mixes, ("jobs",)) / SLOTS
    known = [own, PARTNERS * partners.reshape(own.shape), COUNT * jobs]
    return np.concatenate(known if utilization is None else [*known, utilization], axis=1)


def _alone(folder: Path, models: Array, batches: Sequence[str]) -> Floats:
    """Return the shares of time for which the accelerator and its memory are busy with each job alone, (row, 2)."""
    table = read_table(folder / "alone.csv", "alone.csv").stripped()
    keys = zip(table.text("model"), table.text("batch_size"), strict=True)
    busy = dict(zip(keys, _columns(table, ("sm_util_pct", "mem_util_pct")) / 100, strict=True))
    return np.array([busy.get(key, np.zeros(2)) for key in zip(models, batches, strict=True)])


def _error(features: Floats, truth: Floats, real: Bools, hidden: Bools) -> float:
    known, values, off = features[real & ~hidden], truth[real & ~hidden], list[Floats]()
    for row, right in zip(features[hidden], truth[hidden], strict=True):
        near = np.argpartition(np.square(known - row).sum(axis=1), NEIGHBOURS)[:NEIGHBOURS]
        off.append(np.abs(np.median(values[near], axis=0) - right))
    return float(np.mean(off))
