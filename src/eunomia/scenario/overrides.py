"""Applies `--set key=value` of the command line to a scenario."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.policy_spec import parse_value
from eunomia.scenario.source_locations import KeyPath, SourceLocations, dotted
from eunomia.scenario.toml import MOST_DEPTH

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_OVERRIDE = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=(.*)", re.DOTALL)
_EXAMPLE = "write it as in --set workload.load=2"


def override(data: dict[str, Any], places: SourceLocations, overrides: Sequence[str]) -> SourceLocations:
    """Set each `key.path=value` in `data`, in order; return the places with those keys at their `--set`.

    A value is read as TOML, a bare word as a text. Raises `InvalidInput` with every one that cannot be set.
    """
    problems: list[Problem] = []
    for text in overrides:
        file = f"--set {text}"
        try:
            path, value = _parse(text)
            places = places.moved(put(data, path, value), (file, None))
        except ValueError as error:
            rule, fix = error.args if len(error.args) == 2 else (f"this is not TOML: {error}", _EXAMPLE)
            problems.append(Problem(file=file, rule=rule, fix=fix))
    if problems:
        raise InvalidInput(problems)
    return places


def key_path(key: str) -> list[str] | None:
    """Return the parts of a dotted key such as `workload."odd name"`; None for an invalid key."""
    match = _OVERRIDE.fullmatch(f"{key}=0")
    return None if match is None else _split_key(match[1])


def _split_key(key: str) -> list[str]:
    return [part[1:-1] if part[0] in "\"'" else part for part in re.findall(_PART, key)]


def _parse(text: str) -> tuple[list[str], Any]:
    match = _OVERRIDE.fullmatch(text)
    if match is None:
        raise ValueError("an override is written key=value", _EXAMPLE)
    if not match[2].strip():
        raise ValueError("there is no value", f'{_EXAMPLE}, and an empty text as ""')
    return _split_key(match[1]), parse_value(match[2])


def put(data: dict[str, Any], path: list[str], value: Any) -> KeyPath:
    """Set the value, creating tables as needed; return the path with its array indices as numbers.

    Raises `ValueError(rule, fix)` for a path that is too long, passes through a value, or past the end of an array.
    """
    if len(path) > MOST_DEPTH:
        raise ValueError(f"a key has at most {MOST_DEPTH} parts", "give a key of the scenario")
    table: Any = data
    done: KeyPath = ()
    for depth, part in enumerate(path):
        if not isinstance(table, (dict, list)):
            raise ValueError(f"{dotted(done)} is not a table", f"set {dotted(done)} itself, or a key of a table")
        key: Any = _parse_index(table, part, done) if isinstance(table, list) else part
        done = (*done, key)
        if depth == len(path) - 1:
            table[key] = value
        elif isinstance(table, dict):
            table = table.setdefault(key, {})
        else:
            table = table[key]
    return done


def _parse_index(array: list[Any], part: str, done: KeyPath) -> int:
    if not part.isdecimal() or int(part) >= len(array):
        rule = f"{dotted(done)} is an array of {len(array)}, and {part!r} is none of its elements"
        raise ValueError(rule, f"give a number from 0 to {len(array) - 1}")
    return int(part)
