"""Space sharing: one program over pairs of classes against one over pairs of jobs, and against the same all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.packing.activities import ALONE, Activities, activities
from eunomia.solvers.packing.pair_programs import Shared, highest_shared_level
from eunomia.solvers.packing.per_job_needs import SharedByRow, highest_shared_level_own
from eunomia.solvers.packing.row_times import Entries, expand
from eunomia.solvers.program import INF, Program

TYPES = 3
MILLION = 1_000_000
SIZES = (1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Workload:
    """Jobs of a few classes; together they ask for eight times the cluster."""

    of: Ints  # (job,) class
    rate: Floats  # (class, type)
    beside: Floats  # (class, class, type)
    size: Floats  # (class,)
    capacity: Floats  # (type,)
    need: Floats  # (class,) throughput under an equal split, by accelerator and weight
    steps: Floats  # (job,)
    age: Floats  # (job,) seconds
    alone: Floats  # (job,) seconds on an equal part of the cluster

    def of_classes(self) -> tuple[Floats, Floats, Floats, Ints, Floats, Floats]:
        """Return what the class program is given."""
        count = np.bincount(self.of, minlength=len(self.size))
        return self.rate, self.beside, self.size, count, self.capacity, self.need

    def classes(self) -> Classes:
        """Return the jobs by class."""
        first = np.unique(self.of, return_index=True)[1]
        return Classes(self.of, np.bincount(self.of), first)


def draw(jobs: int, classes: int, seed: int = 1) -> Workload:
    """Draw a workload in which every class has a job."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(0, 1, (classes, 1)) + np.linspace(1.4, 0, TYPES) + rng.normal(0, 0.35, (classes, TYPES)))
    beside = rate[:, None, :] * rng.uniform(0.35, 0.95, (classes, classes, TYPES))
    size = rng.choice(SIZES, classes, p=(0.6, 0.2, 0.12, 0.08))
    of = rng.permutation(np.append(np.arange(classes), rng.integers(0, classes, jobs - classes)))
    capacity = np.ceil(size[of].sum() / 8 * rng.dirichlet(np.full(TYPES, 5.0)))
    equal = rate @ (capacity / capacity.sum())
    steps = np.exp(rng.normal(0, 2, jobs)) * equal[of] * 3600
    alone = steps / (equal[of] * np.minimum(1.0, capacity.sum() / (jobs * size[of])))
    need = rng.choice([1.0, 2.0], classes) * equal / size
    return Workload(of, rate, beside, size, capacity, need, steps, alone * rng.uniform(0, 2, jobs), alone)


def by_class(load: Workload) -> Shared:
    """Return the level over classes."""
    return highest_shared_level(*load.of_classes())


def by_job(load: Workload) -> Entries:
    """Return every job's shares, from the table of jobs on: count, solve, part."""
    classes = group(load.of)
    kind = load.of[classes.representative]
    beside = load.beside[np.ix_(kind, kind)]
    given = (load.rate[kind], beside, load.size[kind], classes.count, load.capacity, load.need[kind])
    return expand(highest_shared_level(*given), classes)


def own(load: Workload) -> SharedByRow:
    """Return the finish-time fair level; every job has its own steps, age and time alone."""
    given = (load.rate, load.beside, load.size, load.of, load.capacity, load.steps)
    return highest_shared_level_own(*given, base=load.alone, age=load.age)


def all_at_once(things: Activities, size: Floats, count: Ints, capacity: Floats, need: Floats) -> float:
    """Return the level by a program with all activities in it; for rows of their own, classes of one row each."""
    classes, n = len(size), len(things)
    variable = np.arange(n)
    pair = things.second != ALONE
    apart = pair & (things.first != things.second)
    twice = np.where(pair & ~apart, 2.0, 1.0)
    row = [things.first, things.second[apart], classes + things.first, classes + things.second[apart]]
    value = [things.first_rate * twice, things.second_rate[apart], twice, np.ones(int(apart.sum()))]
    row += [2 * classes + things.column, np.arange(classes)]
    value += [size[things.first], -need * count]
    column = [variable, variable[apart], variable, variable[apart], variable, np.full(classes, n)]
    sides = np.concatenate((np.full(classes, INF), count, capacity))
    low = np.append(np.zeros(classes), np.full(classes + len(capacity), -INF))
    cost = np.append(np.zeros(n), 1.0)
    program = Program.of_entries(cost, *(np.concatenate(each) for each in (row, column, value)), low, sides)
    return program.solve().objective


def classes_at_once(load: Workload) -> float:
    """Return the level over classes, all pairs in the program from the start."""
    rate, beside, size, count, capacity, need = load.of_classes()
    return all_at_once(activities(rate, beside, size, count, capacity), size, count, capacity, need)


def jobs_at_once(load: Workload) -> float:
    """Return the level by a program with a variable for each pair of jobs and type."""
    of, ones = load.of, np.ones(len(load.of), dtype=np.int64)
    size, beside = load.size[of], load.beside[np.ix_(of, of)]
    return all_at_once(
        activities(load.rate[of], beside, size, ones, load.capacity), size, ones, load.capacity, load.need[of]
    )


def dense_pass(load: Workload, found: Shared) -> Floats:
    """Return each job's time alone by type, dense: one pass that only writes what its class has."""
    each: Floats = (found.alone(TYPES) / found.count[:, None])[load.of]
    return each


def cases() -> Iterator[Comparison]:
    """Yield the comparisons, small ones first."""
    few = draw(128, 26)
    demand_equal(abs(by_class(few).objective / jobs_at_once(few) - 1) < 1e-6, "sharing by pairs of jobs", 128)
    by_job(few)
    yield compare(
        "sharing: level and shares", 128, partial(by_job, few), partial(jobs_at_once, few), "LP by pairs of jobs"
    )
    for classes in (26, 100):
        load = draw(MILLION, classes)
        demand_equal(abs(by_class(load).objective / classes_at_once(load) - 1) < 1e-6, "sharing", classes)
        ours, other = partial(by_class, load), partial(classes_at_once, load)
        yield compare(f"sharing: level, {classes} classes", MILLION, ours, other, "all pairs of classes at once")
        found = by_class(load)
        ours, other = partial(expand, found, load.classes()), partial(dense_pass, load, found)
        yield compare(f"sharing: shares, {classes} classes", MILLION, ours, other, "one dense write (job, type)")
    for jobs in (2_048, 100_000, MILLION):
        load = draw(jobs, 26)
        demand_equal(own(load).shared.gap <= 1e-9, "sharing, finish-time fair", jobs)
        yield compare(
            "sharing: finish-time fair level", jobs, partial(own, load), partial(by_job, load), "jobs all alike"
        )
