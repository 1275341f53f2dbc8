"""Runs of the parts of a gang (pods, tasks), read as one run of the gang with the same accelerator-time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eunomia.traces.sacct_clock import CLOCK_S

Spans: TypeAlias = "tuple[tuple[float, float], ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRun:
    """The runs of a job's parts, read as one run of a gang with the same accelerator-time."""

    started: float
    ended: float
    ran_s: float
    width: float  # most accelerators that were held at the same time
    is_uneven: bool  # the width changed while it ran
    pauses: Spans = ()  # seconds from the start in which nothing ran


def one_run(spans: Sequence[tuple[float, float, float]]) -> GangRun:
    """Return (start, end, width) of parts as one run: as wide as they were together, and of their accelerator-time.

    Where they ran without a break, it starts with the first of them, and ends when its accelerator-time is used.
    """
    if len(spans) == 1:
        start, end, size = spans[0]
        return GangRun(started=start, ended=end, ran_s=end - start, width=size, is_uneven=False)
    width = most_at_once((start, max(end, start + 1e-3), size) for start, end, size in spans)
    held_s = sum((end - start) * size for start, end, size in spans)
    busy = busy_s((start, end) for start, end, _ in spans)
    first, last = min(start for start, _, _ in spans), max(end for _, end, _ in spans)
    is_uneven = abs(busy * width - held_s) > 1e-9 * max(1.0, held_s)
    ran_s = held_s / width if is_uneven else busy
    whole = last - first <= busy + CLOCK_S
    ended = first + ran_s if is_uneven and whole else last
    pauses = () if whole else _gaps(spans)
    return GangRun(started=first, ended=ended, ran_s=ran_s, width=width, is_uneven=is_uneven, pauses=pauses)


def _gaps(spans: Sequence[tuple[float, float, float]]) -> Spans:
    """Return the times between parts in which none ran, in seconds from the first start; tiny ones do not count."""
    first = reached = min(start for start, _, _ in spans)
    gaps = []
    for start, end, _ in sorted(spans):
        if start > reached + CLOCK_S:
            gaps.append((reached - first, start - first))
        reached = max(reached, end)
    return tuple(gap for gap in gaps if gap[0] > 0)


def most_at_once(intervals: Iterable[tuple[float, float, float]]) -> float:
    """Return the largest sum of the widths of intervals that last at the same time."""
    changes = [(at_s, k, k * width) for start, end, width in intervals for at_s, k in ((start, 1), (end, -1))]
    level = most = 0.0
    for _, _, change in sorted(changes):  # what ends at an instant is given back first
        level += change
        most = max(most, level)
    return most


def busy_s(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the seconds in which at least one of these intervals lasts."""
    total, reached = 0.0, -np.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return float(total)
