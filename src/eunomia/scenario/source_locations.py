"""File and line of each key of a scenario, for error messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from eunomia.inputs.problems import InvalidInput, refused

KeyPath: TypeAlias = tuple[str | int, ...]  # ("cluster", "nodes", 0, "count")
Place: TypeAlias = tuple[str, int | None]  # file, 1-based line; None = not read from a file


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one key, without its file and line."""

    path: KeyPath
    value: Any  # None = the key is missing
    rule: str
    fix: str


@dataclass(frozen=True, slots=True)
class SourceLocations:
    """The place of every key that was written."""

    file: str
    by_path: Mapping[KeyPath, Place] = field(default_factory=dict)

    def where(self, path: KeyPath) -> Place:
        """Return the place of the key, or of the nearest table around it that was written."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.by_path:
                return self.by_path[path[:length]]
        return self.file, None

    def moved(self, path: KeyPath, place: Place) -> SourceLocations:
        """Return the places with `path` and all below it overwritten at `place`."""
        kept = {key: old for key, old in self.by_path.items() if key[: len(path)] != path}
        return SourceLocations(self.file, {**kept, path: place})


def refused_at(place: Place, column: str, value: object, rule: str, fix: str) -> InvalidInput:
    """Return the error for one problem of a key at its place; `value` is shown as written."""
    return refused(place[0], column, value, rule, fix, row=place[1])


def dotted(path: KeyPath) -> str:
    """Return the path as `--set` spells it."""
    return ".".join(str(part) for part in path)


def shown(value: Any) -> str | None:
    """Return a value as TOML writes it, truncated; None for a missing key."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 64:
            return f"a number of {value.bit_length()} bits"
        case dict():
            return "a table"
        case list() | tuple():
            return "an array"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
