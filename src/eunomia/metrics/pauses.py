"""When jobs were paused by their users: neither running nor waiting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats, Ints


class PauseIntervals(NamedTuple):
    """Intervals in which jobs were paused."""

    job: Ints  # (pause,) row
    begin: Floats  # (pause,) seconds
    end: Floats  # (pause,)


class Pauses:
    """Records the pauses of jobs, by row."""

    def __init__(self) -> None:
        self._ended: list[tuple[int, float, float]] = []
        self._since: dict[int, float] = {}  # of jobs that are paused now

    def __contains__(self, row: int) -> bool:
        return row in self._since

    def begin(self, row: int, at: float) -> None:
        """Begin a pause."""
        self._since[row] = at

    def end(self, row: int, at: float) -> None:
        """End a pause as the job is resumed or ends; does nothing if it is not paused."""
        if row in self._since:
            self._ended.append((row, self._since.pop(row), at))

    def intervals(self, end_s: float) -> PauseIntervals:
        """Return all pauses of a run that ended at `end_s`."""
        open_ = [(row, since, max(end_s, since)) for row, since in self._since.items()]
        columns = np.array([*self._ended, *open_], dtype=float).reshape(-1, 3).T
        return PauseIntervals(columns[0].astype(np.int64), columns[1], columns[2])

    def seconds(self, end_s: float, jobs: int) -> Floats:
        """Return the total paused time of each job, (job,), in a run that ended at `end_s`."""
        pauses = self.intervals(end_s)
        return np.bincount(pauses.job, pauses.end - pauses.begin, jobs).astype(float)
