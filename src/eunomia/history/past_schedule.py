"""Whether an import can be played as it was: what the schedule as it was refuses, known before a command is advised."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eunomia.history.imported_files import Imported
from eunomia.model.arrays import Floats, Ints
from eunomia.traces.accelerator_hours import MOST_BEYOND
from eunomia.traces.table import Trace


def why_no_past(imported: Imported) -> str:
    """Return why the schedule as it was cannot stand beside policies here, in a sentence; "" if it can."""
    trace = imported.trace
    if np.isnan(trace.started_s).any():
        missing = int(np.isnan(trace.started_s).sum())
        return f"{missing:,} of {len(trace):,} jobs have no start"
    capacity: Counter[str] = Counter()
    for node in imported.nodes:
        capacity[node.type] += node.accelerators
    strange = sorted(set(trace.ran_on) - capacity.keys())
    if strange:
        return (
            f"jobs ran on {', '.join(strange)}, and the cluster has {', '.join(capacity)} (--type names another type)"
        )
    slower = np.array([imported.speeds[imported.reference_type] / imported.speeds[kind] for kind in trace.ran_on])
    end_s = np.where(np.isnan(trace.ended_s), trace.started_s + trace.duration_s * slower, trace.ended_s)
    for kind, most in capacity.items():
        own = np.flatnonzero([name == kind for name in trace.ran_on])
        part = _beyond(*_changes(trace, end_s, own), most)
        if part > MOST_BEYOND:
            return f"{100 * part:.0f} % of the time that jobs held {kind} is beyond the {most:,} of the cluster"
    return ""


def _changes(trace: Trace, end_s: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """Return when these jobs take and give back accelerators, (change,), and how many; `end_s` is (job,)."""
    start_s, width = trace.started_s[rows], trace.scale_factor[rows]
    pauses = [
        (start + begin, start + end, size)
        for m, start, size in zip(rows.tolist(), start_s.tolist(), width.tolist(), strict=True)
        for begin, end in trace.pauses[m]
    ]
    begins, ends, sizes = (np.array([pause[k] for pause in pauses]) for k in range(3))
    return np.concatenate([start_s, end_s[rows], begins, ends]), np.concatenate([width, -width, -sizes, sizes])


def _beyond(at: Floats, change: Ints, capacity: int) -> float:
    """Return the fraction of accelerator-time that is beyond a capacity."""
    order = np.argsort(at, kind="stable")
    level = np.cumsum(change[order])
    length = np.diff(at[order], append=at.max(initial=0.0))
    held = float((level * length).sum())
    return float((np.maximum(level - capacity, 0) * length).sum()) / held if held > 0 else 0.0
