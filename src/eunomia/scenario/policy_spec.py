"""Parses a policy and its parameters in one word, such as `fifo?backfill=skip&types=agnostic`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, time
from typing import TypeAlias

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.coercion import parse_value

Scalar: TypeAlias = int | float | bool | str


def parse_policy(spelling: str, file: str = "--policy", row: int | None = None) -> tuple[str, dict[str, Scalar]]:
    """Return the name and the parameters, each typed as TOML reads it.

    Raises `InvalidInput`, with `file` and `row`, for an invalid spelling.
    """
    name, question, rest = spelling.strip().partition("?")
    words = rest.split("&") if question else ()
    parameters, invalid = parse_pairs(words, "a parameter", "fifo?backfill=skip&types=agnostic", reserved=("name",))
    if not name:
        invalid.insert(0, (spelling, "a policy has a name", "write it as in fifo?backfill=skip"))
    if invalid:
        raise InvalidInput(
            [Problem(file=file, row=row, column="policy", value=v, rule=rule, fix=fix) for v, rule, fix in invalid]
        )
    return name, parameters


def parse_pairs(
    words: Iterable[str], noun: str, example: str, *, reserved: Iterable[str] = (), dates: bool = False
) -> tuple[dict[str, Scalar], list[tuple[str, str, str]]]:
    """Return the values of words written key=value, and (word, rule, fix) of each invalid word.

    A value is a number, true, false or a text, as TOML reads it; with `dates` also a date, as a text.
    """
    values: dict[str, Scalar] = {}
    invalid: list[tuple[str, str, str]] = []
    for word in words:
        key, equals, text = (part.strip() for part in word.partition("="))
        if not key or not equals or not text:
            invalid.append((word, f"{noun} is written key=value", f"write it as in {example}"))
        elif key in reserved or key in values:
            invalid.append((word, f"{noun} is given at most once", "leave one of the two out"))
        elif (value := _parse_scalar(text, dates)) is None:
            invalid.append((word, f"{noun} is a number, true, false or a text", "write such a value"))
        else:
            values[key] = value
    return values, invalid


def _parse_scalar(text: str, dates: bool) -> Scalar | None:
    """Return the typed value; None for a value of another type."""
    try:
        value = parse_value(text)
    except ValueError:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if dates and isinstance(value, (date, time)):
        return text
    return value if isinstance(value, (bool, int, float, str)) else None
