"""Larger gangs of MLPerf Training from smaller ones: the growth of throughput beside a power law."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from eunomia.inputs.open_table import read_table
from eunomia.model import elementary
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80
from eunomia.throughputs.estimators.gang_growth import GangGrowth, common_growth
from eunomia_reproduction.type_transfer_data import mlperf_throughputs

NOISE = 0.01  # variance of the logarithm: systems of one type and count differ by a factor of 1.18 in the median


@dataclass(frozen=True, slots=True)
class CountScores:
    """Relative errors of the throughput at a count, by the two counts before it."""

    power_law: float  # median
    median: float
    mean: float
    p90: float
    coverage80: float
    cases: int


def judge_counts(folder: Path, *, other_types: bool) -> CountScores:
    """Estimate each benchmark's throughput at every third or later count of a type from the two counts before.

    With `other_types` the benchmark is known on other types, at all their counts; else it is left out altogether. What
    is common to all benchmarks is learnt from the others.
    """
    table = read_table(folder / "runs.csv.gz", "runs.csv.gz").stripped()
    found = {key: float(np.median(each)) for key, each in mlperf_throughputs(table).items()}
    benches, types = (sorted({key[axis] for key in found}) for axis in (0, 1))
    counts = sorted({count for _, _, count in found})
    jobs: list[dict[tuple[int, int], float]] = [{} for _ in benches]
    for (bench, type, count), rate in found.items():
        jobs[benches.index(bench)][types.index(type), count] = elementary.log(rate)
    naive, errors, inside = list[float](), list[float](), list[bool]()
    for place, measured in enumerate(jobs):
        common = common_growth(len(types), counts, jobs[:place] + jobs[place + 1 :])
        ordered = sorted(measured)
        for (one, two), (_, three) in pairwise(pairwise(ordered)):
            if one[0] != three[0]:
                continue
            known = {key: value for key, value in measured.items() if key in (one, two)}
            known |= {key: value for key, value in measured.items() if other_types and key[0] != three[0]}
            mean, variance = GangGrowth(counts, known, common, NOISE).between(three[0], two[1], three[1])
            miss, doublings = measured[three] - measured[two], elementary.log2(three[1] / two[1])
            slope = (measured[two] - measured[one]) / elementary.log2(two[1] / one[1])
            naive.append(abs(elementary.exp(slope * doublings - miss) - 1.0))
            errors.append(abs(elementary.exp(mean - miss) - 1.0))
            inside.append(abs(mean - miss) <= GAUSSIAN_80 * float(np.sqrt(variance + 2.0 * NOISE)))
    return CountScores(
        float(np.median(naive)), float(np.median(errors)), float(np.mean(errors)), float(np.quantile(errors, 0.9)),
        float(np.mean(inside)), len(errors),
    )  # fmt: skip
