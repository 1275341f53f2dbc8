"""Detects runs that would never end: no gang can be started any more, or restarts leave no job further than before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model.arrays import Floats, Ints

PATIENCE_S = 30 * 86_400.0  # a run is over when for so long no gang ran,
MOMENTS = 1_000  # so many moments passed meanwhile,
OUTAGES = 10_000  # and so many changes of the machines away, where some machine is always away
STARTS = 5_000  # starts of gangs within which at least one job has to advance

Look = Callable[[], tuple[Floats, Ints]]


class StallDetector:
    """Detects endless runs, once all jobs were submitted. `reason` says why a run was given up, if it was."""

    def __init__(self) -> None:
        self.reason = ""
        self._since: float | None = None  # when a gang ran last
        self._moments = self._outages = self._away = 0
        self._starts = 0
        self._seen: tuple[int, Floats, Ints] | None = None

    def is_final(self, at: float, still: bool, away: int, wakes: bool) -> bool:
        """Return whether pending jobs will wait for ever, after a moment.

        `still`: no gang runs and no job is to come; `away`: machines out of service; `wakes`: a timer is set. A job
        that is not started while all machines are in service never will be. While a machine is away or a timer is set,
        only a long wait decides.
        """
        if not still:
            self._since, self._moments, self._outages = None, 0, 0
            return False
        if not (away or wakes):
            return True
        self._since = at if self._since is None else self._since
        self._moments += 1
        self._outages += away != self._away
        self._away = away
        if at - self._since < PATIENCE_S or self._moments < MOMENTS or (away and self._outages < OUTAGES):
            return False
        self.reason = f"given up: no job ran for {PATIENCE_S / 86_400:.0f} days, and no pending job was placed"
        return True

    def starts_left(self, starts: int) -> int:
        """Return after how many starts more, of `starts` so far, it has to be known whether jobs have advanced."""
        return STARTS - (starts - self._starts)

    def is_stalled(self, starts: int, left: int, look: Look) -> bool:
        """Return whether no job has advanced in `STARTS` starts.

        `starts` of gangs so far; `left` jobs have not ended; `look` returns of each job the steps that no loss can
        take, and the epoch in which it runs, 0 = not, (job,) each.
        """
        if self.reason or starts - self._starts < STARTS:
            return bool(self.reason)
        self._starts = starts
        before, (steps, epoch) = self._seen, look()
        self._seen = left, steps, epoch
        if before is None or before[0] != left or (steps > before[1]).any():
            return False
        if ((epoch == before[2]) & (epoch > 0)).any():  # a gang ran all the time
            return False
        self.reason = (
            f"given up: jobs were started {STARTS:,} times, and none got any further; a restart may cost more than a "
            "lease lasts, or preempted jobs save nothing"
        )
        return True


def running_epochs(rate: Floats, epoch: Ints) -> Ints:
    """Return the epoch of each running job, 0 of the others, (job,)."""
    return np.where(rate > 0, epoch, 0)
