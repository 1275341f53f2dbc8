"""An answer as what differs from the one before it: what did not change is not written.

Most of an answer is arrays, which hold a value for each job of the view or for each candidate, or list candidates or
jobs; see `row_changes`. All else, from numbers to reasons, is one text, which is written where it differs. Which jobs
of the view before have gone, and which have come, is written once.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eunomia.model.answers import Answer, Grants, Order, Rows, Shares
from eunomia.model.arrays import NO_INTS, Array, Ints
from eunomia.model.wait_reason import WaitReasons
from eunomia.records.packed_objects import pack, unpack
from eunomia.records.record import from_json, to_json
from eunomia.records.row_changes import (
    GONE,
    NONE,
    Change,
    RowMap,
    changed_column,
    changed_list,
    column_change,
    list_change,
)

BY_JOB, BY_CANDIDATE, WHOLE = "job", "candidate", "whole"  # what an array has values for
CANDIDATES = "rows"  # the list of candidates
MEMORY = "memory "  # begins the names of arrays that a policy remembers
SMALL = 4096  # bytes up to which compressing well takes no time
_COLUMNS = ("job", "type", "partner", "shape", "within")  # of candidates
_JOBS = ("job", "partner")  # columns that hold rows of the view
_WANTED = {"row": WHOLE, "device": WHOLE, "price": WHOLE, "until": BY_CANDIDATE}  # by name; of all others by job
_NO_ROWS = Rows(NO_INTS, NO_INTS)
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(slots=True)
class AnswerParts:
    """An answer in parts, which share nothing with it.

    lists: by name, each by its columns, each (entry,).
    arrays: by name, with what it has values for.
    rest: what is in no array, as JSON.
    jobs: (row of the view,) numbers of its jobs, which rise, NONE of one that has no number any more; of an answer that
        was read only how many is known.
    """

    lists: dict[str, dict[str, Ints]] = field(default_factory=dict)
    arrays: dict[str, tuple[str, Array]] = field(default_factory=dict)
    rest: str = "{}"
    jobs: Ints = field(default_factory=lambda: NO_INTS)

    @property
    def head(self) -> str:
        """All but the values of lists and arrays, as JSON."""
        kinds = {name: kind for name, (kind, _) in self.arrays.items()}
        return _encode([self.rest, {name: list(columns) for name, columns in self.lists.items()}, kinds])


def change_of(before: AnswerParts, answer: Answer, jobs: Ints) -> tuple[str, AnswerParts]:
    """Return what of an answer differs from the one before, as text, and the parts of the answer.

    jobs: numbers of the jobs of the view that is answered; a job has the same in both views.
    """
    now = _parts(answer, jobs.copy())
    rows, head, candidates = RowMap.between(before.jobs, now.jobs), now.head, NO_INTS
    lists, arrays = dict[str, Change](), dict[str, Change]()
    for name, columns in now.lists.items():
        old, kept = _moved(before.lists.get(name, {}), list(columns), rows)
        found, source = list_change(old, list(columns.values()))
        if found is not None:
            lists[name] = found
        if name == CANDIDATES:
            candidates = np.append(kept, NONE)[source]
    for name, (kind, array) in now.arrays.items():
        found = column_change(_same_kind(before, name, kind), array, _before(kind, rows, candidates))
        if found is not None:
            arrays[name] = found
    change = {"jobs": rows.written(), "lists": lists, "arrays": arrays}
    content = pack({**change, "head": head} if head != before.head else change)
    return b64encode(zlib.compress(content, 6 if len(content) <= SMALL else 1)).decode(), now


def changed(before: AnswerParts, text: str) -> tuple[Answer, AnswerParts]:
    """Invert `change_of`. Raises an ArithmeticError, LookupError, TypeError or ValueError for other texts."""
    change = unpack(zlib.decompress(b64decode(text, validate=True)))
    rows, candidates = RowMap.read(change["jobs"]), NO_INTS
    rest, lists, kinds = json.loads(change.get("head", before.head))
    now = AnswerParts(rest=rest, jobs=np.arange(len(rows.before)))
    for name, columns in lists.items():
        old, kept = _moved(before.lists.get(name, {}), columns, rows)
        found, source = changed_list(old, change["lists"].get(name))
        now.lists[name] = dict(zip(columns, found, strict=True))
        if name == CANDIDATES:
            candidates = np.append(kept, NONE)[source]
    for name, kind in kinds.items():
        old_array, before_rows = _same_kind(before, name, kind), _before(kind, rows, candidates)
        now.arrays[name] = kind, changed_column(old_array, change["arrays"].get(name), before_rows)
    return _answer(now), now


def _same_kind(before: AnswerParts, name: str, kind: str) -> Array | None:
    was, array = before.arrays.get(name, ("", None))
    return array if was == kind else None


def _moved(old: Mapping[str, Ints], names: Sequence[str], rows: RowMap) -> tuple[list[Ints], Ints]:
    """Return the entries of a list before whose jobs are still there, by columns, and which entries they were."""
    if list(old) != list(names):
        return [NO_INTS for _ in names], NO_INTS
    columns = {name: rows.now[column] if name in _JOBS else column for name, column in old.items()}
    stays = np.logical_and.reduce([columns[name] != GONE for name in _JOBS if name in columns])
    return [column[stays] for column in columns.values()], np.flatnonzero(stays)


def _before(kind: str, rows: RowMap, candidates: Ints) -> Ints | None:
    return {BY_JOB: rows.before, BY_CANDIDATE: candidates}.get(kind)


# ---- an answer and its parts -----------------------------------------------------------------------------------------


def _parts(answer: Answer, jobs: Ints) -> AnswerParts:
    parts, reasons, proof = AnswerParts(jobs=jobs), WaitReasons.at(len(jobs), answer.why), answer.certificate
    left: dict[str, Any] = {"late": (), "why": {}}
    rows: Rows | None = getattr(answer, CANDIDATES)
    if rows is not None:
        columns = {name: getattr(rows, name) for name in _COLUMNS if getattr(rows, name) is not None}
        parts.lists[CANDIDATES] = {name: np.array(one, dtype=np.int64) for name, one in columns.items()}
        left[CANDIDATES] = _NO_ROWS
    for name in ("late", "stop"):
        if len(entries := getattr(answer, name, ())):
            parts.lists[name] = {"job": np.array(entries, dtype=np.int64)}
    arrays: dict[str, Array | None] = {name: getattr(answer, name, None) for name in ("x", "row", "device", "until")}
    left |= {name: NO_INTS for name in (*arrays, "stop") if hasattr(answer, name)}
    arrays |= {MEMORY + name: one for name, one in answer.memory.items() if isinstance(one, np.ndarray)}
    left["memory"] = {name: None if isinstance(one, np.ndarray) else one for name, one in answer.memory.items()}
    arrays |= {"why": reasons.code, "why numbers": reasons.numbers} if reasons else {}
    if proof is not None:
        arrays |= {"price": proof.price, "binding": proof.binding}
        left["certificate"] = replace(proof, price=None, binding=None)
    size = {BY_JOB: len(jobs), BY_CANDIDATE: -1 if rows is None else len(rows)}
    for name, array in arrays.items():
        if array is not None:
            wanted = _WANTED.get(name, BY_JOB)
            wanted = BY_CANDIDATE if name == "x" and rows is not None else wanted
            fits = array.ndim > 0 and len(array) == size.get(wanted)
            parts.arrays[name] = wanted if fits else WHOLE, array.copy()
    parts.rest = _encode([to_json(replace(answer, **left)), [to_json(one) for one in reasons.reasons]])
    return parts


def _answer(parts: AnswerParts) -> Answer:
    rest, reasons = json.loads(parts.rest)
    answer = from_json(rest)
    if not isinstance(answer, Shares | Order | Grants):
        raise ValueError("it is no answer")
    arrays = {name: array.copy() for name, (_, array) in parts.arrays.items()}
    found: dict[str, Any] = {name: arrays[name] for name in ("x", "row", "device", "until") if name in arrays}
    for name, columns in parts.lists.items():
        copies = {column: values.copy() for column, values in columns.items()}
        found[name] = Rows(**copies) if name == CANDIDATES else copies["job"]
    found["late"] = tuple(found["late"].tolist()) if "late" in found else ()
    found["memory"] = {name: arrays.get(MEMORY + name, one) for name, one in answer.memory.items()}
    if "why" in arrays:
        found["why"] = WaitReasons(arrays["why"], tuple(map(from_json, reasons)), arrays.get("why numbers"))
    if answer.certificate is not None:
        found["certificate"] = replace(answer.certificate, price=arrays.get("price"), binding=arrays.get("binding"))
    return replace(answer, **found)
