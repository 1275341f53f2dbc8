"""Schedulers of kernels with counters that come late."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia_reproduction.symphony.decisions import Late
from eunomia_reproduction.symphony.schedulers import EarliestEnd, play
from eunomia_reproduction.symphony.world import KernelDecision, KernelMoment, draw_workload


class Reader:
    """Decides as Graphene does, and keeps the counters that it read and what had ended."""

    def __init__(self) -> None:
        self.read: list[Floats] = []
        self.ends = 0
        self._inner = EarliestEnd(by_path=True)

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Return its decision."""
        self.read.append(moment.counters.readings)
        return self._inner.handle(moment)

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Count it."""
        self.ends += 1


def test_a_late_scheduler_has_the_counters_of_so_many_decisions_before_and_all_else_at_once() -> None:
    work = draw_workload(np.random.default_rng(3), tasks=12, load=1.0)
    now, then = Reader(), Reader()
    on_time, late = play(work, now, 3), play(work, Late(then, 2), 3)
    assert (on_time.end == late.end).all() and now.ends == then.ends > 0  # Graphene reads no counters
    assert len(now.read) == len(then.read) > 5
    for place, found in enumerate(then.read):
        assert (found == now.read[max(place - 2, 0)]).all()
