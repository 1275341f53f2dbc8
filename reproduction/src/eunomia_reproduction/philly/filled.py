"""The jobs that a cluster is full of when one begins to look at it, as if it had run for ever.

Of jobs that come at a steady rate those that run at a given instant are drawn with a chance in proportion to their
run time, and each has a uniformly drawn part of it still to do (the waiting-time paradox of renewal theory).
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.traces.distributions import philly, philly_ran
from eunomia_reproduction.philly.owners import DrawnOwners

DRAWN = 200_000  # jobs among which those that run are chosen
PREFIX = "running-"  # of their names


def ended(rng: np.random.Generator, jobs: int) -> tuple[Ints, Floats]:
    """Return (job,) accelerators and (job,) seconds until each job passed, failed for good or was killed."""
    sizes, durations, until_then = rng.spawn(3)
    size, passed_s = philly(sizes, durations, jobs)
    ran_s = philly_ran(size, until_then)
    return size, np.where(ran_s > 0, ran_s, passed_s)


def running_jobs(seed: int, accelerators: float, owners: DrawnOwners) -> list[Job]:
    """Return jobs that are at work at time 0 on at most so many accelerators.

    Steps are seconds, as with throughputs of 1.
    """
    rng = np.random.default_rng((seed, 1))
    jobs, drawn = rng.spawn(2)
    size, ran_s = ended(jobs, DRAWN)
    picked = rng.choice(DRAWN, int(accelerators), p=ran_s / ran_s.sum())
    left_s = ran_s[picked] * (1.0 - rng.random(len(picked)))
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
