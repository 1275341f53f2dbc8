"""The jobs that apps still have before them: those of a view, then those that their users let rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.view import View


class Surviving(NamedTuple):
    """Jobs that have not ended, on machines that are there. The first `jobs` are the rows of the view. 0 s = never."""

    jobs: int
    app: Ints  # (job,)
    size: Ints  # (job,)
    usable: Floats  # (job, type) steps/s; 0 = no gang of that size can run there
    time: Floats  # (job,) seconds still needed on its fastest type
    total: Floats  # (job,) seconds needed there in all

    def longest(self, apps: int) -> Floats:
        """Return the seconds that each app needs at least, (app,): no job is done sooner than at its best."""
        longest = np.zeros(apps)
        np.maximum.at(longest, self.app, self.time)
        return longest

    def paused_work(self, apps: int) -> Floats:
        """Return the accelerator-seconds that paused jobs still need, (app,)."""
        resting = slice(self.jobs, None)
        return np.asarray(np.bincount(self.app[resting], self.time[resting] * self.size[resting], apps), dtype=float)


def surviving(view: View) -> Surviving:
    """Return the jobs of a view and those of its apps that are paused."""
    paused = view.apps.paused
    size = np.concatenate((view.scale_factor, paused.scale_factor))
    usable = np.where(size[:, None] <= view.capacity, np.concatenate((view.throughput, paused.throughput)), 0.0)
    speed = usable.max(axis=1, initial=0.0)
    steps = np.concatenate((view.remaining, paused.remaining)), np.concatenate((view.total, paused.total))
    time, total = (np.divide(some, speed, out=np.zeros(len(size)), where=speed > 0) for some in steps)
    return Surviving(view.jobs, np.concatenate((view.app, paused.app)), size, usable, time, total)
