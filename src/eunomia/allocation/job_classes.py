"""Kinds of jobs (same job type and scale factor), and the throughput of each kind packed with each other.

`pairs`, and `pairs_apart` of pairs spread over machines, are each either a list of records {type, job_type,
partner_job_type, scale_factor, steps_per_s, partner_steps_per_s} with job types by name, or an array (kind, kind, type)
with job types as its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from eunomia.allocation.fields import AxisNames, first_of, is_number, read_texts, short
from eunomia.inputs.problems import Problems
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.spelling_suggestions import nearest

_Kind: TypeAlias = tuple[str, int]  # job type, scale factor
PAIR_FIELDS = ("pairs", "pairs_apart")
_RECORD = ("type", "job_type", "partner_job_type", "scale_factor", "steps_per_s", "partner_steps_per_s")


def read_kinds(
    fields: Mapping[str, object], size: Ints, names: AxisNames, problems: Problems
) -> dict[str, Ints | Floats | None]:
    """Return each job's row in the tables of pairs, `kind`, and the tables; None where a field is missing or wrong."""
    given = {field: fields[field] for field in PAIR_FIELDS if field in fields}
    if "job_type" not in fields:
        for field in given:
            problems.add("names pairs of job types, but no job has one", "add job_type", column=field)
        return {}
    raw, given = fields["job_type"], {field: pairs for field, pairs in given.items() if pairs is not None}
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iu":
        return _by_row(raw, given, size, names, problems)
    job_type = read_texts("job_type", raw, names.jobs, problems)
    if job_type is None:
        return {}
    kinds, kind = _distinct(job_type, size)
    return {"kind": kind, **{field: _table(field, given[field], kinds, names, problems) for field in given}}


def _distinct(job_type: Array, size: Ints) -> tuple[list[_Kind], Ints]:
    """Return the distinct kinds, and the kind of each job."""
    job_types, code = np.unique(job_type, return_inverse=True)
    base = int(size.max()) + 1
    codes, kind = np.unique(code * base + size, return_inverse=True)
    return [(str(job_types[c // base]), int(c % base)) for c in codes.tolist()], kind.astype(np.int64)


def _table(field: str, pairs: object, kinds: list[_Kind], names: AxisNames, problems: Problems) -> Floats | None:
    """Return steps/s (kind, kind, type) from records; 0 (they do not fit together) where there is no record."""
    if not isinstance(pairs, list | tuple):
        rule = "must be a list of records where job types are names"
        problems.add(rule, f"write {{{', '.join(_RECORD)}}} for each pair", column=field)
        return None
    row_of = {kind: row for row, kind in enumerate(kinds)}
    known = {job_type for job_type, _ in kinds}
    table = np.full((len(kinds), len(kinds), len(names.types)), np.nan)
    for row, record in enumerate(pairs, start=1):
        wrong = problems.count
        _check_record(field, record, row, known, names, problems)
        if problems.count == wrong:
            _enter(field, table, record, row, row_of, names, problems)
    half = np.isnan(table) & ~np.isnan(table.transpose(1, 0, 2))
    for i, other, j in first_of(np.argwhere(half), problems):
        rule = f"{kinds[other][0]} beside {kinds[i][0]} on {names.types[j]} is given, but not the other half"
        problems.add(rule, "add partner_steps_per_s to the record", column=field)
    return np.asarray(np.nan_to_num(table))


def _check_record(pairs: str, record: Any, row: int, known: set[str], names: AxisNames, problems: Problems) -> None:
    def wrong(field: str, rule: str, fix: str, value: object = None) -> None:
        problems.add(rule, fix, row=row, column=f"{pairs}.{field}" if field else pairs, value=value)

    if not isinstance(record, Mapping):
        wrong("", "must be an object", f"write {{{', '.join(_RECORD)}}}", short(record))
        return
    for field in record:
        if field not in _RECORD:
            wrong(str(field), "there is no such field", nearest(str(field), _RECORD))
    for field in ("job_type", "partner_job_type", "type", "steps_per_s"):
        if field not in record:
            wrong(field, "is missing", f"add {field}")
    for field, valid in (("job_type", known), ("partner_job_type", known), ("type", set(names.types))):
        if field in record and (not isinstance(record[field], str) or record[field] not in valid):
            fix = nearest(str(record[field]), valid)
            wrong(field, "no job is of this type" if field != "type" else "there is no such type", fix, record[field])
    for field in ("steps_per_s", "partner_steps_per_s"):
        value = record.get(field, 0.0)
        if not is_number(type(value)) or not 0 <= value < np.inf:
            wrong(field, "must be a finite number, at least 0", "give steps/s; 0 = they do not fit", short(value))
    value = record.get("scale_factor", 1)
    if type(value) is not int or value < 1:
        wrong("scale_factor", "must be a whole number, at least 1", "give the size of both gangs", value)


def _enter(
    field: str,
    table: Floats,
    record: Mapping[str, Any],
    row: int,
    row_of: dict[_Kind, int],
    names: AxisNames,
    problems: Problems,
) -> None:
    """Write a record into the table; a record of a kind that no job has is ignored."""
    size = record.get("scale_factor", 1)
    i, other = (row_of.get((record[name], size)) for name in ("job_type", "partner_job_type"))
    if i is None or other is None:
        return
    j = names.types.index(record["type"])
    entries = {(i, other): record["steps_per_s"]}
    if "partner_steps_per_s" in record:
        entries.setdefault((other, i), record["partner_steps_per_s"])
    for (first, second), speed in entries.items():
        if not np.isnan(table[first, second, j]):
            problems.add("this pair was given before", "give it once", row=row, column=field)
        table[first, second, j] = speed


def _by_row(
    raw: Array, given: Mapping[str, Any], size: Ints, names: AxisNames, problems: Problems
) -> dict[str, Ints | Floats | None]:
    """Read kinds that are rows of arrays."""
    before = problems.count
    if raw.shape != (names.jobs,):
        problems.add(f"has the shape {raw.shape}, but must be ({names.jobs},)", "give one each", column="job_type")
        return {}
    kind = raw.astype(np.int64)
    count = int(kind.max()) + 1
    for field, pairs in given.items():
        wanted = f"({count} or more, the same, {len(names.types)})"
        if not isinstance(pairs, np.ndarray) or pairs.dtype.kind not in "iuf" or pairs.ndim != 3:
            rule = f"must be an array of numbers of shape {wanted} where job types are rows of it"
            problems.add(rule, "save it as float64", column=field)
        elif pairs.shape[0] < count or pairs.shape[1:] != (pairs.shape[0], len(names.types)):
            problems.add(f"has the shape {pairs.shape}, but must be {wanted}", "see docs/solve.md", column=field)
        else:
            count = len(pairs)
            _check_speeds(field, pairs, problems)
    place = _check_rows(kind, count, size, problems)
    if problems.count == before and len(shapes := {np.shape(pairs) for pairs in given.values()}) > 1:
        rule = f"tables of pairs have one shape, not {' and '.join(map(str, sorted(shapes)))}"
        problems.add(rule, "give both the same rows", column=PAIR_FIELDS[-1])
    if problems.count > before:
        return {}
    kind = kind if given else place  # rows of no table: any numbers will do, and small ones cost least
    return {"kind": kind, **{field: np.asarray(pairs, dtype=np.float64) for field, pairs in given.items()}}


def _check_speeds(field: str, pairs: Array, problems: Problems) -> None:
    for at in first_of(np.argwhere(~((pairs >= 0) & (pairs < np.inf))), problems):
        rule = f"must be a finite number, at least 0, at {at}"
        problems.add(rule, "0 = they do not fit", row=at[0] + 1, column=field, value=pairs[tuple(at)])


def _check_rows(kind: Ints, count: int, size: Ints, problems: Problems) -> Ints:
    """Report kinds that are out of range, and gangs of another size than the first of their kind.

    Returns which of the distinct kinds each job is of, (job,).
    """
    for m in first_of(np.flatnonzero(kind < 0), problems):
        rule = f"must be a row of pairs, 0 to {count - 1}"
        problems.add(rule, "count from 0", row=m + 1, column="job_type", value=int(kind[m]))
    _, first, place = np.unique(kind, return_index=True, return_inverse=True)
    for m in first_of(np.flatnonzero((size != size[first[place]]) & (kind >= 0)), problems):
        rule = f"job types that are rows have one scale factor each, but row {first[place[m]] + 1} has another"
        problems.add(rule, "give it a row of pairs of its own", row=m + 1, column="job_type", value=int(kind[m]))
    return place
