"""When a run is over though something always goes on: nobody can be seated any more, or nobody gets anywhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model.arrays import Floats, Ints

PATIENCE_S = 30 * 86_400.0  # for which nobody sits, and
MOMENTS = 1_000  # that pass meanwhile, and
OUTAGES = 10_000  # comings and goings of machines, where some machine or other is always away
STARTS = 5_000  # of gangs, after which somebody has to have got somewhere

Look = Callable[[], tuple[Floats, Ints]]


class StallDetector:
    """Looks for runs that would never end, once no job is to come. `told` says why one was given up, if it was."""

    def __init__(self) -> None:
        self.reason = ""
        self._since: float | None = None  # when somebody sat last
        self._moments = self._outages = self._away = 0
        self._starts = 0
        self._seen: tuple[int, Floats, Ints] | None = None

    def is_final(self, at: float, still: bool, away: int, wakes: bool) -> bool:
        """Say whether those that wait will wait for ever, after a moment.

        `still`: nobody sits and nobody is to come; `away` machines that are; `wakes`: the scheduler will be woken. Who
        is not seated with all machines there will not be with fewer. While something is away or to be waited for, only
        long waiting tells.
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
        self.reason = f"given up: nobody ran for {PATIENCE_S / 86_400:.0f} days, and none of those that wait was seated"
        return True

    def is_stalled(self, starts: int, left: int, look: Look) -> bool:
        """Say whether nobody has got anywhere in `STARTS` starts.

        `starts` of gangs so far; `left` jobs have not ended; `look` returns of each job the steps that nothing takes
        away, and the epoch in which it sits, 0 = it does not, (job,) each. Asked from when on no job is to come.
        """
        if starts - self._starts < STARTS:
            return False
        self._starts = starts
        before, (steps, epoch) = self._seen, look()
        self._seen = left, steps, epoch
        if before is None or before[0] != left or (steps > before[1]).any():
            return False
        if ((epoch == before[2]) & (epoch > 0)).any():  # somebody sat all the time
            return False
        self.reason = (
            f"given up: jobs were started {STARTS:,} times, and none got any further; a restart may cost more than a "
            "lease lasts"
        )
        return True


def sitting(rate: Floats, epoch: Ints) -> Ints:
    """Return the epoch of who runs, 0 of who does not, (job,)."""
    return np.where(rate > 0, epoch, 0)
