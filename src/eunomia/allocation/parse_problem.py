"""Parses named fields into a problem with the owners of its jobs, and reports everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eunomia.allocation.fields import AXES, AxisNames, first_of, read_numbers, read_texts
from eunomia.allocation.job_classes import PAIR_FIELDS, read_kinds
from eunomia.allocation.problem import AllocationProblem
from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.model.arrays import Array, Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.tenants import INNER, Tenant, Tenants

_OWNERS = ("entity", "entities", "entity_weight", "entity_inner")
REQUIRED = ("types", "capacity", "throughput")
_NAMED = ("types", "job_ids", "entity", "entities", "entity_weight", "entity_inner", "job_type", *PAIR_FIELDS)
FIELDS = (*AXES, *_NAMED)


def read_owners(
    fields: Mapping[str, object], names: AxisNames, problems: Problems
) -> tuple[Ints | None, Tenants | None]:
    """Return the row of each job's entity and the tree of entities; None where a field is missing or wrong."""
    before = problems.count
    if not any(field in fields for field in _OWNERS):
        return None, None
    if "entity" not in fields:
        field = next(field for field in _OWNERS if field in fields)
        problems.add("describes entities, but no job has one", "add entity, a name for each job", column=field)
        return None, None
    declared = _declared(fields, problems)
    owner = _owners(fields["entity"], list(declared), names, problems) if problems.count == before else None
    if owner is None or problems.count > before:
        return None, None
    tree = Tenants.of(dict.fromkeys(owner.tolist()), declared)
    row_of = {name: row for row, name in enumerate(tree.names)}
    distinct, place = np.unique(owner, return_inverse=True)
    return np.array([row_of[name] for name in distinct.tolist()], dtype=np.int64)[place], tree


def _declared(fields: Mapping[str, object], problems: Problems) -> dict[str, Tenant]:
    """Return the entities that have a weight, an inner policy or a place in `entities`, by name."""
    weights, inner = fields.get("entity_weight", {}), fields.get("entity_inner", {})
    listed: list[str] = []
    if "entities" in fields:
        texts = read_texts("entities", fields["entities"], None, problems, unique=True)
        listed = [] if texts is None else texts.tolist()
    if isinstance(weights, np.ndarray | list | tuple):
        cells = np.atleast_1d(weights).tolist() if isinstance(weights, np.ndarray) else weights
        listed = listed or [str(row) for row in range(len(cells))]
        if len(cells) != len(listed):
            problems.add(
                f"has {len(cells)} entries for {len(listed)} entities", "give one each", column="entity_weight"
            )
        weights = dict(zip(listed, cells, strict=False))
    if not isinstance(weights, Mapping) or not isinstance(inner, Mapping):
        column = "entity_inner" if isinstance(weights, Mapping) else "entity_weight"
        problems.add("must be an object", 'write it as in {"lab": 2}', column=column)
        return {}
    every = dict.fromkeys([*listed, *weights, *inner])
    return {name: _tenant(name, weights.get(name, 1.0), inner.get(name, "fairness"), problems) for name in every}


def _tenant(name: str, weight: Any, inner: Any, problems: Problems) -> Tenant:
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not 0 < weight < np.inf:
        rule = "must be a finite number above 0"
        problems.add(rule, "give 1 to an entity like any other", column=f"entity_weight.{name}", value=str(weight))
        weight = 1.0
    if inner not in INNER:
        rule = f"must be {' or '.join(map(repr, INNER))}"
        problems.add(rule, nearest(str(inner), INNER), column=f"entity_inner.{name}", value=inner)
        inner = "fairness"
    return Tenant(float(weight), inner)


def _owners(raw: object, known: list[str], names: AxisNames, problems: Problems) -> Array | None:
    """Return the entity of each job by name, (job,)."""
    are_rows = isinstance(raw, list | tuple) and set(map(type, raw)) == {int}
    cells = raw if isinstance(raw, np.ndarray) else np.array(raw) if are_rows else None
    if cells is not None and cells.dtype.kind in "iu" and cells.ndim == 1:
        return _by_row(cells, known, names, problems)
    texts = read_texts("entity", raw, names.jobs, problems)
    if texts is None or not known:
        return texts
    unknown = set(texts.tolist()) - set(known)
    for m in first_of(np.flatnonzero(np.isin(texts, sorted(unknown))), problems) if unknown else ():
        problems.add("there is no such entity", nearest(texts[m], known), row=m + 1, column="entity", value=texts[m])
    return texts


def _by_row(cells: Array, known: list[str], names: AxisNames, problems: Problems) -> Array | None:
    if len(cells) != names.jobs:
        problems.add(f"has {len(cells)} entries, but there are {names.jobs} jobs", "give one each", column="entity")
        return None
    bad = np.flatnonzero((cells < 0) | (cells >= len(known)) if known else cells < 0)
    for m in first_of(bad, problems):
        rule = f"must be a row of the entities, 0 to {len(known) - 1}" if known else "must be a row of the entities"
        problems.add(rule, "count from 0", row=m + 1, column="entity", value=int(cells[m]))
    if len(bad):
        return None
    rows, place = np.unique(cells, return_inverse=True)
    return np.array([known[row] if known else str(row) for row in rows.tolist()])[place]


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
