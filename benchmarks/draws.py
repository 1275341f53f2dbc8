"""Random tables of jobs for the benchmarks: continuous speeds, so that no two rows are alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.solvers.water_filling.tree import Tree

SIZES = (1.0, 2.0, 4.0, 8.0)
HOUR = 3600.0


@dataclass(frozen=True)
class Table:
    """Jobs on a cluster; throughput lies in memory by type, as the engines read it.

    What programs are made of is written once, when the table is drawn: it is given, and no part of an answer.
    """

    throughput: Floats  # (job, type) steps/s
    size: Floats  # (job,) accelerators of a gang
    weight: Floats  # (job,)
    capacity: Floats  # (type,) accelerators
    steps: Floats  # (job,) still to do
    age: Floats  # (job,) seconds
    alone: Floats  # (job,) seconds the job would take on an equal part of the cluster
    tree: Tree  # tenants of the jobs

    @cached_property
    def equal(self) -> Floats:
        """Return the throughput under a time split by capacity (job,)."""
        return np.asarray(self.throughput @ (self.capacity / self.capacity.sum()))

    @cached_property
    def price(self) -> Floats:
        """Return US$ per accelerator-hour (type,)."""
        return np.geomspace(3.0, 0.3, len(self.capacity))

    @cached_property
    def promised(self) -> Floats:
        """Return a throughput that each job is promised (job,): nine tenths of that on an equal part."""
        return 0.9 * self.steps / self.alone

    @cached_property
    def unit(self) -> Floats:
        """Return throughput per unit of level (job,) where weights are the tenants' business: equal / size."""
        return self.equal / self.size

    @cached_property
    def need(self) -> Floats:
        """Return throughput per unit of level (job,) of max-min fairness: weight · equal / size."""
        return self.weight * self.unit

    @cached_property
    def cost(self) -> Floats:
        """Return minus what a job costs on each type (job, type), US$ per hour."""
        return -self.size[:, None] * self.price

    @cached_property
    def together(self) -> Tree:
        """Return all jobs as those of one tenant."""
        return together(len(self.size))

    def written(self) -> Table:
        """Return the table with all that it is asked for."""
        for name, value in vars(type(self)).items():
            if isinstance(value, cached_property):
                getattr(self, name)
        return self


def draw(jobs: int, types: int, seed: int, *, load: float = 8.0, spread: float = 0.2) -> Table:
    """Draw a table whose jobs ask for `load` times the cluster; `spread` is the deviation of the log of run times."""
    rng = np.random.default_rng((jobs, types, seed))
    log = np.linspace(1.4, 0.0, types)[:, None] + rng.normal(0, 0.35, (types, jobs)) + rng.normal(0, 1, jobs)
    throughput = np.exp(log).T
    size = rng.choice(SIZES, jobs, p=(0.7, 0.1, 0.15, 0.05))
    capacity = size.sum() / load * rng.dirichlet(np.full(types, 5.0))
    equal = throughput @ (capacity / capacity.sum())
    steps = equal * np.exp(rng.normal(0, spread, jobs)) * HOUR
    alone = steps / (equal * np.minimum(1.0, capacity.sum() / (jobs * size)))
    weight = rng.choice((1.0, 2.0), jobs)
    age = alone * rng.uniform(0, 2, jobs)
    return Table(throughput, size, weight, capacity, steps, age, alone, _tenants(rng, weight)).written()


def _tenants(rng: np.random.Generator, weight: Floats, tenants: int = 8) -> Tree:
    """Return jobs divided among tenants of weights 1 to 3, fair inside."""
    return Tree(
        parent=np.full(tenants, -1),
        weight=rng.integers(1, 4, tenants).astype(float),
        inner=tuple("share" for _ in range(tenants)),
        group_of=rng.integers(tenants, size=len(weight)),
        row_weight=weight,
    )


def together(jobs: int) -> Tree:
    """Return all jobs as those of one tenant."""
    return Tree(
        parent=np.full(1, -1),
        weight=np.ones(1),
        inner=("share",),
        group_of=np.zeros(jobs, dtype=np.int64),
        row_weight=np.ones(jobs),
    )
