"""A file and the options of its reader in one word, such as `machines.csv?only=v100,p100&date=2020-07-06`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, time
from typing import TypeAlias

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.coercion import parse_value

Option: TypeAlias = int | float | bool | str


def parse_file(spelling: str, column: str) -> tuple[str, dict[str, Option]]:
    """Return the path and the options. Raises InvalidInput, which names `column`, for an option that is none."""
    name, question, rest = spelling.strip().partition("?")
    return name, parse_options(rest.split("&") if question else (), column, name)


def parse_options(words: Iterable[str], column: str, file: str = "command line") -> dict[str, Option]:
    """Return options written key=value, each an int, float, bool or text, whichever TOML reads; a date is a text."""
    found: dict[str, Option] = {}
    problems: list[Problem] = []
    for word in words:
        key, equals, text = (part.strip() for part in word.partition("="))
        value = _option(text) if key and equals and text else None
        if value is None or key in found:
            rule = "this option is said twice" if key in found else "an option is written key=value"
            fix = "say it once" if key in found else "write it as in fraction=drop"
            problems.append(Problem(file=file, column=column, value=word, rule=rule, fix=fix))
        else:
            found[key] = value
    if problems:
        raise InvalidInput(problems)
    return found


def _option(text: str) -> Option | None:
    """Return the typed value; None for what an option cannot be."""
    try:
        value = parse_value(text)
    except ValueError:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, (date, time)):
        return text
    return value if isinstance(value, (bool, int, float, str)) else None
