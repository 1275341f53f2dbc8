"""Two ways to do the same thing, measured one after the other in the same minute."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

REPEATS = 3
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


def on_one_thread() -> None:
    """Start this process again with libraries held to one thread, unless they are; they look when they are loaded.

    Kernels are compiled at their first call: what is measured is compiled code, however short the warm-up.
    """
    if any(os.environ.get(name) != "1" for name in _THREADS):
        wanted = {**dict.fromkeys(_THREADS, "1"), "EUNOMIA_KERNELS": "compiled"}
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **wanted})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Medians of one case, in seconds of CPU time; `ratio` = other_s / ours_s, above 1 where ours is faster."""

    name: str
    n: int  # size of the case: jobs, nodes, or 1
    ours_s: float
    other_s: float
    other: str  # what the other way is

    @property
    def ratio(self) -> float:
        """Return how many times as long the other way takes."""
        return self.other_s / self.ours_s

    def as_dict(self) -> dict[str, Any]:
        """Return the object of bench.json."""
        return {
            "name": self.name,
            "n": self.n,
            "ours_s": self.ours_s,
            "other_s": self.other_s,
            "ratio": self.ratio,
            "other": self.other,
        }


class Disagreement(RuntimeError):
    """The two ways gave different answers, so their times say nothing."""


def compare(
    name: str,
    n: int,
    ours: Callable[[], object],
    other: Callable[[], object],
    what: str,
    *,
    clock: Callable[[], float] = time.process_time,
    repeats: int = REPEATS,
) -> Comparison:
    """Measure both, by turns so that a busy minute hits both alike. The caller has warmed both up."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for way, spent in zip((ours, other), times, strict=True):
            before = clock()
            way()
            spent.append(clock() - before)
    ours_s, other_s = (statistics.median(spent) for spent in times)
    return Comparison(name=name, n=n, ours_s=ours_s, other_s=other_s, other=what)


def demand_equal(holds: object, name: str, n: int) -> None:
    """Raise Disagreement unless both ways gave the same answer."""
    if not holds:
        raise Disagreement(f"{name} at {n}: ours and the other way disagree")
