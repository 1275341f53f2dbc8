"""When a waiting job tries: it collects seats for a while, lets go of them, pauses, and tries again.

Times are rounded up to whole `TICK_S`, so that jobs of about the same time try together and the policy is seldom asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints

TICK_S = 30.0
NEVER = -1.0  # the end of what did not begin; runs begin at 0
REMEMBERS = {"tries": 0.0, "holding": 0.0, "phase_end": NEVER, "ticket": -1.0}


@dataclass(slots=True)
class Turns:
    """Where each job is in its turn, (job,) each; one decision moves it on."""

    tries: Floats  # turns that failed since it last began to wait
    holding: Bools  # it collects seats
    end: Floats  # of collecting or of the pause
    ticket: Floats  # whom the seats that it collected are marked for; -1 = none

    @classmethod
    def at(cls, now: float, waiting: Bools, memory: Mapping[str, Array], held: Floats, backoff_s: float) -> Turns:
        """Read the memory: who runs has no turn any more; whose time is over pauses, if it has to let go of anything.

        `held` are the tickets that seats are marked for.
        """
        tries = np.where(waiting, memory["tries"], 0.0)
        holding = waiting & (memory["holding"] > 0)
        end = np.where(waiting, memory["phase_end"], NEVER)
        late = holding & (end <= now)
        pause = np.full(len(late), NEVER)
        if late.any():
            pause[np.isin(memory["ticket"], held[held >= 0])] = tick(now + backoff_s)
        turns = cls(tries + late, holding & ~late, np.where(late, pause, end), memory["ticket"].copy())
        turns.ticket[~turns.holding] = -1
        return turns

    def due(self, now: float, waiting: Bools) -> Bools:
        """Return who may start now, (job,)."""
        return waiting & (self.holding | (self.end <= now))

    def levels(self, relax_after: int) -> Ints:
        """Return how far apart each job may sit, (job,)."""
        tries = self.tries // relax_after if relax_after else np.zeros(len(self.tries))
        return np.minimum(tries, 2).astype(np.int64)

    def begin(self, jobs: Ints, now: float, hold_s: float, backoff_s: float) -> None:
        """These jobs found no place: those whose turn has not begun collect seats from now on.

        Who may hold none has no reason to pause, so its turn takes as long as both.
        """
        fresh = jobs[~self.holding[jobs]]
        long = np.where(self.ticket[fresh] >= 0, tick(now + hold_s), tick(now + hold_s + backoff_s))
        self.holding[fresh], self.end[fresh] = True, long

    def next(self, now: float, waiting: Bools) -> float:
        """Return when the next turn ends."""
        coming = self.end[waiting & (self.end > now)]
        return float(coming.min()) if len(coming) else math.inf

    def take_ticket(self, job: int) -> float:
        """Return the number by which seats are marked for a job."""
        if self.ticket[job] < 0:
            self.ticket[job] = self.ticket.max(initial=-1.0) + 1
        return float(self.ticket[job])

    def memory(self, waits: Bools) -> dict[str, Array]:
        """Return the columns to keep; who waits no more begins anew."""
        self.tries[~waits], self.holding[~waits], self.end[~waits], self.ticket[~waits] = 0.0, False, NEVER, -1.0
        return {
            "tries": self.tries,
            "holding": self.holding.astype(float),
            "phase_end": self.end,
            "ticket": self.ticket,
        }


def tick(at: float) -> float:
    """Return the next whole tick."""
    return math.ceil(at / TICK_S) * TICK_S
