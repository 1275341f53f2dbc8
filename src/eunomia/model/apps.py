"""Apps: sets of jobs with one goal, such as the trials of one search."""

from __future__ import annotations

from dataclasses import dataclass

from eunomia.model.arrays import Floats


@dataclass(frozen=True, slots=True)
class Apps:
    """The apps of the jobs in a view; a job that names none is an app of its own."""

    names: tuple[str, ...]
    submitted: Floats  # (app,) seconds: its first job's
    mean_rivals: Floats  # (app,) apps alive, itself included, on average over its life so far; at least 1
    service: Floats  # (app,) accelerator-seconds that its jobs attained that have ended or are paused
