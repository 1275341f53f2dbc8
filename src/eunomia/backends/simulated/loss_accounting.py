"""What accelerator-seconds that gangs hold are used for: useful work, or one of the named losses.

A gang of z accelerators works for dt seconds on s seats (half of those that it shares with a partner); its speed is k
of its speed alone because of its partner, 1/P because of its placement, 1/N because of its neighbours:

    useful      z · dt · k / (P N)
    sharing     dt · (s − z k)
    placement   z · dt · k (1 − 1/P)
    neighbours  z · dt · k / P · (1 − 1/N)

`LossAccount` keeps these sums gang by gang for the detailed simulation. The plain simulation knows neither placement
nor neighbours; its kernels keep columns (`LOSS_COLUMNS`) in each job's row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array
from eunomia.model.held_time import LOST_TIME_REASONS, HeldTime

KEPT, GAVE_UP, CANCELLED = 0, 1, 2  # outcome of a job: its work counts, it failed for good, it was cancelled
TOLERANCE = 1e-9  # of a time: differences below this are rounding

LOSS_COLUMNS = [
    ("mark", np.float64),  # its seats are accounted for up to then
    ("base", np.float64),  # steps done up to `mark`
    ("opened", np.float64),  # when it began to work on these seats
    ("useful", np.float64),  # accelerator-seconds, as all that follow
    ("start", np.float64),
    ("restore", np.float64),
    ("sharing", np.float64),
    ("rolled_back", np.float64),
    ("standing", np.float64),
    ("first", np.bool_),  # it never ran before it had these seats
    ("saved", np.bool_),  # it wrote a checkpoint when it last left its seats
    ("outcome", np.int8),
]


@kernel(allocates=False, forceinline=True)
def open_span(gang: Array, at: float) -> None:
    """Begin a span: a gang has seats from now on, and works from `since` on."""
    gang["mark"], gang["opened"], gang["base"] = at, gang["since"], gang["done"]
    gang["first"] = not gang["ran"]


@kernel(allocates=False, forceinline=True)
def close_span(gang: Array, at: float, alone: float) -> None:
    """Account for the seats up to now, over which rate and partner were constant; `alone` is the rate alone."""
    seats = gang["size"] * (0.5 if gang["mate"] >= 0 else 1.0)
    begin = min(max(float(gang["opened"]), float(gang["mark"])), at)
    opening = (begin - gang["mark"]) * seats
    if gang["first"]:
        gang["start"] += opening
    else:
        gang["restore"] += opening
    steps = gang["done"] - gang["base"]
    worked, useful = steps / gang["rate"], steps * gang["size"] / alone
    gang["useful"] += useful
    gang["sharing"] += worked * seats - useful
    idle = at - begin - worked
    if idle > TOLERANCE * at:
        gang["standing"] += idle * seats
    gang["mark"], gang["base"] = at, gang["done"]


@kernel(allocates=False, forceinline=True)
def undo(gang: Array, steps: float, alone: float) -> None:
    """Count steps that have to be done again."""
    lost = steps * gang["size"] / alone
    gang["useful"] -= lost
    gang["rolled_back"] += lost


def total_held_time(gangs: Array) -> HeldTime:
    """Return the sums over all jobs."""
    useful, outcome = gangs["useful"], gangs["outcome"]
    lost = dict.fromkeys(LOST_TIME_REASONS, 0.0)
    for what in ("start", "restore", "sharing", "rolled_back", "standing"):
        lost[what] = float(gangs[what].sum())
    lost["failed_jobs"] = float(useful[outcome == GAVE_UP].sum())
    lost["cancelled_jobs"] = float(useful[outcome == CANCELLED].sum())
    return HeldTime(float(useful[outcome == KEPT].sum()), lost)


@dataclass(slots=True)
class LeaseSpan:
    """The factors of the formulas above: z, s, k, P and N, constant while nothing around the gang changes."""

    size: int
    seats: float
    kept: float = 1.0
    place: float = 1.0
    near: float = 1.0


@dataclass(slots=True)
class LossAccount:
    """Sums of accelerator-seconds by loss, and each job's useful ones so far."""

    worth: list[float]  # (job,)
    lost: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LOST_TIME_REASONS, 0.0))

    def work(self, job: int, lease: LeaseSpan, seconds: float) -> None:
        """Split a span of work by the formulas above."""
        whole = lease.size * seconds
        kept = whole * lease.kept
        placed = kept / lease.place
        useful = placed / lease.near
        self.lost["sharing"] += lease.seats * seconds - kept
        self.lost["placement"] += kept - placed
        self.lost["neighbours"] += placed - useful
        self.worth[job] += useful

    def waste(self, what: str, accelerator_s: float) -> None:
        """Count seats that were held without work."""
        self.lost[what] += accelerator_s

    def undo(self, job: int, what: str, accelerator_s: float) -> None:
        """Count useful work as lost."""
        self.worth[job] -= accelerator_s
        self.lost[what] += accelerator_s

    def give_up(self, job: int, what: str) -> None:
        """Count all work of a job as lost."""
        self.undo(job, what, self.worth[job])

    def losses(self) -> HeldTime:
        """Return the sums so far."""
        return HeldTime(sum(self.worth), dict(self.lost))
