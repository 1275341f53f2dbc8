"""What a scheduler has learnt of throughputs, in words and as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.core.belief import Belief
from eunomia.throughputs.estimators.calibration import CalibratedRate
from eunomia.throughputs.estimators.learnt_throughputs import MOST_FAILED, LearntThroughputs


def describe_throughput(belief: Belief, job_type: str, size: int) -> str | None:
    """Return what is believed of a gang's speed and what that rests on, after "it runs at"; None before it is learnt.

    For example "2 steps/s on v100, measured over 60 s; 4.1 on k80, estimated".
    """
    found = belief.learnt.get((job_type, size))
    if found is None:
        return None
    said = list[str]()
    for j in np.flatnonzero(found.rates > 0).tolist():
        on = f"{found.rates[j]:,.3g}{'' if said else ' steps/s'} on {belief.speeds.types[j]}"
        basis = "to be tried at the upper end of its interval" if found.tried[j] else "estimated"
        if found.failed[j] >= MOST_FAILED:
            basis = f"estimated, not tried any more after {MOST_FAILED} starts without progress"
        said.append(f"{on}, {f'measured over {found.measured_s[j]:,.0f} s' if found.measured_s[j] > 0 else basis}")
    return "; ".join(said) or None


def learnt_rows(learnt: LearntThroughputs, job_types: Sequence[str] = ()) -> list[CalibratedRate]:
    """Return a row for each job type and size that was asked about, and of each accelerator type.

    Those of `job_types` that no job asked about have one of a single accelerator.
    """
    for name in job_types:
        if not learnt.sizes(name):
            learnt.rates(name, 1)
    rows = list[CalibratedRate]()
    for job_type, size in learnt.known():
        found = learnt.rates(job_type, size)
        columns = (each.tolist() for each in (found.median, found.low, found.high, found.measured_s > 0))
        for name, *values in zip(learnt.types, *columns, strict=True):
            rows.append(CalibratedRate(name, job_type, size, *values))
    return rows
