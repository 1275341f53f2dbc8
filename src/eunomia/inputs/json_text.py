"""JSON as others write it, read without its surprises: no NaN, no infinity, no name twice in an object."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

from eunomia.inputs.problems import InvalidInput, Problem

MOST_DIGITS = 300  # of a whole number: more are not a number of the machine


class NotJson(ValueError):
    """A text that is not strict JSON: what is wrong, and if its signs are, in which row and column.

    `twice` are the names that stand twice in an object.
    """

    def __init__(self, rule: str, row: int | None = None, column: int = 0, twice: tuple[str, ...] = ()) -> None:
        super().__init__(rule if row is None else f"{rule}, line {row}, column {column}")
        self.rule, self.row, self.column, self.twice = rule, row, column, twice


def parse_json(
    text: str, *, integer: Callable[[str], int | float] | None = None, unique: bool = True, finite: bool = True
) -> Any:
    """Return the value of a JSON text; `integer` reads whole numbers.

    Raises NotJson for what is not JSON or nested too deeply, for numbers too large, and if `unique` for names that an
    object has twice, if `finite` for NaN and infinities.
    """
    twice: list[str] = []

    def once(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            twice.append(next(name for name, count in Counter(name for name, _ in items).items() if count > 1))
        return found

    try:
        value = json.loads(
            text, object_pairs_hook=once if unique else None, parse_int=integer or _whole,
            parse_constant=_refuse if finite else None, parse_float=_finite if finite else None,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise NotJson("values are nested too deeply") from None
    if twice:
        raise NotJson(f"the key {twice[0][:80]!r} stands twice in one object", twice=tuple(twice))
    return value


def read_json(
    file: str, text: str, fix: str, *, integer: Callable[[str], int | float] | None = None, unique: bool = True
) -> Any:
    """Return the value of the JSON in a file. Raises InvalidInput, as `parse_json` refuses it, with `fix`.

    A number that is not finite passes: what reads the value says where it stands.
    """
    try:
        return parse_json(text, integer=integer, unique=unique, finite=False)
    except NotJson as error:
        rule = f"it is not JSON: {error.rule}" + (f" (column {error.column})" if error.row else "")
        problems = [
            Problem(file=file, column=name, rule="a name stands once in its object", fix="give it once")
            for name in error.twice
        ]
        raise InvalidInput(problems or [Problem(file=file, row=error.row, rule=rule, fix=fix)]) from None


def _refuse(name: str) -> NoReturn:
    raise NotJson(f"{name} is no number of JSON")


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise NotJson(f"the number {text[:40]} is too large")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotJson(f"the number {text[:40]} is too large")
    return number
