"""Whether an import can be played as it was: what the schedule as it was refuses, known before a command is advised."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eunomia.history.imported_files import Imported
from eunomia.model.arrays import Floats, Ints
from eunomia.runs.as_it_was import MOST_BEYOND


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
    duration_s = trace.duration_s * np.array(
        [imported.speeds[imported.reference_type] / imported.speeds[kind] for kind in trace.ran_on]
    )
    for kind, most in capacity.items():
        own = np.array([name == kind for name in trace.ran_on], dtype=np.bool_)
        part = _beyond(trace.started_s[own], duration_s[own], trace.scale_factor[own], most)
        if part > MOST_BEYOND:
            return f"{100 * part:.0f} % of the time that jobs held {kind} is beyond the {most:,} of the cluster"
    return ""


def _beyond(start_s: Floats, duration_s: Floats, width: Ints, capacity: int) -> float:
    """Return the fraction of accelerator-time that is beyond a capacity."""
    at = np.concatenate([start_s, start_s + duration_s])
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate([width, -width])[order])
    length = np.diff(at[order], append=at.max(initial=0.0))
    held = float((level * length).sum())
    return float((np.maximum(level - capacity, 0) * length).sum()) / held if held > 0 else 0.0
