"""What Harmony is compared with: choosers of the next action, and the best placement of all.

Load balancing, Tetris' packing, least interference first (an explicit linear or quadratic model), random; tasks in
order of job, workers first. Reference: Y. Bao et al., INFOCOM 2019, section VI; R. Grandl et al., "Multi-Resource
Packing for Cluster Schedulers", SIGCOMM 2014.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.kernels import kernel
from eunomia.learning.harmony.state import Chooser, PlacementState
from eunomia.learning.harmony.world import PsCluster, Truth, WorldConfig, relative_speeds
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import rounded

MOST_JOBS = 3  # whose placements are searched together


def _first(actions: Ints) -> Ints:
    """Return the rows of the first job's first kind of task."""
    return np.flatnonzero((actions[:, 0] == actions[0, 0]) & (actions[:, 1] == actions[0, 1]))


def _least(score: Callable[[PlacementState, Ints], Floats]) -> Chooser:
    """Return the chooser of the first task's server with the least score; ties by server."""

    def choose(state: PlacementState, actions: Ints) -> int:
        rows = _first(actions)
        return int(rows[np.argmin(rounded(score(state, actions[rows])))])

    return choose


def free_share(state: PlacementState, actions: Ints) -> Floats:
    """Return the sum of normalised free resources of each action's server."""
    return np.asarray((state.v[actions[:, 2]] / state.unit).sum(axis=1))


load_balancing = _least(lambda state, actions: -free_share(state, actions))
tetris = _least(free_share)


def least_interference(truth: Truth, *, quadratic: bool = False) -> Chooser:
    """Return LIF-Line or LIF-Quad: the sum over the jobs on the server of the slowdown as a pair, or of its square.

    The pairs' slowdowns, of one worker and one parameter server each, are given by the truth.
    """
    size = len(truth.types)
    pair = np.zeros((size, size))
    for a in range(size):
        for b in range(size):
            speeds = relative_speeds(
                np.array([a, b]), np.ones((1, 2, 2)), truth.extra, truth.loads, truth.sensitivity, truth.communication
            )
            pair[a, b] = 1.0 / speeds[0] - 1.0
    both = pair + pair.T if quadratic else pair

    def score(state: PlacementState, actions: Ints) -> Floats:
        beside = np.asarray((state.tasks > 0).any(axis=2))[actions[:, 2]].astype(float)  # (action, N)
        beside[np.arange(len(actions)), actions[:, 0]] = 0.0
        types = state.x.argmax(axis=1)
        each = both[types[actions[:, 0]]][:, types]
        return np.asarray((beside * (each * each if quadratic else each)).sum(axis=1))

    return _least(score)


def random_choice(rng: np.random.Generator) -> Chooser:
    """Return the chooser of any feasible action."""
    return lambda state, actions: int(rng.integers(len(actions)))


def baselines(config: WorldConfig, seed: int = 0) -> dict[str, Chooser]:
    """Return all of them by name."""
    return {
        "load balancing": load_balancing,
        "Tetris": tetris,
        "LIF-Line": least_interference(config.truth),
        "LIF-Quad": least_interference(config.truth, quadratic=True),
        "random": random_choice(np.random.default_rng(seed)),
    }


# ---- the best of all placements --------------------------------------------------------------------------------------


def exhaustive_interval(cluster: PsCluster) -> float:
    """Place the waiting jobs as the best of all placements by true rates, then play one interval.

    The oldest three that wait are placed together; best is the largest Σ of speeds, in jobs per interval. Of equal
    ones, and of servers that are alike, the first counts.
    """
    rows = cluster.present()
    state = cluster.state(rows)
    new = np.flatnonzero(state.new)[:MOST_JOBS]
    if len(new):
        truth = cluster.config.truth
        options = [_options(cluster, state, int(n)) for n in new]
        while len(options) < MOST_JOBS:
            options.append(np.zeros((1, len(state.v), 2)))
        rest = np.append(new, np.zeros(MOST_JOBS - len(new), dtype=np.int64))
        counts = np.array([len(one) for one in options])
        best = _search(
            np.concatenate(options), counts, rest, len(new), np.ascontiguousarray(state.tasks), state.v,
            np.ascontiguousarray(state.demand()), cluster.trace.type[rows], 1.0 / cluster.trace.alone[rows],
            (truth.extra, truth.loads, truth.sensitivity, truth.communication),
        )  # fmt: skip
        for k, n in enumerate(new):
            found = options[k][best[k]]
            if found.any():
                cluster.tasks[:, rows[n]] = found
                cluster.placed[rows[n]] = True
    return cluster.play(np.flatnonzero(cluster.placed & (cluster.left > 0)))


def _options(cluster: PsCluster, state: PlacementState, n: int) -> Floats:
    """Return every placement of a job that fits, (placement, M, 2); the first places nothing."""
    servers, (workers, ps) = len(state.v), state.quota()[n]
    ways = [(a, b) for a in _spread(int(workers), servers) for b in _spread(int(ps), servers)]
    all_ = np.array([np.stack(way, axis=1) for way in ways])
    need = (all_[..., None] * state.demand()[n]).sum(axis=2)
    fits = (need <= state.v + 1e-9).all(axis=(1, 2))
    return np.concatenate((np.zeros((1, servers, 2)), all_[fits]))


def _spread(tasks: int, servers: int) -> list[Floats]:
    """Return every way to put equal tasks on servers, (server,) each."""
    if servers == 1:
        return [np.array([float(tasks)])]
    return [
        np.append(float(first), rest) for first in range(tasks, -1, -1) for rest in _spread(tasks - first, servers - 1)
    ]


@kernel()
def _search(
    options: Floats, counts: Ints, jobs: Ints, new: int, tasks: Floats, free: Floats, demand: Floats, type: Ints,
    rate: Floats, truth: tuple[Floats, Floats, Floats, Floats],
) -> Ints:  # fmt: skip
    """Return the placement of each of three jobs, by number, with the largest Σ rate · speed."""
    best, found = -1.0, np.zeros(3, dtype=np.int64)
    servers, resources = free.shape
    begin = np.array([0, counts[0], counts[0] + counts[1]])
    at = np.zeros(3, dtype=np.int64)
    work = tasks.copy()
    for i in range(counts[0]):
        for j in range(counts[1]):
            for k in range(counts[2]):
                at[0], at[1], at[2] = i, j, k
                fits = True
                for m in range(servers):
                    for q in range(resources):
                        need = 0.0
                        for one in range(new):
                            chosen = options[begin[one] + at[one], m]
                            need += chosen[0] * demand[jobs[one], 0, q] + chosen[1] * demand[jobs[one], 1, q]
                        if need > free[m, q] + 1e-9:
                            fits = False
                    if not fits:
                        break
                if not fits:
                    continue
                for one in range(new):
                    for m in range(servers):
                        work[m, jobs[one], 0] = options[begin[one] + at[one], m, 0]
                        work[m, jobs[one], 1] = options[begin[one] + at[one], m, 1]
                speeds = relative_speeds(type, work, truth[0], truth[1], truth[2], truth[3])
                total = 0.0
                for n in range(len(speeds)):
                    total += rate[n] * speeds[n]
                if total > best + 1e-12:
                    best = total
                    found[0], found[1], found[2] = i, j, k
    return found
