"""When jobs rested because their users wanted it: neither running nor waiting for the cluster."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats, Ints


class PauseIntervals(NamedTuple):
    """Stretches of time in which jobs were paused."""

    job: Ints  # (rest,) row
    begin: Floats  # (rest,) seconds
    end: Floats  # (rest,)


class Pauses:
    """Who was paused, and from when to when."""

    def __init__(self) -> None:
        self._over: list[tuple[int, float, float]] = []
        self._since: dict[int, float] = {}  # of jobs that are paused now

    def __contains__(self, row: int) -> bool:
        return row in self._since

    def begin(self, row: int, at: float) -> None:
        """A job is paused."""
        self._since[row] = at

    def end(self, row: int, at: float) -> None:
        """A job goes on, or is over; nothing happens to one that is not paused."""
        if row in self._since:
            self._over.append((row, self._since.pop(row), at))

    def rests(self, end_s: float) -> PauseIntervals:
        """Return all rests of a run that ended then."""
        still = [(row, since, max(end_s, since)) for row, since in self._since.items()]
        columns = np.array([*self._over, *still], dtype=float).reshape(-1, 3).T
        return PauseIntervals(columns[0].astype(np.int64), columns[1], columns[2])

    def seconds(self, end_s: float, jobs: int) -> Floats:
        """Return how long each job was paused in all, (job,), in a run that ended then."""
        rests = self.rests(end_s)
        return np.bincount(rests.job, rests.end - rests.begin, jobs).astype(float)
