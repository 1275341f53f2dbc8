"""Values that were typed: as TOML reads them, alone, in `--set key=value`, or in `fifo?backfill=skip`."""

from __future__ import annotations

import math
import numbers
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from pathlib import PurePath
from typing import Any, TypeAlias

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.source_locations import KeyPath, SourceLocations, dotted
from eunomia.scenario.toml import MOST_DEPTH

_INFINITIES = {"inf": math.inf, "-inf": -math.inf}
Scalar: TypeAlias = int | float | bool | str
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_OVERRIDE = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=(.*)", re.DOTALL)
_EXAMPLE = "write it as in --set workload.load=2"


def plain(value: Any) -> Any:
    """Return a deep copy in dict, list, int, float, bool and str.

    For JSON's sake "inf" becomes the number, and a key that is null is left out.
    """
    match value:
        case Mapping():
            return {str(key): plain(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [plain(each) for each in value]
        case str():
            return _INFINITIES.get(value, value)
        case PurePath():
            return str(value)
        case bool():
            return value
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value)
    return value


def parse_value(text: str) -> Any:
    """Read a TOML value; a bare word is a text. Raises `ValueError` for quotes or brackets that are not TOML."""
    text = text.strip()
    if not text:
        raise ValueError("there is no value")
    try:
        table = tomllib.loads(f"value = {text}")
        if len(table) == 1:
            return table["value"]
    except RecursionError as error:
        raise ValueError("values are nested too deeply") from error
    except ValueError:
        if text[0] in "\"'[{":
            raise
    return text


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
