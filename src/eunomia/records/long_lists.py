"""Long lists in a snapshot: plain values, or jobs and estimates by field, in parts that are written once.

The lists of a scheduler's jobs only grow, and nothing in them changes. So a part that a later snapshot finds as it was
is taken over as it was written, and a snapshot of many jobs costs what has come since the one before.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite
from operator import is_
from typing import Any, TypeAlias

from eunomia.model.events import Estimated
from eunomia.model.job import Job
from eunomia.records.record import from_json, to_json

LONG = 512  # values: shorter lists are written whole
PART = 4096  # values
PLAIN = frozenset({str, bool, int, type(None)})
BY_FIELD: dict[str, type] = {cls.__name__: cls for cls in (Job, Estimated)}  # their values never change
encode = json.JSONEncoder(separators=(",", ":")).encode
Written: TypeAlias = tuple[int, bytes]  # length of a text, and the text compressed


def kind_of(values: Sequence[Any]) -> str | None:
    """Return "" for plain values, the name of a class for its instances; None for others, which may change."""
    kinds = set(map(type, values))
    if kinds <= PLAIN:
        return ""
    name = next(iter(kinds)).__name__
    return name if len(kinds) == 1 and BY_FIELD.get(name) in kinds else None


@dataclass(frozen=True, slots=True)
class LongList:
    """A copy of a list; its values do not change, so it can be written later, by any thread."""

    kind: str
    values: list[Any]

    def part(self, begin: int) -> str:
        """Return a part as JSON: values between commas, or how many objects and their columns."""
        values = self.values[begin : begin + PART]
        return encode([len(values), columns(values)]) if self.kind else encode(values)[1:-1]


class WrittenParts:
    """The parts of the last snapshot's long lists. Not thread-safe."""

    def __init__(self) -> None:
        self._kept: list[list[tuple[list[Any], Written]]] = []  # by number of the list, by number of the part

    def write(self, lists: Sequence[LongList]) -> list[list[Written]]:
        """Return the parts of each list."""
        self._kept = [self._parts(one, self._kept[n] if n < len(self._kept) else []) for n, one in enumerate(lists)]
        return [[written for _, written in parts] for parts in self._kept]

    def _parts(self, one: LongList, known: list[tuple[list[Any], Written]]) -> list[tuple[list[Any], Written]]:
        found = []
        for number, begin in enumerate(range(0, len(one.values), PART)):
            values = one.values[begin : begin + PART]
            if number < len(known) and is_same(values, known[number][0]):
                found.append(known[number])
            else:
                found.append((values, written(one.part(begin))))
        return found


def is_same(values: list[Any], others: list[Any]) -> bool:
    """Say whether two lists hold the same objects."""
    return len(values) == len(others) and all(map(is_, values, others))


def written(text: str) -> Written:
    """Return a text as parts are kept."""
    raw = text.encode()
    return len(raw), zlib.compress(raw, 1)


def columns(values: Sequence[Any]) -> dict[str, list[Any]]:
    """Return objects by field: one value where all have the same, else one each. Defaults are left out."""
    found: dict[str, list[Any]] = {}
    for field in fields(type(values[0])):
        column = [getattr(value, field.name) for value in values]
        first, kinds = column[0], set(map(type, column))
        is_plain = len(kinds) == 1 and (kinds <= PLAIN or (kinds == {float} and all(map(isfinite, column))))
        alike = column.count(first) == len(column) and len(kinds) == 1
        if alike and not kinds <= PLAIN:  # 0.0 and -0.0 are equal, and so are (1,) and (1.0,)
            alike = all(value is first for value in column) or len(set(map(repr, column))) == 1
        if not alike:
            found[field.name] = column if is_plain else [to_json(value) for value in column]
        elif repr(first) != repr(field.default):
            found[field.name] = [to_json(first)]
    return found


def from_columns(kind: type, count: int, found: dict[str, list[Any]]) -> list[Any]:
    """Invert `columns`. Raises ValueError where a column is shorter or longer than the others."""
    values = [[from_json(value) for value in column] for column in found.values()]
    long = [column * count if len(column) == 1 else column for column in values]
    return [kind(**dict(zip(found, row, strict=True))) for row in zip(*long, strict=True)]
