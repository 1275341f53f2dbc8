"""Our policies, asked by the rounds of Shockwave's simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.answers import Order, Shares
from eunomia.model.arrays import Array, Floats
from eunomia.model.equal_share import alone_throughput
from eunomia.model.view import View
from eunomia.policies import build
from eunomia_reproduction.peers.shockwave.rounds import Allocate
from eunomia_reproduction.peers.shockwave.training import BatchScalingJob


def asking(policy: str, accelerator: str, capacity: int, *, gangs_as_one: bool = False) -> Allocate:
    """Return a function that asks a policy of shares or of an order, such as `makespan?types=agnostic`, about one type.

    It hands the policy what its last answer asked to keep, and what it asked to keep of each job. With `gangs_as_one`
    it sees that each job wants one accelerator. Of an order, a job that it lists gets 1 / scale factor of its time
    until it ends, and counts as running if that is all of it: so the fork of AlloX's policy does it.
    """
    asked = build(policy)
    by_job: dict[str, dict[str, float]] = {name: {} for name in asked.info.memory_columns}
    kept: dict[str, Array] = {}
    given: dict[str, float] = {}  # by an order: part of the time of each job

    def allocate(trainings: Sequence[BatchScalingJob], now: float) -> Floats:
        names = [training.name for training in trainings]
        columns = _columns(trainings, float(capacity), gangs_as_one=gangs_as_one)
        columns["on_type"] = np.array([0 if given.get(name) == 1.0 else -1 for name in names])
        remembered = {
            column: np.array([by_job[column].get(name, new) for name in names])
            for column, new in asked.info.memory_columns.items()
        }
        view = View(
            at=now,
            types=(accelerator,),
            jobs=len(names),
            columns={name: columns[name] for name in asked.info.needs},
            memory={**kept, **remembered},
        )
        answer = asked.decide(view)
        if isinstance(answer, Order):
            given.update((names[m], 1.0 / trainings[m].accelerators) for m in answer.rows.job.tolist())
            return np.array([given.get(name, 0.0) for name in names])
        assert isinstance(answer, Shares) and answer.rows is None
        for column, values in answer.memory.items():
            if column in by_job:
                by_job[column].update(zip(names, values.tolist(), strict=True))
            else:
                kept[column] = values
        return np.asarray(answer.x[:, 0])

    return allocate


def _columns(trainings: Sequence[BatchScalingJob], capacity: float, *, gangs_as_one: bool) -> dict[str, Array]:
    """Return what a policy may need to see of these jobs, but for where they run."""
    throughput = np.array([[training.rate] for training in trainings])
    size = np.array([1 if gangs_as_one else training.accelerators for training in trainings])
    all_of_it = np.array([capacity])
    return {
        "throughput": throughput,
        "scale_factor": size,
        "weight": np.array([training.weight for training in trainings]),
        "submitted": np.array([training.submitted for training in trainings]),
        "remaining": np.array([float(max(training.total - training.done, 0)) for training in trainings]),
        "capacity": all_of_it,
        "equal_share_throughput": alone_throughput(throughput, size, all_of_it),
    }
