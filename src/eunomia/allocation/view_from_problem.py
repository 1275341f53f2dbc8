"""Builds a policy's view of a problem: time 0, with the columns that the policy needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.allocation.problem import AllocationProblem
from eunomia.inputs.problems import Problems
from eunomia.model.apps import Apps, PausedJobs
from eunomia.model.arrays import Floats
from eunomia.model.curves import Curve
from eunomia.model.equal_share import alone_throughput
from eunomia.model.fair_share import FairShares, of_jobs
from eunomia.model.policy import Policy
from eunomia.model.topology import Topology
from eunomia.model.view import View

LEVELS = 4  # slot, machine, rack, more

Reader = Callable[[AllocationProblem], Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """How to compute a column, and the fields of the problem that this requires."""

    fields: tuple[str, ...]
    read: Reader


def _of(field: str) -> _Source:
    return _Source((field,), lambda problem: getattr(problem, field))


def _isolated(problem: AllocationProblem) -> Any:
    if problem.isolated_throughput is not None:
        return problem.isolated_throughput
    return alone_throughput(problem.placed_throughput, problem.scale_factor, problem.capacity)


def _submitted(problem: AllocationProblem) -> Any:
    assert problem.elapsed_s is not None  # `view_of` checked it
    return -problem.elapsed_s


def _hourly(problem: AllocationProblem) -> Floats:
    assert problem.entities is not None  # `view_of` checked it
    return np.zeros((1, len(problem.entities.names), 3))


def _usage(problem: AllocationProblem) -> Floats:
    assert problem.entities is not None  # `view_of` checked it
    return np.zeros(len(problem.entities.names))


def _machines(problem: AllocationProblem) -> Topology:
    """Return machines of the given sizes; the last of each type has the remaining accelerators."""
    assert problem.accelerators_per_node is not None  # `view_of` checked it
    nodes = []
    for count, size in zip(problem.capacity.astype(int).tolist(), problem.accelerators_per_node.tolist(), strict=True):
        sizes = [int(size)] * (count // int(size)) + [count % int(size)] * (count % int(size) > 0)
        nodes.append(np.array(sizes, dtype=np.int64))
    size, type = np.concatenate(nodes), np.repeat(np.arange(len(nodes)), [len(some) for some in nodes])
    return Topology(
        types=problem.types,
        type=np.repeat(type, size),
        node=np.repeat(np.arange(len(size)), size),
        node_type=type,
        first=np.concatenate(([0], np.cumsum(size)[:-1])).astype(np.int64),
        size=size,
        rack=("",) * len(size),
    )


def _run_time(problem: AllocationProblem) -> Floats:
    """Return the seconds that each job held accelerators, (job,)."""
    assert problem.attained_service is not None
    return np.asarray(problem.attained_service / problem.scale_factor)


def _first_started(problem: AllocationProblem) -> Floats:
    """Return when each job first ran, (job,): at its submission if it attained any service, else inf."""
    assert problem.attained_service is not None and problem.elapsed_s is not None
    return np.where(problem.attained_service > 0, -problem.elapsed_s, np.inf)


def _deserved(problem: AllocationProblem) -> Floats:
    """Return the accelerator-seconds that each job was entitled to, (job,), as if the present jobs had not changed."""
    assert problem.entities is not None and problem.entity is not None and problem.elapsed_s is not None
    tenants = len(problem.entities.names)
    demand, weight = (np.bincount(problem.entity, of, tenants) for of in (problem.scale_factor, problem.weight))
    own = FairShares(problem.entities).owned(float(problem.capacity.sum()), demand)
    rate = of_jobs(problem.scale_factor, problem.weight, weight[problem.entity], own[problem.entity])
    return np.asarray(rate * problem.elapsed_s)


def _apps(problem: AllocationProblem) -> Apps:
    """Return one app for each job, as if the present jobs had always been present."""
    assert problem.elapsed_s is not None  # `view_of` checked it
    n = problem.jobs
    names = tuple(str(problem.name(m)) for m in range(n))
    return Apps(names, -problem.elapsed_s, np.full(n, float(n)), np.zeros(n), PausedJobs.none(len(problem.types)))


SOURCES: Mapping[str, _Source] = {
    "capacity": _of("capacity"),
    "throughput": _of("placed_throughput"),
    "scale_factor": _of("scale_factor"),
    "weight": _of("weight"),
    "remaining": _of("steps_remaining"),
    "service": _of("attained_service"),
    "service_at_last_ask": _Source((), lambda p: np.full(p.jobs, np.nan)),
    "price": _of("price"),
    "spread_throughput": _of("throughput_apart"),
    "job_type": _Source((), lambda p: np.full(p.jobs, "", dtype=object)),  # a problem numbers its kinds of jobs
    "job_class": _of("kind"),
    "packed_throughput": _Source(("pairs",), lambda p: p.placed_pairs),
    "packed_spread_throughput": _Source(("pairs", "throughput_apart"), lambda p: p.spread_pairs),
    "equal_share_throughput": _Source((), _isolated),
    "deadline": _of("deadline_s"),
    "submitted": _Source(("elapsed_s",), _submitted),
    "topology": _Source(("accelerators_per_node",), _machines),
    "holder": _Source(("accelerators_per_node",), lambda p: np.full(int(np.floor(p.capacity).sum()), -1)),
    "tenant": _of("entity"),
    "tenants": _Source(("entity",), lambda p: p.entities),
    "running": _Source((), lambda p: np.zeros(p.jobs, dtype=np.bool_)),
    "on_type": _Source((), lambda p: np.full(p.jobs, -1)),
    "held_time_by_type": _Source((), lambda p: np.zeros(p.throughput.shape)),
    "run_time": _Source(("attained_service",), _run_time),
    "waiting_time": _Source(("elapsed_s",), lambda p: p.elapsed_s),
    "lease_end": _Source((), lambda p: np.full(p.jobs, np.inf)),
    "longest_lease": _Source((), lambda p: np.inf),  # a single decision: there is no next one
    "started": _Source((), lambda p: np.full(p.jobs, np.inf)),
    "first_started": _Source(("attained_service", "elapsed_s"), _first_started),
    "largest_tensor_fraction": _Source((), lambda p: np.full(p.jobs, np.nan)),  # a problem has job types, not models
    "past_service": _Source((), lambda p: np.zeros(0)),
    "fair_share_service": _Source(("entity", "elapsed_s"), _deserved),
    "tenant_hourly_usage": _Source(("entity",), _hourly),
    "tenant_usage": _Source(("entity",), _usage),
    "app": _Source((), lambda p: np.arange(p.jobs)),
    "apps": _Source(("elapsed_s",), _apps),
    "failures": _Source((), lambda p: np.zeros(p.jobs, dtype=np.int64)),
    "debug": _Source((), lambda p: np.zeros(p.jobs, dtype=np.bool_)),
    "demand": _Source((), lambda p: np.zeros((p.jobs, 2))),  # a problem has accelerators only
    "host_capacity": _Source((), lambda p: np.full(2, np.inf)),
    "total": _of("steps_remaining"),  # the steps done so far are unknown
    "slowdown": _Source((), lambda p: np.ones((p.jobs, LEVELS))),
    "loss_curve": _Source((), lambda p: np.tile(Curve(), (p.jobs, 1))),
    "losses": _Source((), lambda p: np.zeros((p.jobs, 0, 2))),  # no job has reported a loss
    "shapes": _Source((), lambda p: p.scale_factor[:, None]),
    "shape_throughput": _Source((), lambda p: p.placed_throughput[:, None, :]),
}
MEMORIES: Mapping[str, str] = {"alone_time": "isolated_time_s"}  # column of a policy's memory → field of the problem
# Columns that an answer is checked against.
ANSWERED = frozenset({
    "scale_factor", "throughput", "capacity", "packed_throughput", "job_class", "shapes", "shape_throughput",
    "topology", "holder", "lease_end",
})  # fmt: skip
_FILE_NAMES = {"kind": "job_type"}  # attribute of the problem → field of the file, where they differ


def view_of(problem: AllocationProblem, policy: Policy, file: str = "problem") -> View:
    """Return the policy's view: no job runs, and nothing has been allocated.

    Raises InvalidInput for every field that the policy needs and the problem does not have.
    """
    problems = Problems(file)
    needs = policy.info.needs
    for column in sorted(needs):
        for field in SOURCES[column].fields:
            name = _FILE_NAMES.get(field, field)
            if getattr(problem, field) is None and name not in {each.column for each in problems.kept}:
                rule = f"is missing, and {policy.info.name} needs it"
                problems.add(rule, f"add {name}, as in docs/solve.md", column=name)
    problems.raise_if_any()
    return View(
        at=0.0,
        types=problem.types,
        jobs=problem.jobs,
        columns={column: SOURCES[column].read(problem) for column in needs},
        memory={name: _memory(name, default, problem) for name, default in policy.info.memory_columns.items()},
    )


def known_columns(problem: AllocationProblem) -> dict[str, Any]:
    """Return the columns that an answer is checked against, as far as the problem has their fields."""
    return {
        column: source.read(problem)
        for column, source in SOURCES.items()
        if column in ANSWERED and all(getattr(problem, field) is not None for field in source.fields)
    }


def _memory(name: str, default: float, problem: AllocationProblem) -> Floats:
    """Return a column of the policy's memory, (job,): from the problem, else the default of a new job."""
    given = getattr(problem, MEMORIES[name]) if name in MEMORIES else None
    return np.full(problem.jobs, default) if given is None else given
