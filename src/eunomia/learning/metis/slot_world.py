"""A small simulator in slots: elastic jobs with convergence curves share nodes; every slot all nodes are reassigned.

It is not the package's core: training needs thousands of slots in seconds. A job's steps are counted in slots of one
node. With n nodes it does n / (1 + a (n − 1) + b n (n − 1)) steps a slot: communication with parameter servers. A job
whose nodes changed loses the time of a checkpoint. Curves are those of `model.curve_fits`: of first order, as of
gradient methods (logistic regression, SVM, MLP), accelerated, and of second order. They may have a plateau, on which
the loss hardly falls until it goes on, as before a drop of the learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.learning.metis.baselines import Allocate
from eunomia.learning.metis.slot_state import SlotState
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.curve_fits import losses_at
from eunomia.model.rounding import drawn

SLOT_S, CHECKPOINT_S = 1800.0, 30.0
QUALITIES = (0.9, 0.95, 0.99)
MOST_IDLE = 1_000  # slots in a row in which jobs are there and none gets a node
SLOPE = 0.05  # of a curve on its plateau, over that without one
_HALVINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJobs:
    """A workload in order of arrival. Steps are slots of one node."""

    arrival: Ints  # (job,) slot
    steps: Floats  # (job,) in all
    curve: Floats  # (job, 5) as in `model.curve_fits`
    slope: Floats  # (job, 2) a and b of the scaling
    most: Ints  # (job,) nodes at most
    plateau: Floats  # (job, 2) shares of the steps at which it begins and ends

    def speed(self, nodes: Ints) -> Floats:
        """Return the steps a slot with nodes (job, …)."""
        a, b = (one.reshape(-1, *[1] * (nodes.ndim - 1)) for one in self.slope.T)
        return np.asarray(nodes / (1.0 + a * np.maximum(nodes - 1, 0) + b * nodes * np.maximum(nodes - 1, 0)))

    def quality(self, done: Floats) -> Floats:
        """Return the share of the total decrease of the loss after steps (job, …)."""
        return self._share(done, *self._ends())

    def _ends(self) -> tuple[Floats, Floats]:
        """Return the losses at the start and at the end, (job,)."""
        return losses_at(self.curve, np.zeros(len(self.steps))), losses_at(self.curve, self.steps)

    def _share(self, done: Floats, start: Floats, end: Floats) -> Floats:
        broadcast = [1] * (done.ndim - 1)
        start, end = start.reshape(-1, *broadcast), end.reshape(-1, *broadcast)
        along = self._along(done, broadcast)
        return np.asarray((start - losses_at(self.curve.reshape(-1, *broadcast, 5), along)) / (start - end))

    def _along(self, done: Floats, broadcast: list[int]) -> Floats:
        """Return the steps on the curve without a plateau that bring the same loss, (job, …)."""
        begin, end = (one.reshape(-1, *broadcast) for one in (self.plateau * self.steps[:, None]).T)
        steps = self.steps.reshape(-1, *broadcast)
        lost = (1.0 - SLOPE) * np.clip(done - begin, 0.0, end - begin)
        return np.asarray((done - lost) * (steps / (steps - (1.0 - SLOPE) * (end - begin))))

    def steps_to(self, quality: float) -> Floats:
        """Return the steps after which the share is reached, (job,)."""
        low, high, ends = np.zeros(len(self.steps)), self.steps.copy(), self._ends()
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            short = self._share(middle, *ends) < quality
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high


def draw_jobs(rng: np.random.Generator, *, jobs: int, nodes: int, load: float, plateaus: bool = False) -> ElasticJobs:
    """Draw jobs that ask for `load` of the nodes on average while they arrive (Poisson)."""
    steps = 12.0 * elementary.exp(0.9 * drawn(rng.standard_normal(jobs)))
    steps = np.clip(steps, 1.0, 120.0)
    gaps = drawn(rng.standard_exponential(jobs)) * float(np.mean(steps)) / (load * nodes)
    arrival = np.floor(np.cumsum(gaps) - gaps[0]).astype(np.int64)
    kind = rng.integers(0, 3, jobs)  # first order, accelerated, second order
    rate = 20.0 * elementary.exp(0.8 * drawn(rng.standard_normal(jobs)))
    curve = np.zeros((jobs, 5))
    curve[:, 0], curve[:, 3] = rng.uniform(0.05, 0.4, jobs), 1.0
    curve[:, 1] = np.where(kind == 1, np.square(rate / steps), 0.0)
    curve[:, 2] = np.where(kind == 0, rate / steps, 0.0)
    curve[:, 4] = np.where(kind == 2, -rng.uniform(3.0, 9.0, jobs) / steps, 0.0)
    slope = np.stack((rng.uniform(0.02, 0.2, jobs), rng.uniform(0.0, 0.02, jobs)), axis=1)
    most = np.minimum(2 ** rng.integers(1, 5, jobs), nodes)
    plateau = np.zeros((jobs, 2))
    if plateaus:
        plateau[:, 0] = rng.uniform(0.05, 0.2, jobs)
        plateau[:, 1] = plateau[:, 0] + rng.uniform(0.2, 0.4, jobs)
    return ElasticJobs(arrival=arrival, steps=steps, curve=curve, slope=slope, most=most, plateau=plateau)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRun:
    """The results of one run, in slots, and the rewards of its slots."""

    time_to: Floats  # (quality, job) slots from arrival
    completion: Floats  # (job,) slots from arrival
    makespan: float
    rewards: tuple[float, ...]  # Σ of the decreases of normalised loss in each slot
    decisions: tuple[int, ...]  # nodes allocated in each slot

    @property
    def mean_time(self) -> float:
        """The mean time to 90 % quality, in slots."""
        return float(np.mean(self.time_to[0]))


class SlotWorld:
    """One run: `state` is what is known at the start of the slot, `advance` runs it."""

    def __init__(self, jobs: ElasticJobs, nodes: int):
        self.jobs, self.nodes = jobs, nodes
        count = len(jobs.steps)
        self.at = 0
        self.done = np.zeros(count)
        self.held = np.zeros(count, dtype=np.int64)
        self.time_to = np.full((len(QUALITIES), count), np.inf)
        self.completion = np.full(count, np.inf)
        self._goals = np.stack([jobs.steps_to(quality) for quality in QUALITIES])
        self._ladder = np.minimum(np.arange(int(jobs.most.max()) + 1), jobs.most[:, None])
        self._speed = jobs.speed(self._ladder)

    @property
    def finished(self) -> bool:
        """Whether all jobs are done."""
        return bool(np.isfinite(self.completion).all())

    def active(self) -> Ints:
        """Return the jobs that have arrived and are not done."""
        return np.flatnonzero((self.jobs.arrival <= self.at) & np.isinf(self.completion))

    def state(self) -> SlotState:
        """Return the state of the active jobs."""
        rows = self.active()
        jobs = part(self.jobs, rows)
        sizes, done = self._ladder[rows], self.done[rows]
        steps = self._speed[rows] * self._useful(sizes, self.held[rows, None])
        quality = jobs.quality(done)
        ahead = jobs.quality(np.minimum(done[:, None] + steps, jobs.steps[:, None]))
        return SlotState(
            nodes=self.nodes, sizes=sizes, speed=self._speed[rows], decrease=ahead - quality[:, None],
            last_step=jobs.most, age=(self.at - jobs.arrival).astype(float), progress=quality, held=self.held[rows],
            work_left=jobs.steps - done,
        )  # fmt: skip

    def slots_spent(self, beyond: float) -> float:
        """Return the slots that all jobs have spent so far since they arrived, those beyond 90 % quality weighted."""
        since = np.maximum(self.at - self.jobs.arrival, 0)
        short, here = np.minimum(self.time_to[0], since), np.minimum(self.completion, since)
        return float((short + beyond * (here - short)).sum())

    @staticmethod
    def _useful(sizes: Ints, held: Ints) -> Floats:
        """Return the part of the slot in which a job makes progress."""
        return np.where(sizes == held, 1.0, 1.0 - CHECKPOINT_S / SLOT_S)

    def advance(self, nodes: Ints) -> float:
        """Run the slot with nodes (active job,); return the reward."""
        rows = self.active()
        assert nodes.sum() <= self.nodes, "more nodes than there are"
        useful = self._useful(nodes, self.held[rows])
        speed = self._speed[rows, nodes]
        before = self.done[rows]
        after = np.minimum(before + speed * useful, self.jobs.steps[rows])
        waited = self.at - self.jobs.arrival[rows] + (1.0 - useful)
        with np.errstate(divide="ignore", invalid="ignore"):
            for k, goal in enumerate(self._goals[:, rows]):
                reached = (before < goal) & (after >= goal)
                self.time_to[k, rows[reached]] = (waited + (goal - before) / speed)[reached]
            ended = after >= self.jobs.steps[rows]
            self.completion[rows[ended]] = (waited + (self.jobs.steps[rows] - before) / speed)[ended]
        jobs = part(self.jobs, rows)
        self.done[rows], self.held[:] = after, 0
        self.held[rows[~ended]] = nodes[~ended]
        self.at += 1
        return float((jobs.quality(after) - jobs.quality(before)).sum())


def part(jobs: ElasticJobs, rows: Ints) -> ElasticJobs:
    """Return some of the jobs."""
    return replace(jobs, **{name: getattr(jobs, name)[rows] for name in ElasticJobs.__slots__})


class NoNodesGiven(RuntimeError):
    """An allocation that gives the jobs that are left no nodes, so that they never end."""


def play(jobs: ElasticJobs, nodes: int, allocate: Allocate) -> SlotRun:
    """Run a workload to its end under an allocation by slot. Raises NoNodesGiven where it would have none."""
    world, rewards, used, idle = SlotWorld(jobs, nodes), [], [], 0
    while not world.finished:
        state = world.state()
        given = state.allocated(allocate(state)) if state.jobs else np.zeros(0, dtype=np.int64)
        idle = idle + 1 if state.jobs and not given.any() else 0
        if idle > MOST_IDLE:
            raise NoNodesGiven(f"{state.jobs} jobs have had no node for {idle:,} slots, and the allocation gives none")
        used.append(int(given.sum()))
        rewards.append(world.advance(given))
    return SlotRun(
        time_to=world.time_to, completion=world.completion, rewards=tuple(rewards), decisions=tuple(used),
        makespan=float((jobs.arrival + world.completion).max() - jobs.arrival.min()),
    )  # fmt: skip
