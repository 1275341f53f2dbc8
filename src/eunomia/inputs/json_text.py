"""JSON as others write it, read without its surprises: no NaN, no infinity, no name twice in an object."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from eunomia.inputs.problems import InvalidInput, Problem

_SPACE = re.compile(r"[ \t\n\r]*")
_written = json.JSONEncoder(default=repr).encode  # with every such character escaped
_SURROGATE = re.compile("[\ud800-\udfff]")
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
            text,
            object_pairs_hook=once if unique else None,
            parse_int=integer or _whole,
            parse_constant=refuse_constant if finite else None,
            parse_float=_finite if finite else None,
        )
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise NotJson("values are nested too deeply") from None
    if twice:
        raise NotJson(f"the key {twice[0][:80]!r} stands twice in one object", twice=tuple(twice))
    return value


def items_under(text: str, key: str) -> Iterator[tuple[int, Any]]:
    """Yield each item of the list under a key of a JSON object, and the row where it begins; no other is kept.

    Raises NotJson as `parse_json`, and where the object has no such list.
    """
    decoder = json.JSONDecoder(parse_int=_whole, parse_constant=refuse_constant, parse_float=_finite)
    row = seen = 0
    has_list = False
    try:
        at = _past(text, 0, "{")
        while text[at : at + 1] != "}":
            name, at = decoder.raw_decode(text, at)
            at = _past(text, _space(text, at), ":")
            if name == key and text[at : at + 1] == "[":
                has_list, at = True, _past(text, at, "[")
                while text[at : at + 1] != "]":
                    row, seen = row + text.count("\n", seen, at), at
                    item, end = decoder.raw_decode(text, at)
                    yield row + 1, item
                    at = _next(text, end, "]")
                at += 1
            else:
                _, at = decoder.raw_decode(text, at)
            at = _next(text, at, "}")
        if _space(text, at + 1) < len(text):
            raise json.JSONDecodeError("Extra data", text, at + 1)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise NotJson("values are nested too deeply") from None
    if not has_list:
        raise NotJson(f"there is no list {key!r}")


def _space(text: str, at: int) -> int:
    """Return the place of the next sign that is no space."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _past(text: str, at: int, sign: str) -> int:
    """Return the place after a sign that must come next, and the space that follows it."""
    at = _space(text, at)
    if text[at : at + 1] != sign:
        raise json.JSONDecodeError(f"Expecting {sign!r}", text, at)
    return _space(text, at + 1)


def _next(text: str, at: int, closing: str) -> int:
    """Return the place of the next value after a comma, or that of the closing sign."""
    at = _space(text, at)
    if text[at : at + 1] == closing:
        return at
    at = _past(text, at, ",")
    if text[at : at + 1] == closing:
        raise json.JSONDecodeError("Expecting value", text, at)
    return at


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


def json_pieces(fields: Mapping[str, Any], *, ascii_only: bool) -> Iterator[str]:
    """Yield the text of a JSON object, as `json.dumps` has it; a value may also be an array of floats.

    Such an array is over (row,) or (row, column). Raises ValueError for a number that is not finite.
    """
    encode = json.JSONEncoder(allow_nan=False, ensure_ascii=ascii_only).encode
    yield "{"
    for number, (name, value) in enumerate(fields.items()):
        yield f"{', ' * (number > 0)}{encode(name)}: "
        if getattr(value, "ndim", 0) > 0:  # a single number of numpy is written as Python writes it
            from eunomia.inputs.number_texts import json_array_pieces  # loads Arrow, which few commands need

            yield from json_array_pieces(value)
        elif isinstance(value, list) and set(map(type, value)) == {str}:
            text_of = {text: encode(text) for text in set(value)}  # of a million reasons few differ
            yield f"[{', '.join(map(text_of.__getitem__, value))}]"
        else:
            yield encode(value)
    yield "}"


def unusable_paths(value: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Return keys and numbers to each text of a JSON value that no program and no database takes, and what it has."""
    try:
        written = _written(value)
    except ValueError:  # a whole number of more digits than Python writes
        return list(_unusable(value, ()))
    if "\\u0000" not in written and "\\ud" not in written:
        return []
    return list(_unusable(value, ()))


def unusable_texts(value: Any) -> list[tuple[str, str]]:
    """Return the same with the place of each in words."""
    return [(_place(path), what) for path, what in unusable_paths(value)]


def _place(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _unusable(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            yield path, "half of a surrogate pair"
        elif "\0" in value:
            yield path, "a NUL character"
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from ((at, f"{what} in its name") for at, what in _unusable(name, (*path, name)))
            yield from _unusable(part, (*path, name))
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _unusable(part, (*path, number))


def refuse_constant(name: str) -> NoReturn:
    """Raise NotJson for NaN and infinities, which the standard library takes for JSON."""
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
