"""Jobs that end once more training would hardly help: guideline of Philly's authors (section 5, on Figure 8).

Most of Philly's jobs come within 0.1 % of their lowest loss long before their last epoch. A scheduler that predicts
that could end them there. Here the prediction is perfect: the part of its steps at which each job is so near is drawn
from the published distribution over jobs that pass, and its other steps are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.job import Job
from eunomia.model.rounding import interpolate

_STREAM = 41  # of the scenario's seed
_JOBS = (0.0, 0.52, 0.62, 0.74, 0.78, 0.83, 1.0)  # part of the jobs that are near their lowest loss
_EPOCHS = (0.0, 0.1, 0.2, 1 / 3, 0.8, 0.9, 1.0)  # at this part of their epochs
_LEAST = 0.01  # part of its steps that each job does


def parts_until_convergence(jobs: int, seed: int) -> Floats:
    """Return the part of its steps after which each job is within 0.1 % of its lowest loss, (job,)."""
    draws = np.random.default_rng((seed, _STREAM)).random(jobs)
    return np.asarray(np.maximum(interpolate(draws, _JOBS, _EPOCHS), _LEAST))


def with_early_stop(jobs: Sequence[Job], seed: int) -> tuple[Job, ...]:
    """Return the jobs without the steps that would improve them by less than 0.1 %."""
    parts = parts_until_convergence(len(jobs), seed).tolist()
    return tuple(replace(job, total_steps=job.total_steps * part) for job, part in zip(jobs, parts, strict=True))
