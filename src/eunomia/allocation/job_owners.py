"""The entities (tenants) that own jobs, by name or by row, with weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eunomia.allocation.fields import AxisNames, first_of, read_texts
from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Array, Ints
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.tenants import INNER, Tenant, Tenants

_OWNERS = ("entity", "entities", "entity_weight", "entity_inner")


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
        cells = weights.tolist() if isinstance(weights, np.ndarray) else weights
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
    count = len(known) or int(cells.max()) + 1
    bad = np.flatnonzero((cells < 0) | (cells >= count))
    for m in first_of(bad, problems):
        rule = f"must be a row of the entities, 0 to {count - 1}"
        problems.add(rule, "count from 0", row=m + 1, column="entity", value=int(cells[m]))
    return np.array(known or [str(row) for row in range(count)])[cells] if len(bad) == 0 else None
