"""Normalised throughputs of pairs: what is left of a job's speed beside each partner on each accelerator type."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from eunomia.inputs.problems import Problems
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.throughputs.measured_table import Measurements

BATCH = re.compile(r"(.+) \(batch size ([1-9][0-9]*)\)")
UNIT_FACTOR = 300.0  # rates that differ from those of the same job on other types by more are in another unit
SPREAD = "_unconsolidated"


@dataclass(frozen=True, slots=True, eq=False)
class JobFeatures:
    """What is known of job types before any pair is measured. Axes: job, and accelerator type where there are two."""

    family: Ints  # (job,) jobs of one model have one number
    log2_batch: Floats  # (job,) 0 where the name has no batch size
    log_speedup: Floats  # (job, type) logarithm of the speed alone over the job's own geometric mean


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Measured pairs of jobs of one accelerator each, as fractions of their speeds alone.

    `kept[i, w, k]` is the rate of job i beside job k on type w over its rate alone there: 0 = the pair does not fit,
    nan = not measured.
    """

    name: str
    types: tuple[str, ...]  # sorted
    job_types: tuple[str, ...]
    alone: Floats  # (job, type) steps/s
    kept: Floats  # (job, type, partner)

    @classmethod
    def of(cls, measurements: Measurements) -> PairTable:
        """Build the table of the consolidated types. Raises InvalidInput where no estimate could be judged on it."""
        problems = Problems(measurements.name)
        types = tuple(sorted(each for each in measurements.types if not each.endswith(SPREAD)))
        single = {(type, job): rate for (type, job, size), rate in measurements.alone.items() if size == 1}
        named = dict.fromkeys(job for type, job in single if type in types)
        everywhere = tuple(job for job in named if all(single.get((type, job), 0.0) > 0 for type in types))
        alone = np.array([[single[type, job] for type in types] for job in everywhere]).reshape(-1, len(types))
        if len(types) < 2:
            fix = "give a table with two accelerator types or more"
            problems.add("nothing can be learnt from another type in a table with one", fix, column="type")
        elif len(everywhere) < 2:
            fix = "give measurements of two job types or more, alone and beside each other"
            problems.add("fewer than two job types of one accelerator run on every type", fix, column="job_type")
        else:
            _refuse_other_units(types, everywhere, alone, problems)
        problems.raise_if_any()
        kept = np.full((len(everywhere), len(types), len(everywhere)), np.nan)
        for i, job in enumerate(everywhere):
            for w, type in enumerate(types):
                for k, partner in enumerate(everywhere):
                    rate = measurements.pairs.get((type, job, partner, 1))
                    if rate is not None:
                        kept[i, w, k] = min(rate / alone[i, w], 1.0)
        if np.isnan(kept).all():
            problems.add("no two jobs were measured together", "give rows with partner_job_type")
            problems.raise_if_any()
        return cls(measurements.name, types, everywhere, alone, kept)

    @property
    def features(self) -> JobFeatures:
        """The facts in the names of the job types and in their speeds alone."""
        return features_of(self.job_types, self.alone)


def features_of(job_types: tuple[str, ...], alone: Floats) -> JobFeatures:
    """Return the features of job types with these speeds alone, (job, type), all above 0."""
    families, batches = zip(*(split_name(name) for name in job_types), strict=True)
    number = {family: m for m, family in enumerate(dict.fromkeys(families))}
    logs = elementary.log(alone)
    return JobFeatures(
        np.array([number[family] for family in families]),
        elementary.log2(np.array(batches, dtype=float)),
        np.asarray(logs - logs.mean(axis=1, keepdims=True)),
    )


def split_name(job_type: str) -> tuple[str, int]:
    """Return family and batch size of a job type; 1 where its name has none."""
    match = BATCH.fullmatch(job_type)
    return (match[1], int(match[2])) if match else (job_type, 1)


def _refuse_other_units(types: tuple[str, ...], job_types: tuple[str, ...], alone: Floats, problems: Problems) -> None:
    """Note rates that are far from those of the same job on other types, as those of other jobs are not."""
    logs = elementary.log(alone)
    level = logs - np.median(logs, axis=0)  # beside the other jobs on that type
    for m, job in enumerate(job_types):
        w = int(np.argmax(np.round(np.abs(level[m]), 9)))
        off = abs(float(level[m, w] - np.median(np.delete(level[m], w))))
        if off > elementary.log(UNIT_FACTOR):
            rule = (
                f"the rate on {types[w]} is a factor of {elementary.exp(off):,.0f} off the same job's on other types: "
                "is it in another unit?"
            )
            fix, column = "give all rates in steps/s", f"steps_per_s of {job}"
            problems.add(rule, fix, column=column, value=f"{alone[m, w]:g}")
