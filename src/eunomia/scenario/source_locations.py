"""Where each key of a scenario was written, so that a later complaint can name file and line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]  # ("cluster", "nodes", 0, "count")
Place: TypeAlias = tuple[str, int | None]  # file, 1-based line; None = not read from a file


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with one key, before it is known where that key was written."""

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
        """Return the places after `path` and all below it were written again elsewhere."""
        kept = {key: old for key, old in self.by_path.items() if key[: len(path)] != path}
        return SourceLocations(self.file, {**kept, path: place})


def dotted(path: KeyPath) -> str:
    """Return the path as `--set` spells it."""
    return ".".join(str(part) for part in path)


def shown(value: Any) -> str | None:
    """Return a value as TOML writes it, cut short; None for a key that is missing."""
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
