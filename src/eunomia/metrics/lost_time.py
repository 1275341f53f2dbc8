"""Accelerator-seconds of a cluster: useful work, and time lost by cause.

    capacity · time = useful + Σ lost        in [first submission, end of the run]

Of held accelerators the backend says it (`model.held_time`). Idle accelerators are split here: no job waited
(no_demand); every waiting gang was wider than what was free of the type (fragmentation); or a waiting gang would have
fitted (held_back: by the policy's order, a reservation, or a round that had not ended). With shares of time instead of
seats, a job that receives a part of its time waits for the rest, and can use any part of an accelerator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.entitlement import demand_of
from eunomia.metrics.step_functions import Steps, at_times, combined, summed
from eunomia.model.arrays import Floats
from eunomia.model.held_time import LOST_TIME_REASONS, HeldTime
from eunomia.model.job_table import job_array

IDLE_BY = ("no_demand", "fragmentation", "held_back")
OUT_OF_SERVICE = "out_of_service"
LOST = (*LOST_TIME_REASONS, *IDLE_BY, OUT_OF_SERVICE)
_ROUNDING = 1e-6  # relative: a share that a solver's rounding reduces by no more than this is complete


def name_of(cause: str) -> str:
    """Return the field of summary.json."""
    return f"lost_{cause}_accelerator_s"


def lost_time_of(collector: MetricsCollector, held: HeldTime | None) -> dict[str, float | None]:
    """Return the fields of summary.json about lost time, of a run that is over; None where a backend does not count."""
    types = range(len(collector.topology.types))
    begin = float(job_array(collector.jobs, "submitted").min()) if collector.jobs else 0.0
    idle = idle_by_cause(
        collector.topology.capacity(),
        [collector.busy(j) for j in types],
        [collector.capacity_change(j) for j in types],
        _narrowest(collector),
        begin,
        max(collector.end_s, begin),
    )
    lost: dict[str, float | None] = {**(held.lost if held else dict.fromkeys(LOST_TIME_REASONS)), **idle}
    useful = held.useful if held else None
    return {"useful_accelerator_s": useful, **{name_of(cause): lost[cause] for cause in LOST}}


def _narrowest(collector: MetricsCollector) -> Steps:
    """Return the scale factor of the narrowest waiting gang, inf = none; with shares 0 if a job lacks part of its time.

    Gangs with seats have epochs from 1 on, jobs with shares have epoch 0.
    """
    has_shares = collector.column("epoch")[~np.isnan(collector.column("first"))] == 0
    if not has_shares.any():
        return collector.narrowest()
    ended = collector.column("ended")
    until = np.where(np.isnan(ended), collector.end_s, ended)
    (asked,) = demand_of(collector, np.zeros(len(until), dtype=np.int64), until, 1)
    received = summed([curve for _, _, curve in collector.held()])
    return combined(lambda all, some: np.where(some < all * (1 - _ROUNDING), 0.0, np.inf), asked, received)


def idle_by_cause(
    capacity: Floats, busy: Sequence[Steps], change: Sequence[Steps], narrowest: Steps, begin: float, end: float
) -> dict[str, float]:
    """Return idle accelerator-seconds in [begin, end] by cause, and those out of service.

    `busy` and `change` (type,) are accelerators in use and changes of the capacity, negative for lost ones; `narrowest`
    is the scale factor of the narrowest waiting gang, inf before its first step.
    """
    times = np.unique(np.concatenate([at for at, _ in (*busy, *change, narrowest)]))
    times = np.concatenate(([begin], times[(times > begin) & (times < end)]))
    step = np.diff(np.append(times, end))
    least = np.where(times >= narrowest[0][0], at_times(narrowest, times), np.inf)
    parts: Mapping[str, list[float]] = {cause: [] for cause in (*IDLE_BY, OUT_OF_SERVICE)}
    for j, total in enumerate(capacity.tolist()):
        lost = at_times(change[j], times)
        free = np.maximum(total + lost - at_times(busy[j], times), 0.0)
        idle = free * step
        parts[OUT_OF_SERVICE].append(float((-lost * step).sum()))
        parts["no_demand"].append(float(idle[np.isinf(least)].sum()))
        parts["fragmentation"].append(float(idle[(least > free) & np.isfinite(least)].sum()))
        parts["held_back"].append(float(idle[least <= free].sum()))
    return {cause: sum(seconds) for cause, seconds in parts.items()}
