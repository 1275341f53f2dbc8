"""Parses a file and the options of its reader in one word, such as `machines.csv?only=v100,p100&date=2020-07-06`."""

from __future__ import annotations

from collections.abc import Iterable

from eunomia.model.problems import InvalidInput, Problem
from eunomia.scenario.policy_spec import Scalar, parse_scalar


def parse_file(spelling: str, column: str) -> tuple[str, dict[str, Scalar]]:
    """Return the path and the options. Raises InvalidInput, which names `column`, for an invalid option."""
    name, question, rest = spelling.strip().partition("?")
    return name, parse_options(rest.split("&") if question else (), column, name)


def parse_options(words: Iterable[str], column: str, file: str = "command line") -> dict[str, Scalar]:
    """Return options written key=value, each typed as TOML reads it; a date is a text. Raises InvalidInput."""
    options: dict[str, Scalar] = {}
    problems: list[Problem] = []
    for word in words:
        key, equals, text = (part.strip() for part in word.partition("="))
        value = parse_scalar(text, dates_as_text=True) if key and equals and text else None
        if value is None or key in options:
            rule = "this option is said twice" if key in options else "an option is written key=value"
            fix = "say it once" if key in options else "write it as in fraction=drop"
            problems.append(Problem(file=file, column=column, value=word, rule=rule, fix=fix))
        else:
            options[key] = value
    if problems:
        raise InvalidInput(problems)
    return options
