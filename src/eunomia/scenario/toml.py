"""Parses TOML with the line of every key."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eunomia.inputs.json_text import unusable_paths
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario.source_locations import KeyPath, SourceLocations, dotted

MOST_BYTES = 4 * 2**20  # a scenario is written by hand; a larger file is another one
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?""""{0,2}' + r"|'''.*?''''{0,2}" + r'|"(?:[^"\\]|\\.)*"' + r"|'[^']*'", re.DOTALL
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
MOST_DEPTH = 32  # tables in tables; a scenario has five
_DEEP_KEY = re.compile(rf"^[ \t\[]*(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{MOST_DEPTH}}}", re.MULTILINE)
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_file(path: Path, what: str = "scenario") -> tuple[dict[str, Any], SourceLocations]:
    """Read a TOML file; messages call it `what`. Raises `InvalidInput` when it cannot be read or is not TOML."""
    file = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except OSError as error:
        rule = f"the {what} cannot be read ({error.strerror or error})"
        raise _refusal(file, None, None, rule, "give the path of a TOML file that exists and may be read") from error
    if len(raw) > MOST_BYTES:
        raise _refusal(file, None, None, f"a {what} has at most {MOST_BYTES} bytes", f"give a {what}, not its trace")
    try:
        return read_text(raw.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        row = raw.count(b"\n", 0, error.start) + 1
        raise _refusal(file, row, None, "the text is not UTF-8", "save the file as UTF-8") from error


def read_text(text: str, file: str) -> tuple[dict[str, Any], SourceLocations]:
    """Return the values and the place of every key. Raises `InvalidInput` with the line of a syntax error."""
    text = text.replace("\r\n", "\n")
    if deep := _DEEP_KEY.search(text):  # the parser's time is quadratic in the parts
        row = text.count("\n", 0, deep.start()) + 1
        raise _refusal(file, row, None, f"a key has at most {MOST_DEPTH} parts", "flatten it")
    try:
        data = tomllib.loads(text)
        lines = lines_by_path(text)
    except RecursionError as error:
        raise _refusal(file, None, None, "values are nested too deeply", "flatten them") from error
    except ValueError as error:
        raise _syntax_error(text, file, str(error)) from error
    places = SourceLocations(file, {path: (file, line) for path, line in lines.items()})
    refuse_unusable_texts(data, places)
    return data, places


def refuse_unusable_texts(data: Mapping[str, Any], places: SourceLocations) -> None:
    """Raise `InvalidInput` for texts that no program and no database takes, each at its line."""
    if wrong := unusable_paths(data):
        raise InvalidInput([
            Problem(file=places.where(path)[0], row=places.where(path)[1], column=_escaped(dotted(path)),
                    rule=f"has {what}", fix="leave it out")
            for path, what in wrong
        ])  # fmt: skip


def _escaped(text: str) -> str:
    """Return a name as it can be shown."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _syntax_error(text: str, file: str, message: str) -> InvalidInput:
    """Return the error of the parser's message, whose text holds the position, as a problem with its line."""
    position = _AT.search(message)
    lines = text.split("\n")
    row = None if position is None else int(position[1] or max(1, len(lines) - (lines[-1] == "")))
    written = None if row is None else lines[min(row, len(lines)) - 1].strip()[:80] or None
    fix = "fix this line, or the one before it: a text stands in quotes, a key has one value, brackets are closed"
    return _refusal(file, row, written, f"this is not TOML: {_AT.sub('', message)}", fix)


def _refusal(file: str, row: int | None, value: str | None, rule: str, fix: str) -> InvalidInput:
    return InvalidInput([Problem(file=file, row=row, value=value, rule=rule, fix=fix)])


def lines_by_path(text: str) -> dict[KeyPath, int]:
    """Return the 1-based line on which each key, table and array element of valid TOML begins."""
    return _Scan(text).document()


class _Scan:
    """Scans TOML that the standard library has accepted, so without checks."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.newlines = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[KeyPath, int] = {}
        self.elements: dict[KeyPath, int] = {}  # arrays of tables: elements so far

    def document(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        self.at = self.at if match is None else match.end()
        return self.at

    def _note(self, path: KeyPath, start: int) -> None:
        if len(path) > MOST_DEPTH:
            raise RecursionError
        self.lines.setdefault(path, bisect_left(self.newlines, start) + 1)

    def _header(self) -> KeyPath:
        start, double = self.at, self.text.startswith("[[", self.at)
        self.at += 1 + double
        *outer, last = self._key()
        self.at = self.text.index("]", self.at) + 1 + double
        path: KeyPath = ()
        for part in outer:
            path = self._latest((*path, part))
            self._note(path, start)
        path = (*path, last)
        self._note(path, start)
        if double:
            self.elements[path] = self.elements.get(path, 0) + 1
        path = self._latest(path)
        self._note(path, start)
        return path

    def _latest(self, path: KeyPath) -> KeyPath:
        """Return the path of the last element if `path` is an array of tables, else `path`."""
        return (*path, self.elements[path] - 1) if path in self.elements else path

    def _key(self) -> list[str]:
        """Read a key, dotted or not."""
        parts = []
        while True:
            self._skip(_BLANK)
            start = self.at
            quoted = self.text[start] in "\"'"
            self._skip(_STRING if quoted else _BARE_KEY)
            raw = self.text[start : self.at]
            parts.append(tomllib.loads(f"key = {raw}")["key"] if quoted else raw)
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _pair(self, table: KeyPath) -> None:
        start, path = self.at, table
        for part in self._key():
            path = (*path, part)
            self._note(path, start)
        self.at += 1  # the equals sign
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip(_BLANK)
        match self.text[self.at]:
            case "[":
                self._array(path)
            case "{":
                self._inline_table(path)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_BARE_VALUE)

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while not self._at_end("]"):
            self._note((*path, index), self.at)
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while not self._at_end("}"):
            self._pair(path)

    def _at_end(self, bracket: str) -> bool:
        """Skip a comma or the closing bracket; return whether it was the bracket."""
        self._skip(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
            self._skip(_BLANK)
        if self.text[self.at] != bracket:
            return False
        self.at += 1
        return True
