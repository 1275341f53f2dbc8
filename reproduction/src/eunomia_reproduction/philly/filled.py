"""The jobs that a cluster is full of when one begins to look at it, as if it had run for ever.

Of jobs that come at a steady rate those that run at a given instant are drawn with a chance in proportion to their
duration, and each has a uniformly drawn part of it still to do (the waiting-time paradox of renewal theory).
"""

from __future__ import annotations

import numpy as np

from eunomia.model.job import Job
from eunomia.traces.distributions import philly
from eunomia_reproduction.philly.owners import DrawnOwners

DRAWN = 200_000  # jobs among which those that run are chosen
PREFIX = "running-"  # of their names


def running_jobs(seed: int, accelerators: float, owners: DrawnOwners) -> list[Job]:
    """Return jobs that are at work at time 0 on at most so many accelerators.

    Steps are seconds, as with throughputs of 1.
    """
    rng = np.random.default_rng((seed, 1))
    sizes, durations, drawn = rng.spawn(3)
    size, duration_s = philly(sizes, durations, DRAWN)
    picked = rng.choice(DRAWN, int(accelerators), p=duration_s / duration_s.sum())
    left_s = duration_s[picked] * (1.0 - rng.random(len(picked)))
    fit = int(np.searchsorted(np.cumsum(size[picked]), accelerators, side="right"))
    owner = owners.of(size[picked[:fit]], drawn)
    return [
        Job(
            job_id=f"{PREFIX}{m}",
            sequence=m,
            total_steps=float(left_s[m]),
            scale_factor=int(size[picked[m]]),
            tenant=owner[m],
        )
        for m in range(fit)
    ]
