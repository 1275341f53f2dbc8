"""A cluster of parameter-server jobs in slots of time, in which Harmony is trained and judged.

Jobs have workers, which hold accelerators and CPUs, and parameter servers, which hold CPUs. The core of the package
knows gangs of accelerators only, so these jobs live in this simulator of their own. In each interval the jobs that have
arrived are placed; running jobs are never moved. The speed of a job over its speed alone and together is

    min over its servers m of 1 / slowdown[m]   ×   1 / (1 + γ (κ − 1) · apart)

slowdown by the other jobs on the server (`Truth`; a job with only parameter servers there disturbs, and is disturbed,
half as much), γ communication's share of a step, κ = 3 by how much it is slower
between servers, apart the fraction of its pairs of worker and parameter server on two servers.
Reference: Y. Bao et al., INFOCOM 2019, sections II and VI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eunomia.inputs.options import number
from eunomia.kernels import kernel
from eunomia.learning.harmony.state import Chooser, PlacementState, place_all
from eunomia.model.arrays import Floats, Ints
from eunomia.scenario import Scenario
from eunomia.throughputs import load
from eunomia.throughputs.interference import LOADS, SENSITIVITY, SERVER_LOADS, PairNeighbours
from eunomia.traces.generators import JOBS, RATE

KAPPA = 3.0
WORKER_DEMAND, SERVER_DEMAND = (2.0, 1.0), (1.0, 0.0)  # CPUs and accelerators of a task
COMMUNICATION = {  # γ: share of a step that is communication, when worker and parameter server are on one server
    "resnet": 0.10, "resnext": 0.12, "vgg16": 0.35, "alexnet": 0.30, "ctc": 0.08, "seq2seq": 0.20, "wlm": 0.25,
    "dssm": 0.18,
}  # fmt: skip
USUAL_COMMUNICATION = 0.15
FINITE_RATE = replace(RATE, endless=False, fix="write how many jobs arrive in an hour")


@dataclass(frozen=True)
class Truth:
    """Slowdowns of L job types: by measured pairs (`extra`), or by loads on Q resources."""

    types: tuple[str, ...]
    extra: Floats  # (L, L) slowdown of the first beside the second, less 1
    loads: Floats  # (L, 2, Q) of a worker and a parameter server
    sensitivity: Floats  # (Q,)
    communication: Floats  # (L,) γ

    def without_effects(self) -> Truth:
        """Return the same types without interference and locality."""
        nothing = {name: np.zeros_like(getattr(self, name)) for name in ("extra", "loads", "communication")}
        return replace(self, **nothing)


def synthetic_truth() -> Truth:
    """Return the eight types of `throughputs.interference.SyntheticNeighbours`."""
    types = tuple(LOADS)
    loads = np.array([(LOADS[name], SERVER_LOADS) for name in types])
    gamma = np.array([COMMUNICATION[name] for name in types])
    return Truth(types, np.zeros((len(types), len(types))), loads, np.array(SENSITIVITY), gamma)


def pair_truth(neighbours: PairNeighbours, types: Sequence[str]) -> Truth:
    """Return the truth of measured pairs of these types."""
    extra = np.array([[neighbours.extra(a, b) for b in types] for a in types])
    size = len(types)
    return Truth(tuple(types), extra, np.zeros((size, 2, 1)), np.zeros(1), np.full(size, USUAL_COMMUNICATION))


@dataclass(frozen=True, kw_only=True)
class WorldConfig:
    """The cluster and its workload."""

    truth: Truth
    capacity: Floats  # (M, K) CPUs and accelerators of each server
    interval_s: float = 1200.0
    jobs: int = 60
    arrivals: float = 1.0  # mean of an interval; uniform from 0 to twice as many
    window: int = 20  # N: the oldest jobs that are considered at once
    max_workers: int = 3
    min_servers: int = 0  # a third of the jobs have none, as the gangs of the core
    max_servers: int = 2
    hours: tuple[float, float] = (0.4, 1.2)  # alone, uniform

    @classmethod
    def of(cls, scenario: Scenario) -> WorldConfig:
        """Return the world of a scenario. Raises InvalidInput where it has none of the two models of interference."""
        kind = scenario.physics.neighbours
        types = tuple(dict.fromkeys(group.type for group in scenario.cluster.nodes))
        if kind == "synthetic":
            truth = synthetic_truth()
        elif kind == "pairs":
            section = scenario.throughputs
            speeds = load(section.source, types, base=scenario.base, missing=section.missing)
            known = [name for name in speeds.job_types if not speeds.not_known(name)]
            if not (names := tuple(name for name in known if (speeds.solo_throughput(name, 1) > 0).any())):
                fix = "name a table with measured pairs of job types, such as Gavel's"
                raise scenario.refused(
                    ("throughputs", "source"), "it lists no job types", fix, scenario.throughputs.source
                )
            truth = pair_truth(PairNeighbours(speeds), names)
        else:
            rule, fix = "placement is learnt from interference between jobs", 'give "synthetic" or "pairs"'
            raise scenario.refused(("physics", "neighbours"), rule, fix, kind)
        nodes = [group for group in scenario.cluster.nodes for _ in range(group.count)]
        cpus = [group.cpus or 4.0 * group.accelerators for group in nodes]
        capacity = np.array([(cpu, group.accelerators) for cpu, group in zip(cpus, nodes, strict=True)], dtype=float)
        jobs, rate = _arrivals(scenario)
        mechanism = scenario.mechanism
        seconds = getattr(mechanism, "length_s", None) if mechanism is not None else None
        interval = float(seconds) if seconds and np.isfinite(seconds) else 1200.0
        config = cls(truth=truth, capacity=capacity, interval_s=interval, jobs=jobs, arrivals=rate * interval / 3600.0)
        if not config.largest_job_fits():
            rule = f"the largest job has {config.max_workers} workers of 2 CPUs and an accelerator each, and "
            rule += f"{config.max_servers} parameter servers of a CPU each, and does not fit on the empty cluster"
            raise scenario.refused(("cluster",), rule, "give more servers, or larger ones")
        return config

    def largest_job_fits(self) -> bool:
        """Whether a job with the most workers and parameter servers can be placed on the empty cluster."""
        size = np.array([[self.max_workers, *WORKER_DEMAND, self.max_servers, *SERVER_DEMAND]], dtype=float)
        state = PlacementState(
            x=np.zeros((1, len(self.truth.types))), r=size, v=self.capacity.copy(), d=np.zeros((len(self.capacity), 2)),
            new=np.ones(1, dtype=bool), capacity=self.capacity,
        )  # fmt: skip
        return place_all(state, lambda _, actions: 0) == [0]


def _arrivals(scenario: Scenario) -> tuple[int, float]:
    """Return the number of jobs and their rate per hour."""
    work = scenario.workload
    if work.trace is not None:
        what, fix = "placement is learnt from jobs that are generated", 'give generator = "poisson" in its place'
        raise scenario.refused(("workload", "trace"), what, fix, work.trace)
    for name, rule in (("jobs", JOBS), ("rate_per_hour", FINITE_RATE)):
        if name in work.options:
            number(scenario.where(("workload",))[0], f"workload.{name}", work.options[name], rule)
    return int(work.options.get("jobs", 60)), float(work.options.get("rate_per_hour", 3.0))


@dataclass(frozen=True)
class PsTrace:
    """Jobs of one run, in order of arrival."""

    type: Ints  # (job,)
    size: Ints  # (job, 2) workers and parameter servers
    alone: Floats  # (job,) intervals that it takes alone and together
    arrival: Ints  # (job,) interval


def draw_trace(config: WorldConfig, seed: int | tuple[int, ...]) -> PsTrace:
    """Return jobs drawn by the seed."""
    rng, arrival = np.random.default_rng(seed), list[int]()
    most, at = max(round(2 * config.arrivals), 1), 0
    while len(arrival) < config.jobs:
        arrival += [at] * int(rng.integers(0, most + 1))
        at += 1
    n = config.jobs
    low, high = (3600.0 * hours / config.interval_s for hours in config.hours)
    size = np.stack(
        (rng.integers(1, config.max_workers + 1, n), rng.integers(config.min_servers, config.max_servers + 1, n)),
        axis=1,
    )
    return PsTrace(rng.integers(0, len(config.truth.types), n), size, rng.uniform(low, high, n), np.array(arrival[:n]))


@kernel()
def relative_speeds(
    type: Ints, tasks: Floats, extra: Floats, loads: Floats, sensitivity: Floats, communication: Floats
) -> Floats:
    """Return the speed of each job, (N,), over that alone and together; tasks (M, N, 2)."""
    servers, jobs, _ = tasks.shape
    resources = len(sensitivity)
    worst = np.ones(jobs)
    for m in range(servers):
        total = np.zeros(resources)
        for n in range(jobs):
            for q in range(resources):
                total[q] += tasks[m, n, 0] * loads[type[n], 0, q] + tasks[m, n, 1] * loads[type[n], 1, q]
        for n in range(jobs):
            if tasks[m, n, 0] + tasks[m, n, 1] == 0.0:
                continue
            mine = 1.0 if tasks[m, n, 0] > 0.0 else 0.5
            slowdown = 1.0
            for o in range(jobs):
                if o != n and tasks[m, o, 0] + tasks[m, o, 1] > 0.0:
                    slowdown += mine * (1.0 if tasks[m, o, 0] > 0.0 else 0.5) * extra[type[n], type[o]]
            for q in range(resources):
                if loads[type[n], 0, q] > 0.0 and total[q] > 1.0:
                    slowdown *= 1.0 + sensitivity[q] * (total[q] - 1.0)
            worst[n] = max(worst[n], slowdown)
    speeds = np.zeros(jobs)
    for n in range(jobs):
        workers, servers_of = 0.0, 0.0
        together = 0.0
        for m in range(servers):
            workers += tasks[m, n, 0]
            servers_of += tasks[m, n, 1]
            together += tasks[m, n, 0] * tasks[m, n, 1]
        pairs = workers * servers_of
        apart = 1.0 - together / pairs if pairs > 0.0 else 0.0
        if workers > 0.0:
            speeds[n] = 1.0 / (worst[n] * (1.0 + communication[type[n]] * (KAPPA - 1.0) * apart))
    return speeds


class PsCluster:
    """One run of a trace. `interval` places what has arrived and plays one interval."""

    def __init__(self, config: WorldConfig, trace: PsTrace) -> None:
        self.config, self.trace = config, trace
        jobs, servers = len(trace.type), len(config.capacity)
        self.left = np.ones(jobs)  # fraction still to do
        self.finished = np.full(jobs, np.nan)  # in intervals
        self.tasks = np.zeros((servers, jobs, 2))
        self.placed = np.zeros(jobs, dtype=bool)
        self.now = 0
        self.x = np.eye(len(config.truth.types))[trace.type]
        demand = np.array((WORKER_DEMAND, SERVER_DEMAND))
        self.demand = np.broadcast_to(demand, (jobs, 2, 2))
        self.r = np.concatenate(
            (trace.size[:, :1], self.demand[:, 0], trace.size[:, 1:], self.demand[:, 1]), axis=1
        ).astype(float)

    @property
    def over(self) -> bool:
        """Whether every job has finished."""
        return bool((self.left <= 0).all())

    def present(self) -> Ints:
        """Return the running and waiting jobs, the oldest first, at most the window."""
        here = (self.trace.arrival <= self.now) & (self.left > 0)
        return np.flatnonzero(here)[: self.config.window]

    def state(self, rows: Ints) -> PlacementState:
        """Return the published state of these jobs."""
        tasks = self.tasks[:, rows]
        used = (self.tasks[:, :, :, None] * self.demand[None]).sum(axis=(1, 2))
        return PlacementState(
            x=self.x[rows], r=self.r[rows], v=self.config.capacity - used, d=tasks.reshape(len(tasks), -1).copy(),
            new=~self.placed[rows], capacity=self.config.capacity,
        )  # fmt: skip

    def interval(self, choose: Chooser) -> float:
        """Place, play one interval, and return the reward Σ c / e."""
        return self.play(self.place(choose))

    def place(self, choose: Chooser) -> Ints:
        """Place the waiting jobs of the window; return the rows that run."""
        rows = self.present()
        state = self.state(rows)
        self.adopt(rows, state, place_all(state, choose))
        return np.flatnonzero(self.placed & (self.left > 0))

    def adopt(self, rows: Ints, state: PlacementState, started: Sequence[int]) -> None:
        """Take over the placement of the jobs that were started; `started` are rows of the state."""
        for n in started:
            self.tasks[:, rows[n]] = state.tasks[:, n]
            self.placed[rows[n]] = True

    def speeds(self, rows: Ints) -> Floats:
        """Return the true speed of these jobs, in fractions of the job per interval."""
        truth, trace = self.config.truth, self.trace
        tasks = np.ascontiguousarray(self.tasks[:, rows])
        relative = relative_speeds(
            trace.type[rows], tasks, truth.extra, truth.loads, truth.sensitivity, truth.communication
        )
        return np.asarray(relative / trace.alone[rows])

    def play(self, rows: Ints, speeds: Floats | None = None) -> float:
        """Let these jobs run for an interval, at their true speeds or as a model says; return the reward."""
        speed = self.speeds(rows) if speeds is None else speeds
        done = np.minimum(speed, self.left[rows])
        ends = self.left[rows] <= speed
        self.finished[rows[ends]] = self.now + self.left[rows][ends] / speed[ends]
        self.left[rows] -= done
        self.left[rows[ends]] = 0.0
        self.tasks[:, rows[ends]] = 0.0
        self.now += 1
        return float(done.sum())

    def mean_jct(self) -> float:
        """Return the mean completion time so far, in intervals."""
        return float(np.nanmean(self.finished - self.trace.arrival))


def run_trace(config: WorldConfig, trace: PsTrace, choose: Chooser, *, most: int = 100_000) -> PsCluster:
    """Play a trace to its end. Raises RuntimeError after `most` intervals, as where a job fits nowhere."""
    cluster = PsCluster(config, trace)
    while not cluster.over:
        cluster.interval(choose)
        if cluster.now > most:
            raise RuntimeError(f"after {most} intervals {int((cluster.left > 0).sum())} jobs have not finished")
    return cluster
