"""What a policy sees of a problem: a view at time 0, with the columns that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.allocation import apps, fair_share_columns
from eunomia.allocation.problem import AllocationProblem
from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Floats
from eunomia.model.curves import Curve
from eunomia.model.equal_share import alone_throughput
from eunomia.model.policy import Policy
from eunomia.model.topology import Topology
from eunomia.model.view import View

Reader = Callable[[AllocationProblem], Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a column comes from: fields that must be said, and how they become the column."""

    fields: tuple[str, ...]
    read: Reader


def _of(field: str) -> _Source:
    return _Source((field,), lambda problem: getattr(problem, field))


def _isolated(problem: AllocationProblem) -> Any:
    if problem.isolated_throughput is not None:
        return problem.isolated_throughput
    return alone_throughput(problem.throughput, problem.scale_factor, problem.capacity)


def _submitted(problem: AllocationProblem) -> Any:
    assert problem.elapsed_s is not None  # `view_of` checked it
    return -problem.elapsed_s


def _machines(problem: AllocationProblem) -> Topology:
    """Return machines of the sizes that the problem says, the last of each type with what is left over."""
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


SOURCES: Mapping[str, _Source] = {
    "capacity": _of("capacity"),
    "throughput": _of("throughput"),
    "scale_factor": _of("scale_factor"),
    "weight": _of("weight"),
    "remaining": _of("steps_remaining"),
    "service": _of("attained_service"),
    "price": _of("price"),
    "apart": _of("throughput_apart"),
    "kind": _of("kind"),
    "paired": _of("pairs"),
    "isolated": _Source((), _isolated),
    "deadline": _of("deadline_s"),
    "submitted": _Source(("elapsed_s",), _submitted),
    "topology": _Source(("accelerators_per_node",), _machines),
    "holder": _Source(("accelerators_per_node",), lambda p: np.full(int(np.floor(p.capacity).sum()), -1)),
    "tenant": _of("entity"),
    "tenants": _Source(("entity",), lambda p: p.entities),
    "running": _Source((), lambda p: np.zeros(p.jobs, dtype=np.bool_)),
    "on_type": _Source((), lambda p: np.full(p.jobs, -1)),
    "received": _Source((), lambda p: np.zeros(p.throughput.shape)),
    "run_time": _Source(("attained_service",), fair_share_columns.run_time),
    "wait": _Source(("elapsed_s",), lambda p: p.elapsed_s),
    "until": _Source((), lambda p: np.full(p.jobs, np.inf)),
    "lease": _Source((), lambda p: np.inf),  # a single question: nobody says when there is another
    "started": _Source((), lambda p: np.full(p.jobs, np.inf)),
    "first_started": _Source(("attained_service", "elapsed_s"), fair_share_columns.first_started),
    "skew": _Source((), lambda p: np.full(p.jobs, np.nan)),  # a problem names kinds of jobs, not models
    "past_service": _Source((), lambda p: np.zeros(0)),
    "deserved": _Source(("entity", "elapsed_s"), fair_share_columns.deserved),
    "hourly": _Source(("entity",), fair_share_columns.hourly),
    "app": _Source((), lambda p: np.arange(p.jobs)),
    "apps": _Source(("elapsed_s",), apps.apps),
    "attempts": _Source((), lambda p: np.zeros(p.jobs, dtype=np.int64)),
    "demand": _Source((), lambda p: np.zeros((p.jobs, 2))),  # a problem tells of accelerators only
    "room": _Source((), lambda p: np.full(2, np.inf)),
    "total": _of("steps_remaining"),  # what was done is not said
    "slowdown": _Source((), apps.slowdown),
    "loss_curve": _Source((), lambda p: np.tile(Curve(), (p.jobs, 1))),
    "losses": _Source((), lambda p: np.zeros((p.jobs, 0, 2))),  # nobody has run yet
    "shapes": _Source((), lambda p: p.scale_factor[:, None]),
    "shape_throughput": _Source((), lambda p: p.throughput[:, None, :]),
}
MEMORIES: Mapping[str, str] = {"alone_time": "isolated_time_s"}  # fields that a policy may remember, by its word
_SAID_AS = {"kind": "job_type"}  # fields of a file that have another name in the problem


def view_of(problem: AllocationProblem, policy: Policy, file: str = "problem") -> View:
    """Return what the policy sees: nobody runs, nothing was given yet.

    Raises InvalidInput for every field that the policy needs and the problem does not say.
    """
    problems = Problems(file)
    needs = policy.info.needs
    for column in sorted(needs):
        _check_said(column, problem, policy.info.name, problems)
    problems.raise_if_any()
    return View(
        at=0.0,
        types=problem.types,
        jobs=problem.jobs,
        columns={column: SOURCES[column].read(problem) for column in needs},
        memory={name: _remembered(name, value, problem) for name, value in policy.info.remembers.items()},
    )


def _remembered(name: str, fresh: float, problem: AllocationProblem) -> Floats:
    """Return what the policy remembers of each job, (job,): what the problem says, else what it would of a new job."""
    said = getattr(problem, MEMORIES[name]) if name in MEMORIES else None
    return np.full(problem.jobs, fresh) if said is None else said


def _check_said(column: str, problem: AllocationProblem, policy: str, problems: Problems) -> None:
    for field in SOURCES[column].fields:
        name = _SAID_AS.get(field, field)
        if getattr(problem, field) is None and name not in {one.column for one in problems.kept}:
            problems.add(f"is missing, and {policy} needs it", f"add {name}, as in docs/solve.md", column=name)
