"""Where a cluster's accelerator-seconds went: to work that stays, or lost, and to what.

    capacity · time = useful + Σ lost        in [first submission, end of the run]

What seats in use were lost to, the world says (`model.losses`). Seats that nobody held are told apart here: nobody
waited; somebody waited, but every gang was wider than what was free of the type; or a gang would have fitted and was
held back, by the policy's order, by a reservation, or by a round that had not ended. Where time flows without seats,
who receives a part of its time waits for the rest, and any part of an accelerator would be of use to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.entitlement import demand_of
from eunomia.metrics.step_functions import combined, summed
from eunomia.model.arrays import Floats
from eunomia.model.losses import HELD_FOR, Losses

IDLE_BY = ("no_demand", "fragmentation", "held_back")
OUT_OF_SERVICE = "out_of_service"
LOST = (*HELD_FOR, *IDLE_BY, OUT_OF_SERVICE)
Curve = tuple[Floats, Floats]  # times, and the value from each on; before the first of them as said
_ROUNDING = 1e-6  # of what is asked for: whoever misses no more than that, by a solver's rounding, waits for nothing


def name_of(what: str) -> str:
    """Return the name in summary.json."""
    return f"lost_{what}_accelerator_s"


def losses_of(heard: MetricsCollector, losses: Losses | None) -> dict[str, float | None]:
    """Return the numbers of summary.json for a run that is over; those that a world keeps no account of are None."""
    types = range(len(heard.topology.types))
    begin = min((job.submitted for job in heard.jobs), default=0.0)
    idle = idle_by_cause(
        heard.topology.capacity(),
        [heard.busy(j) for j in types],
        [heard.gone(j) for j in types],
        _least(heard),
        begin,
        max(heard.end_s, begin),
    )
    lost: dict[str, float | None] = {**(losses.lost if losses else dict.fromkeys(HELD_FOR)), **idle}
    return {"useful_accelerator_s": losses.useful if losses else None, **{name_of(what): lost[what] for what in LOST}}


def _least(heard: MetricsCollector) -> Curve:
    """Return the narrowest gang that waits, inf = nobody; where time flows 0 if somebody does not receive all of it."""
    flows = heard.column("epoch")[~np.isnan(heard.column("first"))] == 0  # who sits does so in epochs from 1 on
    if not flows.any():
        return heard.narrowest()
    ended = heard.column("ended")
    until = np.where(np.isnan(ended), heard.end_s, ended)
    (asked,) = demand_of(heard, np.zeros(len(until), dtype=np.int64), until, 1)
    received = summed([curve for _, _, curve in heard.held()])
    return combined(lambda all, some: np.where(some < all * (1 - _ROUNDING), 0.0, np.inf), asked, received)


def idle_by_cause(
    capacity: Floats, busy: Sequence[Curve], gone: Sequence[Curve], least: Curve, begin: float, end: float
) -> dict[str, float]:
    """Return accelerator-seconds that nobody held in [begin, end], by cause, and those out of service.

    `busy` and `gone` (type,) are accelerators in use, and those added to the capacity, below 0 for lost ones; `least`
    is the narrowest gang that waits.
    """
    times = np.unique(np.concatenate([at for at, _ in (*busy, *gone, least)]))
    times = np.concatenate(([begin], times[(times > begin) & (times < end)]))
    step = np.diff(np.append(times, end))
    narrowest = _at(least, times, np.inf)
    found: Mapping[str, list[float]] = {what: [] for what in (*IDLE_BY, OUT_OF_SERVICE)}
    for j, whole in enumerate(capacity.tolist()):
        away = _at(gone[j], times, 0.0)
        free = np.maximum(whole + away - _at(busy[j], times, 0.0), 0.0)
        idle = free * step
        found[OUT_OF_SERVICE].append(float((-away * step).sum()))
        found["no_demand"].append(float(idle[np.isinf(narrowest)].sum()))
        found["fragmentation"].append(float(idle[(narrowest > free) & np.isfinite(narrowest)].sum()))
        found["held_back"].append(float(idle[narrowest <= free].sum()))
    return {what: sum(parts) for what, parts in found.items()}


def _at(curve: Curve, times: Floats, before: float) -> Floats:
    """Return the value of a step function at each time."""
    place = np.searchsorted(curve[0], times, side="right") - 1
    return np.where(place >= 0, curve[1][np.maximum(place, 0)], before)
