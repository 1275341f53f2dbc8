"""How fast one accelerator type is beside another for a typical job, for histories that do not say what jobs train."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eunomia.throughputs import analytic
from eunomia.throughputs.catalogue import accelerators, find
from eunomia.throughputs.job_mix import mix_of
from eunomia.throughputs.job_type_facts import job_types

REFERENCE = "v100"
DIGITS = 3


def relative_speeds(types: Iterable[str], mix: str = "mix:default") -> dict[str, float]:
    """Return the speed of each type that the catalogue has, relative to a v100: the median over the jobs of a mix.

    The analytic model's rates of one accelerator, as if memory always sufficed. Raises InvalidInput for an unknown mix.
    """
    jobs = [job_types()[name] for name, _ in mix_of(mix).share_by_job_type]
    reference = accelerators()[REFERENCE]
    base = np.array([analytic.unlimited_rate(job, reference, 1) for job in jobs])
    speeds = {}
    for name in types:
        accelerator = find(name)
        if accelerator is not None:
            rates = np.array([analytic.unlimited_rate(job, accelerator, 1) for job in jobs])
            speeds[name] = float(f"{float(np.median(rates / base)):.{DIGITS}g}")
    return speeds
