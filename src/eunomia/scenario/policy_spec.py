"""Parses a policy and its parameters in one word, such as `fifo?backfill=skip&types=agnostic`."""

from __future__ import annotations

import math
from datetime import date, time
from typing import TypeAlias

from eunomia.model.problems import InvalidInput, Problem
from eunomia.scenario.coercion import parse_value

Scalar: TypeAlias = int | float | bool | str


def parse_policy(spelling: str, file: str = "--policy", row: int | None = None) -> tuple[str, dict[str, Scalar]]:
    """Return the name and the parameters, each typed as TOML reads it.

    Raises `InvalidInput`, with `file` and `row`, for an invalid spelling.
    """
    name, question, rest = spelling.strip().partition("?")
    problems: list[Problem] = []
    parameters: dict[str, Scalar] = {}

    def refuse(value: str, rule: str, fix: str) -> None:
        problems.append(Problem(file=file, row=row, column="policy", value=value, rule=rule, fix=fix))

    if not name:
        refuse(spelling, "a policy has a name", "write it as in fifo?backfill=skip")
    for part in rest.split("&") if question else ():
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not key or not equals or not text:
            refuse(part, "a parameter is written key=value", "write it as in fifo?backfill=skip&types=agnostic")
        elif key == "name" or key in parameters:
            refuse(part, f"{key!r} is said twice", "say it once")
        elif (value := parse_scalar(text)) is None:
            refuse(part, "a parameter is a number, true, false or a text", "write such a value")
        else:
            parameters[key] = value
    if problems:
        raise InvalidInput(problems)
    return name, parameters


def parse_scalar(text: str, *, dates_as_text: bool = False) -> Scalar | None:
    """Return the typed value; None for anything but a number, true, false or a text (or a date, as a text)."""
    try:
        value = parse_value(text)
    except ValueError:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if dates_as_text and isinstance(value, (date, time)):
        return text
    return value if isinstance(value, (bool, int, float, str)) else None
