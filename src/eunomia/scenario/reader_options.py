"""Parses a file and the options of its reader in one word, such as `machines.csv?only=v100,p100&date=2020-07-06`."""

from __future__ import annotations

from collections.abc import Iterable

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.policy_spec import Scalar, parse_pairs


def parse_file(spelling: str, column: str) -> tuple[str, dict[str, Scalar]]:
    """Return the path and the options. Raises InvalidInput, which names `column`, for an invalid option."""
    name, question, rest = spelling.strip().partition("?")
    return name, parse_options(rest.split("&") if question else (), column, name)


def parse_options(words: Iterable[str], column: str, file: str = "command line") -> dict[str, Scalar]:
    """Return options written key=value, each typed as TOML reads it; a date is a text. Raises InvalidInput."""
    options, invalid = parse_pairs(words, "an option", "fraction=drop", dates=True)
    if invalid:
        raise InvalidInput([Problem(file=file, column=column, value=v, rule=rule, fix=fix) for v, rule, fix in invalid])
    return options
