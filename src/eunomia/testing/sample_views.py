"""Real views for tests, taken from small simulated runs."""

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

ROUGH = ("service", "remaining", "weight", "held_time_by_type")  # continuous columns, in which ties are removed


@dataclass(frozen=True)
class _ViewCollector:
    """Ranks jobs in random order, and keeps every view."""

    views: list[View] = field(default_factory=list)
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="watcher",
        answer_type="order",
        objective="see everything",
        technique="random order",
        paper="",
        needs=COLUMNS,
        mechanism=RECALLABLE,
    )

    def decide(self, view: View) -> Answer:
        self.views.append(view)
        job = view.rng().permutation(view.jobs)
        usable = np.where(view.scale_factor[:, None] <= view.capacity, view.throughput, 0.0)
        type = np.argmax(usable[job], axis=1)
        can = usable[job, type] > 0
        return Order(Rows(job[can], type[can]), again_at=view.at + 50.0)


def all_views(world: SmallWorld, *, seed: int = 0) -> list[View]:
    """Return every view of a run to its end, with all columns."""
    collector = _ViewCollector()
    play(collector, world, seed=seed)
    return collector.views


def a_view(policy: Policy, seed: int) -> View:
    """Return a view drawn by seed, with the columns that the policy needs and initial memory."""
    full = copy.deepcopy(_full_view(seed))
    return only(policy.info.needs, replace(full, memory=fresh_memory(policy, full.jobs)))


@lru_cache(maxsize=64)
def _full_view(seed: int) -> View:
    views = all_views(draw(seed), seed=seed)
    return views[np.random.default_rng(seed).integers(len(views))]


def only(needs: frozenset[str], view: View) -> View:
    """Return the view with only the needed columns."""
    return replace(view, columns={name: view.columns[name] for name in needs})


def fresh_memory(policy: Policy, jobs: int) -> dict[str, Array]:
    """Return the initial memory of a policy."""
    return {name: np.full(jobs, value) for name, value in policy.info.memory_columns.items()}


def without_ties(view: View, seed: int) -> View:
    """Return the view with continuous job columns perturbed, so that no two jobs are equal."""
    rng = np.random.default_rng(seed)
    columns = dict(view.columns)
    for name in sorted(set(ROUGH) & set(columns)):
        columns[name] = columns[name] * rng.uniform(1.0, 1.5, columns[name].shape)
        if name == "service":
            columns[name] = columns[name] + rng.uniform(1e4, 1e6, view.jobs)
    return replace(view, columns=columns)


def permuted(view: View, order: Ints, memory_columns: Mapping[str, float]) -> View:
    """Return the view with permuted job rows: row i was row order[i]."""
    place = np.argsort(order, kind="stable")
    columns: dict[str, Any] = {
        name: column if name in NOT_BY_JOB else column[order] for name, column in view.columns.items()
    }
    if "holder" in columns:
        holder = view.columns["holder"]
        columns["holder"] = np.where(holder >= 0, place[np.maximum(holder, 0)], holder)
    memory = {name: value[order] if name in memory_columns else value for name, value in view.memory.items()}
    return replace(view, columns=columns, memory=memory)


def with_running_jobs(view: View, seed: int) -> View:
    """Return the view without pending jobs; each lease has ended with probability 1/2."""
    some = part_of(view, np.flatnonzero(view.on_type >= 0))
    ended = np.random.default_rng(seed).random(some.jobs) < 1 / 2
    return replace(some, columns={**some.columns, "lease_end": np.where(ended, view.at, view.at + 100.0)})


def part_of(view: View, jobs: Ints) -> View:
    """Return the view of some of the jobs, ascending, with all that run among them."""
    place = np.full(view.jobs, -1)
    place[jobs] = np.arange(len(jobs))
    columns = {name: column if name in NOT_BY_JOB else column[jobs] for name, column in view.columns.items()}
    if "holder" in columns:
        holder = view.columns["holder"]
        columns["holder"] = np.where(holder >= 0, place[np.maximum(holder, 0)], holder)
    memory = {name: value[jobs] for name, value in view.memory.items()}
    return replace(view, jobs=len(jobs), columns=columns, memory=memory)


def without_jobs(view: View, memory_columns: Mapping[str, float]) -> View:
    """Return the view without any job."""
    columns = {name: column if name in NOT_BY_JOB else column[:0] for name, column in view.columns.items()}
    if "holder" in columns:
        columns["holder"] = np.full_like(columns["holder"], -1)
    memory = {name: value[:0] if name in memory_columns else value for name, value in view.memory.items()}
    return replace(view, jobs=0, columns=columns, memory=memory)
