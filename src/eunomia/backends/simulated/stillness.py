"""When a run is over though something always goes on: nobody can be seated any more, or nobody gets anywhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model.arrays import Floats, Ints

MOST = 10_000  # moments that are waited for in vain while some machine or other is away
MOST_ASKED = 1_000  # and while all are there, and the scheduler wants to be woken
LOOK = 5_000  # moments between two looks at what was done
_STARTS = "jobs were started and stopped, and none got any further; a restart may cost more than a lease lasts."

Look = Callable[[], tuple[Floats, Ints]]


class Stillness:
    """Looks for runs that would never end, once no job is to come. `told` says why one was given up, if it was."""

    def __init__(self) -> None:
        self.told = ""
        self._still = self._moments = 0
        self._seen: tuple[int, Floats, Ints] | None = None

    def is_final(self, still: bool, away: int, wakes: bool) -> bool:
        """Say whether those that wait will wait for ever, after a moment.

        `still`: nobody sits and nobody is to come; `away` machines that are; `wakes`: the scheduler will be woken. Who
        is not seated with all machines there will not be with fewer, and nothing else is new.
        """
        self._still = self._still + 1 if still else 0
        most = MOST if away else MOST_ASKED if wakes else 0
        if not still or self._still < most:
            return False
        if most:
            self.told = f"The run was given up: in {most:,} moments nobody ran and none of those that wait was seated."
        return True

    def goes_nowhere(self, left: int, look: Look) -> bool:
        """Say whether nobody has got anywhere for long, though jobs start and stop.

        `left` jobs have not ended; `look` returns of each job the steps that nothing takes away, and the epoch in which
        it sits, 0 = it does not, (job,) each. Asked after every moment from which on no job is to come.
        """
        self._moments += 1
        if self._moments < LOOK:
            return False
        self._moments = 0
        before, (steps, epoch) = self._seen, look()
        self._seen = left, steps, epoch
        if before is None or before[0] != left or (steps > before[1]).any():
            return False
        if ((epoch == before[2]) & (epoch > 0)).any():  # somebody sat all the time
            return False
        self.told = f"The run was given up: in {LOOK:,} moments {_STARTS}"
        return True


def sitting(rate: Floats, epoch: Ints) -> Ints:
    """Return the epoch of who runs, 0 of who does not, (job,)."""
    return np.where(rate > 0, epoch, 0)
