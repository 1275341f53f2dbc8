"""Gavel's single jobs on another type from one measurement, by the calibration that users run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.throughputs.estimators.calibration import calibrate
from eunomia.throughputs.estimators.pair_table import SPREAD, split_name
from eunomia.throughputs.measured_table import Measurements


@dataclass(frozen=True, slots=True)
class SingleScores:
    """Relative errors over all jobs, sources and targets; the ratio is the median one of the jobs that are known."""

    ratio_mean: float
    ratio_median: float
    mean: float
    median: float
    coverage80: float
    cases: int


def judge_singles(table: Measurements, *, other_batches: bool) -> SingleScores:
    """Estimate each job of one accelerator on every other type from one measurement.

    Jobs of other families are known on all types; those of its own with other batch sizes as well with `other_batches`,
    and then the ratio is theirs.
    """
    alone = {key: rate for key, rate in table.alone.items() if key[2] == 1 and rate > 0 and not key[0].endswith(SPREAD)}
    ratios, errors, inside = list[float](), list[float](), list[bool]()
    for source, job, _ in alone:
        family = split_name(job)[0]
        own = {key for key in alone if split_name(key[1])[0] == family}
        known = {key: rate for key, rate in alone.items() if key[1] != job and (other_batches or key not in own)}
        like = {key: rate for key, rate in known.items() if not other_batches or key in own}
        if not like:
            continue
        seen = Measurements(table.name, {**known, (source, job, 1): alone[source, job, 1]}, {})
        for row in calibrate(seen, [], [1]):
            truth = alone.get((row.type, job, 1))
            if row.job_type != job or row.type == source or truth is None:
                continue
            beside = [
                alone[row.type, other, 1] / rate
                for (type, other, _), rate in like.items()
                if type == source and (row.type, other, 1) in alone
            ]
            ratios.append(abs(alone[source, job, 1] * float(np.median(beside)) / truth - 1.0))
            errors.append(abs(row.median / truth - 1.0))
            inside.append(row.low <= truth <= row.high)
    return SingleScores(
        float(np.mean(ratios)), float(np.median(ratios)), float(np.mean(errors)), float(np.median(errors)),
        float(np.mean(inside)), len(errors),
    )  # fmt: skip
