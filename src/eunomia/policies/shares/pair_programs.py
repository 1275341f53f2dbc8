"""Space sharing: two jobs on the same accelerators, as rows of the answer, by classes of jobs with one kind and need.

    Σ over rows with job m of X ≤ 1 for each job m;   a pair of scale factor z uses z accelerators of its type, once
    effective throughput of m = Σ_j T[m,j] X[m,j] + Σ_n,j T[m|n,j] X[(m,n),j]

T[m|n,j] throughput of m beside n on type j, 0 where they do not fit; only gangs of one scale factor share. The programs
have a row for each class of jobs, so their cost does not grow with the number of jobs.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 3.1 (space sharing).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import Array, Bools, Floats
from eunomia.model.certificate import Certificate
from eunomia.model.products import dot
from eunomia.model.view import View
from eunomia.policies.shares.share_inputs import clip_shares, divide
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.fractional_program import Tried, climb
from eunomia.solvers.min_late_jobs import LateRows
from eunomia.solvers.packing.activities import ALONE, activities
from eunomia.solvers.packing.analytic_center import inside_shared
from eunomia.solvers.packing.min_late_jobs import late_shared_rows
from eunomia.solvers.packing.nash_welfare import largest_shared_product
from eunomia.solvers.packing.pair_programs import Shared, best_shared_total, highest_shared_level, worth_of
from eunomia.solvers.packing.per_job_needs import best_shared_total_own, highest_shared_level_own
from eunomia.solvers.packing.row_times import Entries, expand, expand_evenly
from eunomia.solvers.packing.water_filling import fill_shared
from eunomia.solvers.water_filling.tree import Tree

MANY = 200  # most classes by kind and need; beyond, classes are by kind, and needs differ within a class


def highest_level(view: View, T: Floats, need: Floats) -> Shares:
    """Return rows with partners of the largest minimum Σ rate / need; T (job, type), need (job,)."""
    classes = group(view.job_class, need)
    if len(classes.count) > MANY:
        return highest_own_level(view, T, need)
    rate, beside, size = _tables(view, T, classes)
    first_job = classes.representative
    second = divide(np.ones(len(first_job)), rate.max(axis=1, initial=0.0))
    able = np.where(rate.any(axis=1), need[first_job], 0.0)
    optimum = highest_shared_level(rate, beside, size, classes.count, view.capacity, able, second=second)
    return _answer(optimum, expand(optimum, classes), float)


def inside_level(view: View, T: Floats, need: Floats) -> Shares:
    """Return rows with every partner that fits where an interior-point solver stops: a level up to 1e-6 lower."""
    classes = group(view.job_class, need)
    rate, beside, size = _tables(view, T, classes)
    able = np.where(rate.any(axis=1), need[classes.representative], 0.0)
    optimum = highest_shared_level(rate, beside, size, classes.count, view.capacity, able)
    asks = able > 0
    if not (asks.any() and optimum.objective > 0):
        return _answer(optimum, expand(optimum, classes), float)
    kept = np.flatnonzero(asks)
    things = activities(
        rate[kept], beside[np.ix_(kept, kept)], size[kept], classes.count[kept], view.capacity, worthwhile=False
    )
    time, level = inside_shared(things, size[kept], classes.count[kept], view.capacity, able[kept], optimum.objective)
    second = np.where(things.second == ALONE, ALONE, kept[things.second])
    inside = replace(
        optimum, objective=level, activities=replace(things, first=kept[things.first], second=second), time=time
    )
    return _answer(inside, expand_evenly(inside, classes), float, tolerance=1e-5)


def highest_own_level(
    view: View,
    T: Floats,
    need: Floats,
    *,
    base: Floats | None = None,
    age: Floats | None = None,
    read: Callable[[float], float] = float,
) -> Shares:
    """Return rows with partners for needs that differ within a kind: need · t / (base - age · t), all (job,)."""
    classes, rate, beside, size = _classes(view, T)
    second = divide(np.ones(len(rate)), rate.max(axis=1, initial=0.0))
    optimum = highest_shared_level_own(
        rate, beside, size, classes.of, view.capacity, need, base=base, age=age, second=second
    )
    return _answer(optimum.shared, optimum.entries(), read)


def best_total(
    view: View, T: Floats, v: Floats, *, per_column: Floats | None = None, floor: Floats | None = None
) -> Shares:
    """Return rows with partners with the most Σ v · rate; v (job,), `per_column` (type,) factor of a type."""
    optimum, entries = _best_total(view, T, v, per_column=per_column, floor=floor)
    return _answer(optimum, entries(), float)


def cheapest(view: View, T: Floats, v: Floats, fee: Floats, floor: Floats) -> tuple[Shares, float]:
    """Return rows with partners with the most Σ v · rate − fees above the floors, and the fees.

    T (job, type), v, floor (job,), fee (type,) of an accelerator for all of the time.
    """
    optimum, entries = _best_total(view, T, v, floor=floor, fee=fee)
    return _answer(optimum, entries(), float), float(dot(fee, optimum.taken))


def best_ratio(view: View, T: Floats, v: Floats, fee: Floats, floor: Floats) -> Shares:
    """Return rows with partners with the most Σ v · rate / Σ fee · accelerators above the floors.

    T (job, type), v, floor (job,), fee (type,) above 0. Raises NoOptimum when no ratio is proven to 1e-9.
    """

    def at(ratio: float, scale: float) -> Tried[tuple[Shared, Callable[[], Entries]]]:
        optimum, entries = _best_total(view, T, v, floor=floor, fee=ratio * fee, scale=scale)
        paid = float(dot(fee, optimum.taken))
        return Tried((optimum, entries), optimum.objective + ratio * paid, paid, optimum.bound)

    climbed = climb(at)
    (_, entries), (last, _) = climbed.best, climbed.last
    least = -_best_total(view, T, 0 * v, floor=floor, fee=fee)[0].bound if climbed.excess > 0 and floor.any() else 0.0
    bound = min(climbed.bound(least), _dearest(view, T, v, fee))
    return _answer(replace(last, objective=climbed.ratio, bound=bound), entries(), float)


def _best_total(
    view: View,
    T: Floats,
    v: Floats,
    *,
    per_column: Floats | None = None,
    floor: Floats | None = None,
    fee: Floats | None = None,
    scale: float = 0.0,
) -> tuple[Shared, Callable[[], Entries]]:
    """Return the shares by class, and a function that expands them to jobs."""
    classes, rate, beside, size = _classes(view, T, v)
    first_job, C = classes.representative, view.capacity
    worth = v[first_job] if per_column is None else v[first_job][:, None] * per_column
    if floor is not None and floor.any():
        solution = best_shared_total_own(worth, rate, beside, size, classes.of, C, floor=floor, fee=fee, scale=scale)
        return solution.shared, solution.entries
    optimum = best_shared_total(worth, rate, beside, size, classes.count, C, fee=fee, scale=scale)
    return optimum, lambda: expand(optimum, classes)


def _dearest(view: View, T: Floats, v: Floats, fee: Floats) -> float:
    """Return a bound of the ratio for any floors: the ratio of the best single row."""
    classes, rate, beside, size = _classes(view, T, v)
    columns = activities(rate, beside, size, classes.count, view.capacity)
    worth = worth_of(columns, v[classes.representative], size)
    return float((worth / (size[columns.first] * fee[columns.column])).max(initial=0.0))


def fairest_product(view: View, T: Floats, weight: Floats) -> Shares:
    """Return rows with partners that have the largest Σ weight · log rate; weight (job,)."""
    classes, rate, beside, size = _classes(view, T, weight)
    optimum = largest_shared_product(rate, beside, size, classes.count, view.capacity, weight[classes.representative])
    return _answer(optimum, expand(optimum, classes), float, tolerance=1e-6)


@dataclass(frozen=True, slots=True)
class PackedShares:
    """Levels of jobs, filled by a tree, and the shares that reach them."""

    level: Floats  # (job,)
    served: Bools  # (job,) some type can run it
    own: Bools  # (job,) limited by its own full speed, not by a price
    price: tuple[Floats, ...]  # of each phase, (type,)
    gap: float
    entries: Entries


def filled(view: View, T: Floats, need: Floats, tree: Tree) -> PackedShares:
    """Return levels rate / need, filled by a tree whose rows are the jobs; T (job, type), need (job,) above 0."""
    first = np.array([False, *(inner == "first" for inner in tree.inner)])
    # jobs served one after another are classes of their own
    single = np.where(first[tree.group_of + 1], np.arange(view.jobs), -1)
    classes, rate, beside, size = _classes(view, T, need, tree.row_weight, tree.group_of, single)
    first_job, of = classes.representative, classes.of
    fewer = replace(tree, group_of=tree.group_of[first_job], row_weight=tree.row_weight[first_job] * classes.count)
    optimum = fill_shared(rate, beside, size, classes.count, view.capacity, need[first_job], fewer)
    entries = expand(optimum.shared, classes)
    return PackedShares(optimum.level[of], optimum.served[of], optimum.own[of], optimum.price, optimum.gap, entries)


def late_jobs(view: View, T: Floats, floor: Floats) -> LateRows:
    """Return the jobs whose floors, (job,) steps/s, are dropped: the least total weight under space sharing."""
    classes, rate, beside, size = _classes(view, T)
    return late_shared_rows(rate, beside, size, classes.of, view.capacity, floor, view.weight)


def _classes(view: View, T: Floats, *keys: Array) -> tuple[Classes, Floats, Floats, Floats]:
    """Return the classes of jobs by kind and keys, (job,) each, with their `_tables`."""
    classes = group(view.job_class, *keys)
    return classes, *_tables(view, T, classes)


def _tables(view: View, T: Floats, classes: Classes) -> tuple[Floats, Floats, Floats]:
    """Return solo rates (class, type), rates in pairs (class, class, type), and sizes (class,)."""
    first_job = classes.representative
    kind, rate, size = view.job_class[first_job], T[first_job], view.scale_factor[first_job]
    beside = view.packed_throughput[kind[:, None], kind[None, :]]
    both = (rate[:, None] > 0) & (rate[None, :] > 0) & (size[:, None] == size[None, :])[:, :, None]
    return rate, np.where(both, beside, 0.0), size.astype(float)


def _answer(optimum: Shared, entries: Entries, read: Callable[[float], float], tolerance: float = 1e-9) -> Shares:
    proof = Certificate(
        objective=read(optimum.objective),
        bound=read(optimum.bound),
        price=optimum.price,
        scale=optimum.scale,
        tolerance=tolerance,
    )
    return shares_of(entries, proof)


def shares_of(entries: Entries, proof: Certificate) -> Shares:
    """Return rows with partners and their certificate as an answer."""
    return Shares(
        clip_shares(entries.share), Rows(entries.first, entries.column, partner=entries.second), certificate=proof
    )
