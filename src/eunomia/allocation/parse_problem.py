"""Parses named fields into a problem and reports everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eunomia.allocation.fields import AXES, AxisNames, first_of, read_numbers, read_texts
from eunomia.allocation.job_classes import PAIR_FIELDS, read_kinds
from eunomia.allocation.job_owners import read_owners
from eunomia.allocation.problem import AllocationProblem
from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.model.spelling_suggestions import nearest

REQUIRED = ("types", "capacity", "throughput")
_NAMED = ("types", "job_ids", "entity", "entities", "entity_weight", "entity_inner", "job_type", *PAIR_FIELDS)
FIELDS = (*AXES, *_NAMED)


def problem_of(fields: Mapping[str, object], file: str = "problem") -> AllocationProblem:
    """Return the problem that `fields` (lists or arrays) describe. Raises InvalidInput with every problem in `file`."""
    problems = Problems(file)
    names = _axes(fields, problems)
    if names is None:
        raise InvalidInput(problems.kept, problems.count)
    columns: dict[str, Any] = {
        field: read_numbers(field, fields[field], names, problems) for field in AXES if field in fields
    }
    if "job_ids" in fields:
        columns["job_ids"] = read_texts("job_ids", fields["job_ids"], names.jobs, problems, unique=True)
    columns["entity"], columns["entities"] = read_owners(fields, names, problems)
    _check_reach(columns, names, problems)
    _add_defaults(columns, names)
    columns |= read_kinds(fields, columns["scale_factor"], names, problems)
    problems.raise_if_any()
    return AllocationProblem(types=names.types, **columns)


def _axes(fields: Mapping[str, object], problems: Problems) -> AxisNames | None:
    """Return the lengths and names of the axes; None if they cannot be read. Reports unknown and missing fields."""
    for field in fields:
        if field not in FIELDS:
            problems.add("there is no such field", nearest(str(field), FIELDS), column=str(field))
    for field in REQUIRED:
        if field not in fields:
            problems.add("is missing", f"add {field}, as in docs/solve.md", column=field)
    types = read_texts("types", fields["types"], None, problems, unique=True) if "types" in fields else None
    rates = fields.get("throughput")
    sized = isinstance(rates, list | tuple) or (isinstance(rates, np.ndarray) and rates.ndim > 0)
    if "throughput" in fields and not sized:
        problems.add(
            "must be a list of lists of numbers, (job × type)", "give one list for each job", column="throughput"
        )
    jobs = len(rates) if sized else 0  # type: ignore[arg-type]
    if sized and jobs == 0:
        problems.add("has no job, and a problem has at least one", "give one list for each job", column="throughput")
    return None if types is None or jobs == 0 else AxisNames(jobs, tuple(types.tolist()))


def _add_defaults(columns: dict[str, Any], names: AxisNames) -> None:
    """Add the default scale factors and weights, and convert scale factors to integers."""
    size, weight = columns.get("scale_factor"), columns.get("weight")
    columns["scale_factor"] = np.ones(names.jobs, dtype=np.int64) if size is None else size.astype(np.int64)
    columns["weight"] = np.ones(names.jobs) if weight is None else weight


def _check_reach(columns: Mapping[str, Any], names: AxisNames, problems: Problems) -> None:
    """Report every job that could not run alone on the cluster."""
    capacity, rate, size = (columns.get(field) for field in ("capacity", "throughput", "scale_factor"))
    if capacity is None or rate is None:
        return
    if not capacity.any():
        problems.add("holds no accelerator", "give the accelerators of each type", column="capacity")
        return
    if size is None:
        size = np.ones(names.jobs)
    widest = float(capacity.max())
    fix = f"the largest type has {widest:g} accelerators; leave the job out"
    for m in first_of(np.flatnonzero(size > widest), problems):
        rule = "a gang must not be wider than every type"
        problems.add(rule, fix, row=m + 1, column="scale_factor", value=f"{size[m]:g}")
    runs = np.zeros(len(rate), dtype=bool)
    for j in range(rate.shape[1]):
        runs |= (rate[:, j] > 0) & (size <= capacity[j])
    fix = "give steps/s above 0 on a type that can hold the gang, or leave the job out"
    for m in first_of(np.flatnonzero((size <= widest) & ~runs), problems):
        problems.add("a job must be able to run on some type", fix, row=m + 1, column="throughput")
