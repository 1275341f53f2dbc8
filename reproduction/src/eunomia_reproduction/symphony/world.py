"""The world of Symphony: applications are graphs of kernels, links are hidden, counters are noisy.

It lives apart from the cluster's core, which knows jobs and accelerators but no kernels. Its door is that of a backend:
`moments` yields what is known whenever something can be decided, `carry_out` applies a decision. Other tenants put
loads on memory, links and the network card that come and go (exponential times) and are only seen in counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import drawn
from eunomia_reproduction.symphony.counters import Counters, read_counters
from eunomia_reproduction.symphony.machine import (
    FPGA,
    MEMORY,
    NIC,
    PCIE,
    PROCESSORS,
    RECONFIGURE_S,
    RESOURCES,
    SOCKETS,
    STANDARD,
    Machine,
    slowdown,
)

WINDOW = 8  # ready tasks that can be seen, the oldest first
NO_OP = -1
SWITCH_S = 40.0  # mean time for which the load of other tenants stays
_KINDS = np.array([one.kind for one in PROCESSORS])


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWorkload:
    """Tasks of all applications; parents have lower rows than their children."""

    kernel: Ints  # (task,)
    data: Ints  # (task,) socket of its data
    parents: tuple[tuple[int, ...], ...]
    arrival: Floats  # (task,) seconds, of its application
    path_s: Floats  # (task,) best seconds of the longest path from here to the end
    children: tuple[tuple[int, ...], ...]
    machine: Machine = STANDARD

    @property
    def seconds(self) -> Floats:
        """Isolated seconds of each task, (task, processor); inf = no implementation."""
        return np.asarray(self.machine.seconds[self.kernel, :, self.data])

    @property
    def best_s(self) -> Floats:
        """Isolated seconds of each task on the best processor with the data near, (task,)."""
        return self.machine.best_s[self.kernel]


def draw_workload(rng: np.random.Generator, *, tasks: int, load: float, machine: Machine = STANDARD) -> GraphWorkload:
    """Draw applications of 4 to 10 tasks; at load 1 the best processors of an empty machine would be busy 60 %."""
    kernel: list[int] = []
    parents: list[tuple[int, ...]] = []
    arrival: list[float] = []
    at = 0.0
    while len(kernel) < tasks:
        size, first = int(rng.integers(4, 11)), len(kernel)
        at += float(drawn(rng.standard_exponential())) * size * 2.6 / load
        for row in range(size):
            several = int(rng.integers(1, 3))
            before = set(rng.integers(max(0, row - 3), row, several).tolist()) if row else set()
            parents.append(tuple(sorted(first + one for one in before)))
            kernel.append(int(rng.integers(len(machine.kernels))))
            arrival.append(at)
    kernel, parents, arrival = kernel[:tasks], parents[:tasks], arrival[:tasks]
    children: list[list[int]] = [[] for _ in kernel]
    path = machine.best_s[kernel]
    for row in range(tasks - 1, -1, -1):
        path[row] += max((path[child] for child in children[row]), default=0.0)
        for parent in parents[row]:
            children[parent].append(row)
    return GraphWorkload(
        kernel=np.array(kernel), data=rng.integers(SOCKETS, size=tasks), parents=tuple(parents), path_s=path,
        arrival=np.array(arrival), children=tuple(map(tuple, children)), machine=machine,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMoment:
    """What is known now. Axes: ready task in order of arrival, processor. `load` is the truth, for oracles."""

    at: float
    work: GraphWorkload
    tasks: Ints  # (ready,) rows of the workload
    ready_s: Floats  # (ready,) seconds since it could start
    kernel: Ints  # (ready,)
    data: Ints  # (ready,)
    idle: Bools  # (processor,)
    running: Ints  # (processor,) task, -1 = none
    started: Floats  # (processor,) seconds, of the task
    context: Ints  # (processor,) kernel that an FPGA is configured to, -1 = none
    unused: Bools  # (processor,) not used since it was configured
    counters: Counters
    load: Floats  # (resource,)

    @property
    def seconds(self) -> Floats:
        """Isolated seconds (ready, processor), with the reconfiguration that an FPGA needs first."""
        return np.asarray(self._alone + RECONFIGURE_S * self.reconfigures)

    @property
    def _alone(self) -> Floats:
        return np.asarray(self.work.machine.seconds[self.kernel, :, self.data])

    @property
    def reconfigures(self) -> Bools:
        """Whether choosing (ready, processor) is a reconfiguration, after which the task is ready still."""
        return np.asarray((_KINDS == FPGA) & (self.context != self.kernel[:, None]))

    @property
    def legal(self) -> Bools:
        """What can be chosen (ready, processor): it is idle, and the kernel has an implementation.

        An FPGA keeps an unused configuration while a task is ready for it: else two tasks could alternate for ever.
        """
        kept = self.unused & np.isin(self.context, self.kernel)
        return np.asarray(self.idle & np.isfinite(self._alone) & ~(self.reconfigures & kept))

    @property
    def must_act(self) -> bool:
        """Whether nothing runs: then waiting for something to end would be for ever."""
        return bool(self.idle.all())


@dataclass(frozen=True, slots=True)
class KernelDecision:
    """Run a ready task on a processor, or reconfigure the FPGA to its kernel first; `task` NO_OP = wait."""

    task: int  # row of the workload
    processor: int = -1


class KernelWorld:
    """One run of a workload. An invocation of the scheduler takes `decision_s`, and decides for `batch` tasks at most.

    Until a decision is there, kernels run on and idle processors stay idle. Decisions of one invocation that follow
    each other, without anything that happens between them, are charged once.
    """

    def __init__(
        self, work: GraphWorkload, rng: np.random.Generator, *, decision_s: float = 0.0, batch: int = 1
    ) -> None:
        self.work, self._rng, self._decision_s, self._batch = work, rng, decision_s, batch
        self._seconds, self._best_s = work.seconds, work.best_s
        self._paid = 0  # decisions of the present invocation that are still to come
        count = len(work.kernel)
        self.at = 0.0
        self.end = np.full(count, np.inf)
        self.begin = np.full(count, np.inf)
        self.ready = np.full(count, np.inf)
        self.processor = np.full(count, -1)
        self._left = np.zeros(len(PROCESSORS))  # isolated seconds of what runs
        self._running = np.full(len(PROCESSORS), -1)
        self._reconfiguring = np.zeros(len(PROCESSORS), dtype=bool)
        self._context = np.full(len(PROCESSORS), -1)
        self._unused = np.zeros(len(PROCESSORS), dtype=bool)
        self._other = np.zeros(len(RESOURCES))  # load of other tenants
        self._switch = np.zeros(len(RESOURCES))
        self._waiting = False
        self._draw_other(range(MEMORY, len(RESOURCES)))
        self._missing = np.array([len(one) for one in work.parents])
        self._queue: list[int] = []
        self._next = 0  # first task that has not arrived
        self._seen: Counters | None = None
        self._arrive()

    @property
    def response(self) -> Floats:
        """The seconds of each task from when it could start to its end, over those alone on the best processor."""
        return np.asarray((self.end - self.ready) / self._best_s)

    def moments(self) -> Iterator[KernelMoment]:
        """Yield every moment at which something can be decided; one decision is carried out before the next."""
        while np.isinf(self.end).any():
            if not self._waiting:
                moment = self._moment()
                if moment.legal.any():
                    yield moment
                    continue
            self._advance()
            self._waiting, self._paid = False, 0

    def carry_out(self, decision: KernelDecision) -> None:
        """Apply a decision. Raises ValueError for one that is not legal; then nothing is changed."""
        task, u = decision.task, decision.processor
        if task == NO_OP:
            if (self._running < 0).all() and not self._reconfiguring.any():
                raise ValueError("nothing runs, so waiting would be for ever; start a ready task")
            self._waiting = not self._charge()
            return
        self._check(task, u)
        self._charge()
        kernel = self.work.kernel[task]
        if PROCESSORS[u].kind == FPGA and self._context[u] != kernel:
            self._context[u], self._reconfiguring[u], self._left[u] = kernel, True, RECONFIGURE_S
            self._unused[u] = True
            return
        self._queue.remove(task)
        self._running[u], self._left[u] = task, self._seconds[task, u]
        self.begin[task], self.processor[task], self._unused[u] = self.at, u, False

    def _check(self, task: int, u: int) -> None:
        if task not in self._queue[:WINDOW]:
            raise ValueError(f"task {task} is not among the ready tasks; choose one of {self._queue[:WINDOW]}")
        if not 0 <= u < len(PROCESSORS) or self._running[u] >= 0 or self._reconfiguring[u]:
            raise ValueError(f"processor {u} does not exist or is busy; choose one that is idle")
        if np.isinf(self._seconds[task, u]):
            name = self.work.machine.kernels[self.work.kernel[task]].name
            raise ValueError(f"kernel {name!r} has no implementation for processor {u}; choose one of another type")
        ready = self.work.kernel[self._queue[:WINDOW]]
        if self._unused[u] and self._context[u] != self.work.kernel[task] and self._context[u] in ready:
            raise ValueError(f"FPGA {u} was configured for a task that is ready and has not run it; run that one first")

    def _charge(self) -> bool:
        """Let the time of a decision pass; return whether something happened meanwhile."""
        if self._paid:
            self._paid -= 1
            return False
        until, happened = self.at + self._decision_s, False
        while self.at < until:
            happened |= self._advance(until)
        self._paid = self._batch - 1
        return happened

    def _load(self) -> tuple[Floats, Floats]:
        """Return the loads (resource,), and the demands of what runs (processor, resource)."""
        demand = np.zeros((len(PROCESSORS), len(RESOURCES)))
        for u in np.flatnonzero(self._running >= 0).tolist():
            task = self._running[u]
            demand[u] = self.work.machine.demand[self.work.kernel[task], u, self.work.data[task]]
        other = self._other.copy()
        other[PCIE] += other[NIC]  # the network card is behind the first link
        return other + demand.sum(axis=0), demand

    def _moment(self) -> KernelMoment:
        load, demand = self._load()
        self._seen = read_counters(load, demand, self._rng, self._seen)
        rows = np.array(self._queue[:WINDOW], dtype=np.int64)
        return KernelMoment(
            at=self.at, work=self.work, tasks=rows, ready_s=self.at - self.ready[rows], kernel=self.work.kernel[rows],
            data=self.work.data[rows], idle=(self._running < 0) & ~self._reconfiguring, running=self._running.copy(),
            started=np.where(self._running >= 0, self.begin[self._running], 0.0), context=self._context.copy(),
            unused=self._unused.copy(),
            counters=self._seen, load=load,
        )  # fmt: skip

    def _advance(self, limit: float = np.inf) -> bool:
        """Go on to the next arrival, end, or change of other tenants' load, or to `limit`; return whether it is one."""
        load, demand = self._load()
        slow = np.where(self._running >= 0, slowdown(load, demand), 1.0)
        busy = (self._running >= 0) | self._reconfiguring
        ends = np.where(busy, self.at + self._left * slow, np.inf)
        switch = self._switch[MEMORY:]
        arrives = self.work.arrival[self._next] if self._next < len(self.end) else np.inf
        event = min(float(ends.min()), float(switch.min()), float(arrives))
        until = min(event, limit)
        self._left = np.where(busy, self._left - (until - self.at) / slow, 0.0)
        self.at = until
        self._draw_other(MEMORY + np.flatnonzero(switch <= until))
        for u in np.flatnonzero(ends <= until).tolist():
            if not self._reconfiguring[u]:
                self._finish(int(self._running[u]))
            self._running[u], self._reconfiguring[u] = -1, False
        self._arrive()
        return event <= limit

    def _draw_other(self, rows: range | Ints) -> None:
        for row in rows:
            on = self._other[row] == 0 and self._rng.random() < 0.6
            self._other[row] = self._rng.uniform(0.3, 0.9) if on else 0.0
            self._switch[row] = self.at + SWITCH_S * float(drawn(self._rng.standard_exponential()))

    def _arrive(self) -> None:
        while self._next < len(self.end) and self.work.arrival[self._next] <= self.at:
            if not self._missing[self._next]:
                self._queue.append(self._next)
                self.ready[self._next] = self.at
            self._next += 1

    def _finish(self, task: int) -> None:
        self.end[task] = self.at
        for child in self.work.children[task]:
            self._missing[child] -= 1
            if not self._missing[child] and child < self._next:
                self._queue.append(child)
                self.ready[child] = self.at
