"""What is believed of throughputs before they are measured during a run, and how sure that is."""

from __future__ import annotations

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.speeds import Speeds
from eunomia.scenario import Scenario
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80
from eunomia.throughputs.estimators.learnt_throughputs import (
    COMMON,
    COMMON_OF_UNKNOWN,
    NOISE,
    Doubt,
    LearntThroughputs,
)
from eunomia.throughputs.throughput_table import Throughputs
from eunomia.throughputs.unknown_job_types import WithUnknownJobTypes

ANY_SPEED = 10.0  # where every speed is 1 by definition: the end of the 80 % interval over it


def learnt_throughputs(
    scenario: Scenario, stated: Throughputs, believed: Speeds, *, real_time: bool
) -> LearntThroughputs | None:
    """Return what is learnt from during a run: `believed` at first, as sure as the intervals of `stated` and the error.

    None where the scenario does not ask for that.

    σ² of the logarithm of a rate is the sum of that of its 80 % interval, of `error`², and of that of a measurement.
    Intervals count where the truth may be anywhere in them: on real accelerators, and where it is drawn from them. What
    a job type without a row, or a source of equal speeds, says of the size of a step counts for little.
    """
    if scenario.belief.kind != "measured":
        return None
    counts = real_time or scenario.throughputs.draw
    return LearntThroughputs(believed, _doubt(stated, scenario.belief.error, counts=counts))


def _doubt(stated: Throughputs, error: float, *, counts: bool) -> Doubt:
    source = stated.source

    def doubt(job_type: str, size: int) -> tuple[Floats, float]:
        low, high = stated.interval(job_type, size)
        wide = np.divide(high, low, out=np.ones(len(low)), where=counts & (low > 0))
        deviation = elementary.log(np.maximum(wide, 1.0)) / (2.0 * GAUSSIAN_80)
        unknown = isinstance(source, WithUnknownJobTypes) and source.is_unknown(job_type)
        if counts and not source.job_types:
            deviation, unknown = np.full(len(low), elementary.log(ANY_SPEED) / GAUSSIAN_80), True
        sigma = np.sqrt(deviation * deviation + error * error + NOISE)
        return sigma, COMMON_OF_UNKNOWN if unknown else COMMON

    return doubt
