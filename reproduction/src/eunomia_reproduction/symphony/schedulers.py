"""Schedulers beside Symphony: Sparrow, Graphene, Paragon-like collaborative filtering, and an oracle of true loads.

All but Sparrow choose the ready task and processor with the earliest expected end; a task whose best processor is busy
waits for it. They differ in the order of tasks and in the slowdown that they expect:

    Sparrow   oldest task, a random processor that can run it
    Graphene  the task with the longest path below it, no slowdown
    Paragon   oldest task, slowdown from pairs of kernels that were seen side by side; unseen pairs by row and column
              means, as in collaborative filtering
    oracle    oldest task, the true loads, those of other tenants included
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import rounded
from eunomia_reproduction.symphony.machine import KERNELS, PROCESSORS, slowdown
from eunomia_reproduction.symphony.world import NO_OP, GraphWorkload, KernelDecision, KernelMoment, KernelWorld

WAIT = KernelDecision(NO_OP)
_SOCKET = np.array([one.socket for one in PROCESSORS])


class KernelScheduler(Protocol):
    """Decides at each moment; is given every kernel that ended."""

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Return one decision."""
        ...

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Take in how many times as slow a kernel ran, and the kernels beside it on its socket when it began."""
        ...


class Sparrow:
    """Any processor that can run the oldest task (K. Ousterhout et al., SOSP 2013, without probes of queues)."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Return one decision."""
        task, free = next((k, row) for k, row in enumerate(moment.legal) if row.any())
        return KernelDecision(int(moment.tasks[task]), int(self._rng.choice(np.flatnonzero(free))))

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Learn nothing."""


class EarliestEnd:
    """Earliest expected end; without slowdown and by path it is Graphene (R. Grandl et al., OSDI 2016), adapted."""

    def __init__(self, *, by_path: bool = False):
        self._by_path = by_path

    def expected_slowdown(self, moment: KernelMoment) -> Floats:
        """Return how many times as slow (ready, processor) would be."""
        return np.ones(moment.legal.shape)

    def handle(self, moment: KernelMoment) -> KernelDecision:
        """Return one decision."""
        slow, legal = self.expected_slowdown(moment), moment.legal
        ends = rounded(wait_s(moment) + moment.seconds * slow)
        keys = -moment.work.path_s[moment.tasks] if self._by_path else np.arange(len(moment.tasks))
        for task in np.argsort(keys, kind="stable").tolist():
            best = int(np.argmin(np.where(legal[task] | ~moment.idle, ends[task], np.inf)))
            if legal[task, best]:
                return KernelDecision(int(moment.tasks[task]), best)
        if not moment.must_act:
            return WAIT
        task = next(k for k, row in enumerate(legal) if row.any())
        return KernelDecision(int(moment.tasks[task]), int(np.argmin(np.where(legal[task], ends[task], np.inf))))

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Learn nothing."""


class Paragon(EarliestEnd):
    """Slowdowns by collaborative filtering (C. Delimitrou and C. Kozyrakis, ASPLOS 2013), simplified."""

    def __init__(self) -> None:
        super().__init__()
        self._sum = np.zeros((len(KERNELS), len(KERNELS)))
        self._count = np.zeros_like(self._sum)

    def matrix(self) -> Floats:
        """Return the expected slowdown (kernel, kernel beside it)."""
        seen = self._count > 0
        mean = self._sum.sum() / max(self._count.sum(), 1.0) if seen.any() else 1.0
        rows, columns = (
            (self._sum.sum(axis=axis) + mean) / (self._count.sum(axis=axis) + 1.0) - mean for axis in (1, 0)
        )
        guess = np.maximum(mean + rows[:, None] + columns, 1.0)
        return np.asarray((self._sum + guess) / (self._count + 1.0))

    def expected_slowdown(self, moment: KernelMoment) -> Floats:
        """Return the largest expected slowdown beside one of the kernels on the same socket."""
        matrix, found = self.matrix(), np.ones(moment.legal.shape)
        for u in np.flatnonzero(moment.running >= 0).tolist():
            beside = matrix[moment.kernel, moment.work.kernel[moment.running[u]]]
            near = (_SOCKET[u] == _SOCKET) & (np.arange(len(_SOCKET)) != u)
            found = np.maximum(found, np.where(near, beside[:, None], 1.0))
        return found

    def ended(self, kernel: int, slow: float, beside: Ints) -> None:
        """Add what was seen to the matrix."""
        for other in beside.tolist():
            self._sum[kernel, other] += slow
            self._count[kernel, other] += 1.0


class Oracle(EarliestEnd):
    """The true loads now, those of other tenants included."""

    def expected_slowdown(self, moment: KernelMoment) -> Floats:
        """Return the true slowdown (ready, processor) if nothing changed."""
        demand = moment.work.machine.demand[moment.kernel, :, moment.data]
        return slowdown(moment.load + demand, demand)


def wait_s(moment: KernelMoment) -> Floats:
    """Return the seconds until each processor (processor,) is free if nothing slows it down."""
    running = np.maximum(moment.running, 0)
    work = moment.work
    whole = work.machine.seconds[work.kernel[running], np.arange(len(running)), work.data[running]]
    with np.errstate(invalid="ignore"):
        left = np.maximum(moment.started + whole - moment.at, 1.0)
    return np.where(moment.running >= 0, left, np.where(moment.idle, 0.0, 2.0))


def play(
    work: GraphWorkload, scheduler: KernelScheduler, seed: int, *, decision_s: float = 0.0, batch: int = 1
) -> KernelWorld:
    """Run a workload to its end; `seed` is that of counters and other tenants, the others are `KernelWorld`'s."""
    world = KernelWorld(work, np.random.default_rng(seed), decision_s=decision_s, batch=batch)
    beside: dict[int, Ints] = {}
    alone = work.seconds
    reported = np.zeros(len(work.kernel), dtype=bool)
    for moment in world.moments():
        for task in np.flatnonzero(np.isfinite(world.end) & ~reported).tolist():
            reported[task] = True
            u = int(world.processor[task])
            slow = float((world.end[task] - world.begin[task]) / alone[task, u])
            scheduler.ended(int(work.kernel[task]), slow, beside.pop(task))
        decision = scheduler.handle(moment)
        world.carry_out(decision)
        if decision.task != NO_OP:  # after a reconfiguration it is decided again
            near = (moment.running >= 0) & (_SOCKET[decision.processor] == _SOCKET)
            beside[decision.task] = work.kernel[moment.running[near]]
    return world


def baselines(seed: int) -> dict[str, KernelScheduler]:
    """Return a new scheduler of each name."""
    return {
        "sparrow": Sparrow(np.random.default_rng(seed)), "graphene": EarliestEnd(by_path=True), "paragon": Paragon(),
        "oracle": Oracle(),
    }  # fmt: skip
