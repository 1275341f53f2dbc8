"""Space sharing: two jobs on the same accelerators, as rows of the answer. Jobs of one kind and need are alike.

    Σ over rows with job m of X ≤ 1 for each job m;   a pair of scale factor z uses z accelerators of its type, once
    effective throughput of m = Σ_j T[m,j] X[m,j] + Σ_n,j T[m|n,j] X[(m,n),j]

T[m|n,j] throughput of m beside n on type j, 0 where they do not fit; only gangs of one scale factor share. The programs
have a row for each class of jobs, so their cost does not grow with the number of jobs.
Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI 2020, section 3.1 (space sharing).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import Floats
from eunomia.model.certificate import Certificate
from eunomia.model.view import View
from eunomia.policies.shares.believed import per, times
from eunomia.solvers.classes import Classes, group
from eunomia.solvers.pairs.expand import Entries, expand
from eunomia.solvers.pairs.histories import best_shared_total_own, highest_shared_level_own
from eunomia.solvers.pairs.sharing import Shared, best_shared_total, highest_shared_level

NEEDS = frozenset({"kind", "paired"})
MANY = 200  # classes; beyond, needs are told apart within a class of one kind


def check_space_sharing(space_sharing: object, types: str) -> None:
    """Raise ValueError for what is neither true nor false, and for pairs without speeds to judge them by."""
    if not isinstance(space_sharing, bool):
        raise ValueError(f"space_sharing is {space_sharing!r}; it is true or false")
    if space_sharing and types != "aware":
        raise ValueError("space_sharing=true and types=agnostic: pairs are chosen by their speeds; leave types out")


def highest_level(view: View, T: Floats, need: Floats) -> Shares:
    """Return rows with partners that raise the lowest Σ rate / need as far as it goes; T (job, type), need (job,)."""
    classes = group(view.kind, need)
    if len(classes.count) > MANY:
        return highest_own_level(view, T, need)
    rate, beside, size = _tables(view, T, classes)
    one = classes.representative
    second = per(np.ones(len(one)), rate.max(axis=1, initial=0.0))
    able = np.where(rate.any(axis=1), need[one], 0.0)
    found = highest_shared_level(rate, beside, size, classes.count, view.capacity, able, second=second)
    return _answer(found, expand(found, classes), float)


def highest_own_level(
    view: View,
    T: Floats,
    need: Floats,
    *,
    base: Floats | None = None,
    age: Floats | None = None,
    read: Callable[[float], float] = float,
) -> Shares:
    """Return rows with partners for needs that jobs of a kind do not share: need · t / (base - age · t), all (job,)."""
    classes = group(view.kind)
    rate, beside, size = _tables(view, T, classes)
    second = per(np.ones(len(rate)), rate.max(axis=1, initial=0.0))
    found = highest_shared_level_own(
        rate, beside, size, classes.of, view.capacity, need, base=base, age=age, second=second
    )
    return _answer(found.shared, found.entries(), read)


def best_total(
    view: View, T: Floats, v: Floats, *, per_column: Floats | None = None, floor: Floats | None = None
) -> Shares:
    """Return rows with partners that do the most Σ v · rate; v (job,), `per_column` (type,) what a type counts."""
    classes = group(view.kind, v)
    rate, beside, size = _tables(view, T, classes)
    one, C = classes.representative, view.capacity
    worth = v[one] if per_column is None else v[one][:, None] * per_column
    if floor is not None and floor.any():
        kept = best_shared_total_own(worth, rate, beside, size, classes.of, C, floor=floor)
        return _answer(kept.shared, kept.entries(), float)
    found = best_shared_total(worth, rate, beside, size, classes.count, C)
    return _answer(found, expand(found, classes), float)


def _tables(view: View, T: Floats, classes: Classes) -> tuple[Floats, Floats, Floats]:
    """Return rates alone (class, type), beside each other (class, class, type), and sizes (class,)."""
    one = classes.representative
    kind, rate, size = view.kind[one], T[one], view.scale_factor[one]
    beside = view.paired[kind[:, None], kind[None, :]]
    both = (rate[:, None] > 0) & (rate[None, :] > 0) & (size[:, None] == size[None, :])[:, :, None]
    return rate, np.where(both, beside, 0.0), size.astype(float)


def _answer(found: Shared, entries: Entries, read: Callable[[float], float]) -> Shares:
    proof = Certificate(objective=read(found.objective), bound=read(found.bound), price=found.price)
    return Shares(times(entries.share), Rows(entries.first, entries.column, partner=entries.second), certificate=proof)
