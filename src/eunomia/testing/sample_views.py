"""Views as a core really shows them: a small world is played for a while by somebody who looks at everything."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from eunomia.model.answers import Answer, Order, Rows
from eunomia.model.arrays import Array, Ints
from eunomia.model.policy import RECALLABLE, Policy, PolicyInfo
from eunomia.model.view import COLUMNS, NOT_BY_JOB, View
from eunomia.testing.small_worlds import SmallWorld, draw, play

ROUGH = ("service", "remaining", "weight", "received")  # continuous by nature; made so where they happen to be equal


@dataclass(frozen=True)
class _Watcher:
    """Serves in a drawn order, and keeps every view that it is shown."""

    shown: list[View] = field(default_factory=list)
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="watcher",
        door="order",
        objective="see everything",
        technique="random order",
        paper="",
        needs=COLUMNS,
        mechanism=RECALLABLE,
    )

    def decide(self, view: View) -> Answer:
        self.shown.append(view)
        job = view.rng().permutation(view.jobs)
        usable = np.where(view.scale_factor[:, None] <= view.capacity, view.throughput, 0.0)
        type = np.argmax(usable[job], axis=1)
        can = usable[job, type] > 0
        return Order(Rows(job[can], type[can]), again_at=view.at + 50.0)


def all_views(world: SmallWorld, *, seed: int = 0) -> list[View]:
    """Return every view that a world shows until its jobs are done, all columns filled."""
    watcher = _Watcher()
    play(watcher, world, seed=seed)
    return watcher.shown


def a_view(policy: Policy, seed: int) -> View:
    """Return a view drawn by seed with just the columns the policy needs, and a memory of new jobs."""
    full = copy.deepcopy(_full_view(seed))
    return only(policy.info.needs, replace(full, memory=fresh_memory(policy, full.jobs)))


@lru_cache(maxsize=64)
def _full_view(seed: int) -> View:
    shown = all_views(draw(seed), seed=seed)
    return shown[np.random.default_rng(seed).integers(len(shown))]


def only(needs: frozenset[str], view: View) -> View:
    """Return the view without the columns that are not needed."""
    return replace(view, columns={name: view.columns[name] for name in needs})


def fresh_memory(policy: Policy, jobs: int) -> dict[str, Array]:
    """Return the memory of a policy that was never asked before."""
    return {name: np.full(jobs, value) for name, value in policy.info.remembers.items()}


def without_ties(view: View, seed: int) -> View:
    """Return the view with continuous job columns moved a little, so that no two jobs are alike in them."""
    rng = np.random.default_rng(seed)
    columns = dict(view.columns)
    for name in sorted(set(ROUGH) & set(columns)):
        columns[name] = columns[name] * rng.uniform(1.0, 1.5, columns[name].shape)
        if name == "service":
            columns[name] = columns[name] + rng.uniform(1e4, 1e6, view.jobs)
    return replace(view, columns=columns)


def permuted(view: View, order: Ints, remembers: Mapping[str, float]) -> View:
    """Return the view with job rows in another order: row i is what row order[i] was."""
    place = np.argsort(order, kind="stable")
    columns: dict[str, Any] = {
        name: column if name in NOT_BY_JOB else column[order] for name, column in view.columns.items()
    }
    if "holder" in columns:
        holder = view.columns["holder"]
        columns["holder"] = np.where(holder >= 0, place[np.maximum(holder, 0)], holder)
    memory = {name: kept[order] if name in remembers else kept for name, kept in view.memory.items()}
    return replace(view, columns=columns, memory=memory)


def everybody_sits(view: View, seed: int) -> View:
    """Return the view without those that wait; of the others each lease has ended with a chance of a half."""
    sits = np.flatnonzero(view.on_type >= 0)
    place = np.full(view.jobs, -1)
    place[sits] = np.arange(len(sits))
    columns = {name: column if name in NOT_BY_JOB else column[sits] for name, column in view.columns.items()}
    holder = view.columns["holder"]
    columns["holder"] = np.where(holder >= 0, place[np.maximum(holder, 0)], holder)
    ended = np.random.default_rng(seed).random(len(sits)) < 1 / 2
    columns["until"] = np.where(ended, view.at, view.at + 100.0)
    memory = {name: kept[sits] for name, kept in view.memory.items()}
    return replace(view, jobs=len(sits), columns=columns, memory=memory)


def without_jobs(view: View, remembers: Mapping[str, float]) -> View:
    """Return the view of the same cluster, empty."""
    columns = {name: column if name in NOT_BY_JOB else column[:0] for name, column in view.columns.items()}
    if "holder" in columns:
        columns["holder"] = np.full_like(columns["holder"], -1)
    memory = {name: kept[:0] if name in remembers else kept for name, kept in view.memory.items()}
    return replace(view, jobs=0, columns=columns, memory=memory)
