"""Harmony's state and actions as published, and what the networks see of them.

    x (N, L)        job type, one-hot; a type that the model does not know has no 1
    r (N, 2(1+K))   workers, demand of a worker (K), parameter servers, demand of one (K)
    w, p (N,)       workers and parameter servers that have a server so far
    v (M, K)        available resources of each server
    d (M, 2N)       workers and parameter servers of each job on each server

N jobs, running ones too; M servers; K resources: CPU and accelerators; L job types. An action (n, k, m) puts one worker
(k = 0) or parameter server (k = 1) of the new job n on server m. Reference: section IV of the paper.

The published network takes the state as one vector, so that N and M are fixed. Ours scores each action by itself, from
the same state, with weights shared between jobs and servers: it fits any number of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eunomia.learning.model_file import Feature
from eunomia.model.arrays import Bools, Floats, Ints

WORKER, SERVER = 0, 1  # kinds of tasks
ROOM = 1e-9  # free resources may fall short by rounding


@dataclass
class PlacementState:
    """The published state in the middle of a decision: `place` and `take_back` change it."""

    x: Floats
    r: Floats
    v: Floats
    d: Floats  # (M, 2N)
    new: Bools  # (N,) has just arrived and is to be placed
    capacity: Floats  # (M, K)
    allowed: Callable[[PlacementState], Bools] | None = None  # gives (N, M): where jobs may be now; None = anywhere
    w: Ints = field(init=False)
    p: Ints = field(init=False)
    excluded: Bools = field(init=False)  # (N,) cannot be placed whole in this interval

    def __post_init__(self) -> None:
        self.w, self.p = (self.tasks[:, :, k].sum(axis=0).astype(np.int64) for k in (WORKER, SERVER))
        self.excluded = np.zeros(len(self.x), dtype=bool)
        self.begun = -1  # the job that is partly placed
        self.unit = np.maximum(self.capacity.max(axis=0, initial=0.0), 1e-12)  # (K,)
        k = self.v.shape[1]
        self._quota = self.r[:, [0, 1 + k]].astype(np.int64)
        self._demand = self.r.reshape(len(self.r), 2, 1 + k)[:, :, 1:]

    @property
    def tasks(self) -> Floats:
        """(M, N, 2) workers and parameter servers; a view of `d`."""
        return self.d.reshape(len(self.d), -1, 2)

    def quota(self) -> Ints:
        """Return the workers and parameter servers that jobs declare, (N, 2)."""
        return self._quota

    def demand(self) -> Floats:
        """Return what a worker and a parameter server of each job needs, (N, 2, K)."""
        return self._demand

    def actions(self) -> Ints:
        """Return the feasible actions, (action, 3), in order of n, k, m.

        A job that is partly placed comes before all others, so that resources are never divided between two halves.
        """
        left = self.quota() - np.array((self.w, self.p)).T
        open_ = (self.new & ~self.excluded)[:, None] & (left > 0)
        if self.begun >= 0:
            open_[: self.begun], open_[self.begun + 1 :] = False, False
        job, kind = np.nonzero(open_)
        fits = (self.v[None, :, :] + ROOM >= self.demand()[job, kind][:, None, :]).all(axis=2)
        if self.allowed is not None:
            fits &= self.allowed(self)[job]
        row, server = np.nonzero(fits)
        return np.array((job[row], kind[row], server)).T

    def place(self, action: Sequence[int]) -> None:
        """Put one task on a server."""
        n, k, m = (int(part) for part in action)
        self._put(n, k, m, 1)
        whole = (self.w[n], self.p[n]) == tuple(self.quota()[n])
        self.begun = -1 if whole else n
        if whole:
            self.new[n] = False

    def take_back(self) -> None:
        """Take back the job that is partly placed, and leave it for the next interval."""
        n = self.begun
        for m, k in zip(*np.nonzero(self.tasks[:, n]), strict=True):
            self._put(n, int(k), int(m), -int(self.tasks[m, n, k]))
        self.excluded[n], self.begun = True, -1

    def _put(self, n: int, k: int, m: int, count: int) -> None:
        self.tasks[m, n, k] += count
        self.v[m] -= count * self.demand()[n, k]
        (self.w, self.p)[k][n] += count


Chooser = Callable[[PlacementState, Ints], int]  # the row of the action to take


def place_all(state: PlacementState, choose: Chooser) -> list[int]:
    """Place the new jobs, one task an inference, until nothing more fits; return the jobs that are placed whole."""
    waiting = np.flatnonzero(state.new)
    while True:
        actions = state.actions()
        if len(actions):
            state.place(actions[choose(state, actions)])
        elif state.begun >= 0:
            state.take_back()
        else:
            return [int(n) for n in waiting if not state.new[n]]


# ---- what the networks see -----------------------------------------------------------------------------------------


def action_features(types: Sequence[str]) -> tuple[Feature, ...]:
    """Return the inputs of the policy network, for one action."""
    own = [
        Feature(name="is_parameter_server"), Feature(name="workers", unit="tasks", scale=4.0),
        Feature(name="parameter_servers", unit="tasks", scale=4.0), Feature(name="workers_placed", unit="fraction"),
        Feature(name="parameter_servers_placed", unit="fraction"),
        Feature(name="demand_cpu", unit="fraction of a server"),
        Feature(name="demand_accelerator", unit="fraction of a server"),
        Feature(name="free_cpu", unit="fraction of a server"),
        Feature(name="free_accelerator", unit="fraction of a server"),
        Feature(name="own_workers_here", unit="tasks", scale=4.0),
        Feature(name="own_parameter_servers_here", unit="tasks", scale=4.0),
        Feature(name="own_servers", unit="servers", scale=4.0), Feature(name="jobs_here", unit="jobs", scale=4.0),
        Feature(name="mean_free_cpu", unit="fraction of a server"),
        Feature(name="mean_free_accelerator", unit="fraction of a server"),
    ]  # fmt: skip
    return (*own, *_by_type(types))


def see_actions(state: PlacementState, actions: Ints) -> Floats:
    """Return the inputs of these actions, (action, feature), before normalisation; see `action_features`."""
    n, k, m = actions.T
    quota, demand = state.quota(), state.demand()
    unit, tasks = state.unit, state.tasks
    free = state.v / unit
    own = tasks[m, n]  # (action, 2)
    sums = (tasks[:, :, None, :] * state.x[None, :, :, None]).sum(axis=1)  # (M, L, 2)
    beside = sums[m] - own[:, None, :] * state.x[n][:, :, None]
    used = np.asarray((tasks > 0).any(axis=2))  # (M, N)
    own_columns = (
        k, quota[n, 0], quota[n, 1], state.w[n] / np.maximum(quota[n, 0], 1), state.p[n] / np.maximum(quota[n, 1], 1),
        *(demand[n, k] / unit).T, *free[m].T, own[:, 0], own[:, 1], used.sum(axis=0)[n], used[m].sum(axis=1),
    )  # fmt: skip
    mean_free = np.repeat(free.mean(axis=0)[None], len(n), axis=0)
    return np.concatenate(
        (np.array(own_columns, dtype=np.float64).T, mean_free, state.x[n], beside[:, :, 0], beside[:, :, 1]), axis=1
    )


def normalised(values: Floats, features: Sequence[Feature]) -> Floats:
    """Return (value − mean) / scale of each column."""
    return np.asarray((values - [one.mean for one in features]) / [one.scale for one in features])


def job_features(types: Sequence[str]) -> tuple[Feature, ...]:
    """Return the inputs of the reward model, for one job on one server: no r and no v."""
    own = [Feature(name=name, unit="tasks", scale=2.0) for name in ("own_workers_here", "own_parameter_servers_here")]
    return (*own, Feature(name="apart", unit="fraction of pairs"), *_by_type(types))


def _by_type(types: Sequence[str]) -> tuple[Feature, ...]:
    """Return the job's type, and the tasks of other jobs on the server by type."""
    scales = {"job_type": 1.0, "workers_here": 2.0, "parameter_servers_here": 2.0}
    return tuple(Feature(name=f"{group}={one}", scale=scale) for group, scale in scales.items() for one in types)


def see_jobs(x: Floats, d: Floats) -> tuple[Floats, Bools]:
    """Return the inputs of the reward model, (N, M, feature), and where a job has tasks, (N, M).

    `apart` is the fraction of a job's pairs of worker and parameter server that are on two servers.
    """
    tasks = d.reshape(len(d), -1, 2)
    own = np.moveaxis(tasks, 1, 0)  # (N, M, 2)
    sums = (tasks[:, :, None, :] * x[None, :, :, None]).sum(axis=1)  # (M, L, 2)
    beside = sums[None] - own[:, :, None, :] * x[:, None, :, None]  # (N, M, L, 2)
    shape = (*own.shape[:2], x.shape[1])
    apart = np.broadcast_to(apart_fraction(own)[:, None, None], (*own.shape[:2], 1))
    types = np.broadcast_to(x[:, None, :], shape)
    seen = np.concatenate((own, apart, types, beside[..., 0], beside[..., 1]), axis=2)
    return seen, np.asarray((own > 0).any(axis=2))


def apart_fraction(own: Floats) -> Floats:
    """Return the fraction of pairs of worker and parameter server that are on two servers, (N,), of tasks (N, M, 2)."""
    pairs = own[:, :, 0].sum(axis=1) * own[:, :, 1].sum(axis=1)
    together = (own[:, :, 0] * own[:, :, 1]).sum(axis=1)
    return np.asarray(1.0 - np.divide(together, pairs, out=np.ones(len(own)), where=pairs > 0))
