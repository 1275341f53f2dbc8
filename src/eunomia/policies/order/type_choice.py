"""The type on which each job of an order runs: its fastest, or one drawn by capacity."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from eunomia.model.answers import Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.placement.selection import replanned

Types = Annotated[Literal["fastest", "agnostic"], "'fastest' (by belief) or 'agnostic' (drawn by seed)"]
NEEDS = frozenset({"throughput", "scale_factor", "capacity", "on_type"})
REMEMBERS = {"drawn_type": -1.0}


def runnable(view: View) -> Bools:
    """Return whether each job could run on each type of the empty cluster, (job, type)."""
    return np.asarray((view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity))


def by_fastest(view: View, order: Ints) -> Rows:
    """Return rows of the jobs in `order` on every type that can run them, fastest first by belief."""
    can = runnable(view)
    if len(view.types) == 1:
        order = order if can.all() else order[can[order, 0]]
        return Rows(order, np.zeros(len(order), dtype=np.int64))
    can = can[order]
    preference = np.argsort(-view.throughput[order], axis=1, kind="stable")
    able = np.take_along_axis(can, preference, axis=1)
    job = np.broadcast_to(order[:, None], preference.shape)[able]
    return Rows(job, preference[able])


def types_if_replanned(view: View, rows: Rows) -> Ints:
    """Return the type on which each job would run if all accelerators were given anew in that order, (job,).

    -1 = it would wait; candidates that do not fit are skipped.
    """
    size, free = view.scale_factor[rows.job], view.capacity.astype(np.int64)
    types: Ints = replanned(rows.job, rows.type, size, view.jobs, free)
    return types


def draw_types(view: View) -> Floats:
    """Return a type for each job, (job,): the one drawn before, else a new draw by usable capacity; -1 = none."""
    drawn, rng = view.memory["drawn_type"].copy(), view.rng()
    for m in np.flatnonzero(drawn < 0).tolist():
        usable = np.where((view.throughput[m] > 0) & (view.scale_factor[m] <= view.capacity), view.capacity, 0.0)
        if usable.sum() > 0:
            drawn[m] = rng.choice(len(usable), p=usable / usable.sum())
    return drawn


def candidates(view: View, order: Ints, types: Types) -> tuple[Rows, dict[str, Floats]]:
    """Return the rows of jobs in `order`, and the memory of drawn types."""
    if types == "fastest":
        return by_fastest(view, order), {}
    drawn = draw_types(view)
    known = order[drawn[order] >= 0]
    return Rows(known, drawn[known].astype(np.int64)), {"drawn_type": drawn}
