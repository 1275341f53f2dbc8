"""A policy and its parameters in one word, such as `fifo?backfill=skip&types=agnostic`."""

from __future__ import annotations

import math
from typing import TypeAlias

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.coercion import parse_value

Parameter: TypeAlias = int | float | bool | str


def parse_policy(spelling: str, file: str = "--policy", row: int | None = None) -> tuple[str, dict[str, Parameter]]:
    """Return the name and the parameters, each an int, float, bool or text, whichever TOML reads.

    Raises `InvalidInput`, which names `file` and `row`, for a spelling that leaves something out.
    """
    name, question, rest = spelling.strip().partition("?")
    found: list[Problem] = []
    parameters: dict[str, Parameter] = {}

    def complain(value: str, rule: str, fix: str) -> None:
        found.append(Problem(file=file, row=row, column="policy", value=value, rule=rule, fix=fix))

    if not name:
        complain(spelling, "a policy has a name", "write it as in fifo?backfill=skip")
    for part in rest.split("&") if question else ():
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not key or not equals or not text:
            complain(part, "a parameter is written key=value", "write it as in fifo?backfill=skip&types=agnostic")
        elif key == "name" or key in parameters:
            complain(part, f"{key!r} is said twice", "say it once")
        elif (value := _parameter(text)) is None:
            complain(part, "a parameter is a number, true, false or a text", "write such a value")
        else:
            parameters[key] = value
    if found:
        raise InvalidInput(found)
    return name, parameters


def _parameter(text: str) -> Parameter | None:
    """Return the typed value; None for what a parameter cannot be."""
    try:
        value = parse_value(text)
    except ValueError:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else None
