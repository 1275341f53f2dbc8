"""Reads JSON without its surprises: no NaN, no infinities, no key twice, no deep nesting."""

from __future__ import annotations

import json
from typing import Any, NoReturn

MOST_DEPTH = 32


class NotJson(ValueError):
    """A body that is not strict JSON; the message says what and where."""


def parse(raw: bytes) -> Any:
    """Return the value in a body. Raises NotJson."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson(f"it is not UTF-8 (byte {error.start})") from None
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg}, line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJson(f"it is nested more than {MOST_DEPTH} deep") from None
    except NotJson:
        raise
    except ValueError as error:  # a number of too many digits
        raise NotJson(str(error).partition(";")[0]) from None


def _refuse(name: str) -> NoReturn:
    raise NotJson(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise NotJson(f"the number {text[:40]} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return made
