"""Table 2 played with quotas and waits for locality that the paper leaves open: all of them, as one table.

Quotas are not published. Two are played: the weights of ASTRAEA's artifact, and what each virtual cluster used: a high
percentile over the hours of the accelerators that its jobs ask for at a time, as an operator would set them who grants
each team what it has needed, scaled down where they add up to more than the cluster. Of the trace, which has no starts,
that is the jobs between their submission and so much later as they ran.

How long a gang waits for a better place is not published either, and is the one number that is chosen here: three tries
a level, about a quarter of an hour, fourteen and thirty are played. By Figure 4 jobs of 5 to 8 waited up to 7 10^4
minutes for one server; such plays take too long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.setup.tenants import PHILLY as WEIGHT
from eunomia.traces import Trace
from eunomia_reproduction.philly import traced
from eunomia_reproduction.philly.delays import delays
from eunomia_reproduction.philly.figure4 import waits_by_spread
from eunomia_reproduction.philly.played import DESCRIBED, NEVER, Waited
from eunomia_reproduction.table import FigureRow

PERCENTILE = 95.0
ACCELERATORS = 2490
HOUR_S = 3600.0
# tries a level, each 270 s with the pause after it
RELAX = {"a quarter of an hour": 3, "an hour": 14, "two hours": 30}
PREEMPTION = {"preemption from 90 %": DESCRIBED, "no preemption": NEVER}


class Play(NamedTuple):
    """Quotas by "weight" or by "use", tries a level, and the part of the cluster from which on jobs are preempted."""

    quotas: str
    relax: str
    preemption: str

    @property
    def name(self) -> str:
        """Return how the rows of the play are called."""
        return f"from the trace, quotas by {self.quotas}, relaxed after {self.relax}, {self.preemption}"


PLAYS = tuple(
    Play(quotas, relax, when)
    for quotas in ("weight", "use")
    for relax in RELAX
    for when in PREEMPTION
    if relax != "an hour" or PREEMPTION[when] == DESCRIBED
)


def waited(trace: Trace, play: Play) -> Waited:
    """Play the three weeks of the trace."""
    quotas = quotas_by_use(traced.owned(trace, 0)) if play.quotas == "use" else None
    return traced.waited(trace, 0, PREEMPTION[play.preemption], quotas, RELAX[play.relax])


def rows(play: Play, waited: Waited) -> list[FigureRow]:
    """Return Table 2, and for plays with preemption Figure 4, of a play."""
    found = delays([waited], play.name)
    if PREEMPTION[play.preemption] == DESCRIBED:
        found += waits_by_spread(waited.tally.first_starts, play.name)
    return found


def quotas_by_use(trace: Trace) -> dict[str, int]:
    """Return the accelerators of each virtual cluster: a percentile of what its jobs ask for at a time."""
    hours = np.arange(traced.SINCE_S, traced.UNTIL_S, HOUR_S)
    tenant = np.array(trace.tenant)
    use = {name: np.percentile(_at_work(trace, tenant == name, hours), PERCENTILE) for name in WEIGHT}
    scale = min(1.0, ACCELERATORS / max(sum(use.values()), 1.0))
    return {name: int(of * scale) for name, of in use.items()}


def _at_work(trace: Trace, mine: Floats, hours: Floats) -> Floats:
    """Return how many accelerators these jobs, (job,), ask for at each hour, (hour,)."""
    size, begin = trace.scale_factor[mine], trace.submitted_s[mine]
    end = begin + trace.duration_s[mine]
    return _upto(begin, size, hours) - _upto(end, size, hours)


def _upto(at: Floats, size: Floats, hours: Floats) -> Floats:
    """Return the sum of the sizes whose time has come at each hour, (hour,)."""
    order = np.argsort(at, kind="stable")
    total = np.concatenate(((0,), np.cumsum(size[order])))
    return np.asarray(total[np.searchsorted(at[order], hours, side="right")], dtype=float)
