"""What is asked of the fields of a JSON object, and which of them do not answer to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

_MOST = 1e300
_SHOWN = 60  # characters of a value


class Wrong(NamedTuple):
    """One value that is not as it has to be."""

    column: str
    value: Any
    rule: str
    fix: str

    @property
    def shown(self) -> str | None:
        """Return the value as it stands in the file, cut where it is long; None for one that is missing."""
        if self.value is None:
            return None
        text = json.dumps(self.value, ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Field(NamedTuple):
    """What is asked of a value."""

    holds: Callable[[Any], bool]
    rule: str
    fix: str
    optional: bool = False  # it may be null, or left out

    def fits(self, value: Any) -> bool:
        """Say whether a value is as asked."""
        return (value is None and self.optional) or self.holds(value)

    def wrong(self, column: str, value: Any) -> Wrong:
        """Return what to say of a value that is not."""
        return Wrong(column, value, self.rule, self.fix)


def between(low: float, high: float = _MOST) -> Callable[[Any], bool]:
    """Return what says whether a value is a number within low … high."""
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def whole(low: int, high: int | None = None) -> Callable[[Any], bool]:
    """Return what says whether a value is a whole number within low … high."""
    return lambda value: type(value) is int and low <= value and (high is None or value <= high)


def is_text(value: Any) -> bool:
    """Say whether a value is a text that says something."""
    return isinstance(value, str) and value != ""


SEE = "see the README of data/gavel"
OBJECT = Field(lambda value: isinstance(value, dict), "must be an object", SEE)
YES_NO = Field(lambda value: isinstance(value, bool), "must be true or false", "give one of them, without quotes")


def wrong_fields(said: Mapping[str, Any], fields: Mapping[str, Field], prefix: str = "") -> Iterator[Wrong]:
    """Yield the fields of an object that are missing, or not as asked."""
    for name, field in fields.items():
        if name not in said and not field.optional:
            yield Wrong(prefix + name, None, "is missing", field.fix)
        elif not field.fits(said.get(name)):
            yield field.wrong(prefix + name, said[name])


def wrong_entries(column: str, said: Any, field: Field) -> Iterator[Wrong]:
    """Yield what is wrong with an object all of whose entries are of one kind."""
    if not isinstance(said, dict):
        yield OBJECT.wrong(column, said)
        return
    for key, value in said.items():
        if not field.fits(value):
            yield field.wrong(f"{column}.{key}", value)
