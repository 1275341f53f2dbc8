"""Apps: sets of jobs with one goal, such as the trials of one search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class PausedJobs:
    """Jobs of the apps that their users let rest: no row of a view is theirs. Axes: paused job p, type j."""

    app: Ints  # (p,) rows of `Apps`
    scale_factor: Ints  # (p,) accelerators
    remaining: Floats  # (p,) steps
    total: Floats  # (p,) steps
    throughput: Floats  # (p, j) steps/s of the whole gang

    @classmethod
    def nobody(cls, types: int) -> PausedJobs:
        """Return what is said where no job rests."""
        none, steps = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(none, none, steps, steps, np.zeros((0, types)))


@dataclass(frozen=True, slots=True)
class Apps:
    """The apps of the jobs in a view; a job that names none is an app of its own."""

    names: tuple[str, ...]
    submitted: Floats  # (app,) seconds: its first job's
    mean_rivals: Floats  # (app,) apps alive, itself included, on average over its life so far; at least 1
    service: Floats  # (app,) accelerator-seconds that its jobs attained that have ended
    paused: PausedJobs
