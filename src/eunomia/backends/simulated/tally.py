"""What each job's time on its seats was good for: columns of `gangs.GANG` that the compiled world keeps.

The plain world knows no slowdowns by place or by neighbours; what it loses goes to starts, restores, partners, undone
work, and seats on which the steps of a lease are done. The formulas are those of `account`.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array
from eunomia.model.losses import HELD_FOR, Losses

KEPT, GAVE_UP, CANCELLED = 0, 1, 2  # its work counts, or it failed for good, or nobody wants it any more
DUST = 1e-9  # of a time: what is less is the rounding of sums

TALLY = [
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
    ("fate", np.int8),
]


@kernel(allocates=False, forceinline=True)
def open_tally(gang: Array, at: float) -> None:
    """A gang has seats from now on, and works from `since` on."""
    gang["mark"], gang["opened"], gang["base"] = at, gang["since"], gang["done"]
    gang["first"] = not gang["ran"]


@kernel(allocates=False, forceinline=True)
def tally(gang: Array, at: float, alone: float) -> None:
    """Account for its seats up to now. Its rate and partner were the same all the while; `alone` is its rate alone."""
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
    if idle > DUST * at:
        gang["standing"] += idle * seats
    gang["mark"], gang["base"] = at, gang["done"]


@kernel(allocates=False, forceinline=True)
def undo(gang: Array, steps: float, alone: float) -> None:
    """So many steps have to be done again."""
    lost = steps * gang["size"] / alone
    gang["useful"] -= lost
    gang["rolled_back"] += lost


def losses_of(gangs: Array) -> Losses:
    """Return the sums over all jobs."""
    useful, fate = gangs["useful"], gangs["fate"]
    lost = dict.fromkeys(HELD_FOR, 0.0)
    for what in ("start", "restore", "sharing", "rolled_back", "standing"):
        lost[what] = float(gangs[what].sum())
    lost["failed_jobs"] = float(useful[fate == GAVE_UP].sum())
    lost["cancelled_jobs"] = float(useful[fate == CANCELLED].sum())
    return Losses(float(useful[fate == KEPT].sum()), lost)
