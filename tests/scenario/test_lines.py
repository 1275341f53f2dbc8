"""Every key of a TOML file has the line on which it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.scenario import load_scenario
from eunomia.scenario.source_locations import KeyPath
from eunomia.scenario.toml import MOST_BYTES, lines_by_path

NASTY = '''# [not.a.table]
top = "a # no comment" # [nor.this]
"quoted key" = 1
'single.quoted' = 2
"esc\\u0061ped" = 3

[ spaced . "out" ] # comment
a.b.c = { x = [ 1, # one ] }
  2 ], "y" = '}' }
text = """
[fake]
key = 1 \\"""
end"""""
raw = \'\'\'
k = 2
it's\'\'\'\'
date = 1979-05-27 07:32:00
empty = [ ]
none = {}

[[rows]]
n = 1
[rows.inner]
z = [
  [1, 2],

  # between
  [{ q = 1 }],
]
[[rows]]
n = 2
[[rows.deep]]
d = 1
[[rows.deep]]
d = -inf
'''


def leaves(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every key and element."""
    if path:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from leaves(part, (*path, key))


def test_every_key_of_a_nasty_file_is_found_and_no_other() -> None:
    assert set(lines_by_path(NASTY)) == set(leaves(tomllib.loads(NASTY)))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("quoted key",), 3),
        (("escaped",), 5),
        (("spaced", "out"), 7),
        (("spaced", "out", "a", "b", "c", "x"), 8),
        (("spaced", "out", "a", "b", "c", "x", 1), 9),
        (("spaced", "out", "a", "b", "c", "y"), 9),
        (("spaced", "out", "raw"), 14),
        (("spaced", "out", "date"), 17),
        (("rows", 0), 21),
        (("rows", 0, "n"), 22),
        (("rows", 0, "inner", "z", 0), 25),
        (("rows", 0, "inner", "z", 1, 0, "q"), 28),
        (("rows", 1, "n"), 31),
        (("rows", 1, "deep", 1, "d"), 35),
    ],
)
def test_a_key_is_on_its_line(path: KeyPath, line: int) -> None:
    assert lines_by_path(NASTY)[path] == line


keys = st.text(alphabet="abc .#\"'[]=é", min_size=0, max_size=4)
scalars = st.one_of(st.integers(-9, 9), st.booleans(), st.text(alphabet="a#\"'[]{},\n\\", max_size=5))
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


def written(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{plain}"'
    if isinstance(value, list):
        return "[" + ", # ]\n".join(written(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)} = {written(part)}" for key, part in value.items()) + "}"
    return str(value)


@given(st.dictionaries(keys, st.dictionaries(keys, values, max_size=3), max_size=3), st.integers(0, 3))
def test_whatever_is_written_each_table_and_key_is_on_its_line(tables: dict[str, Any], gap: int) -> None:
    text, expected = "", {}
    for name, table in tables.items():
        text += "#[x]\n" * gap
        expected[(name,)] = text.count("\n") + 1
        text += f"[{written(name)}]\n"
        for key, value in table.items():
            expected[(name, key)] = text.count("\n") + 1
            text += f"{written(key)} = {written(value)}\n"
    assert tomllib.loads(text) == tables
    found = lines_by_path(text)
    assert {path: found[path] for path in expected} == expected
    assert set(found) == set(leaves(tables))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed = 0\n[cluster\n", 2),
        ("seed = 0\n\nseed = 1\n", 3),
        ("seed = \n", 1),
        ("a = 1\r\nb = 'x\r\n", 2),
        ("a = 1\nb = [1,\n2\n", 3),
        ("name = fifo\n", 1),
    ],
)
def test_a_syntax_error_is_answered_with_its_line(
    complaints: Callable[..., tuple[Problem, ...]], text: str, line: int
) -> None:
    (problem,) = complaints(text)
    assert problem.row == line
    assert problem.rule.startswith("this is not TOML")


def test_a_file_with_a_byte_order_mark_or_windows_line_ends_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_bytes(b"\xef\xbb\xbf[cluster]\r\naccelerators = { v100 = 4 }\r\n[workload]\r\ntrace = 'a.csv'\r\n")
    assert load_scenario(path).where(("workload", "trace")) == (str(path), 4)


@pytest.mark.parametrize(
    ("content", "row", "says"),
    [
        (b"seed = 0\n# \xff\n", 2, "not UTF-8"),
        (b"a" * (MOST_BYTES + 1), None, "at most"),
        (b"a = " + b"[" * 100_000, None, "nested too deeply"),
        (b"seed = " + b"9" * 5000, None, "not TOML"),
    ],
)
def test_what_cannot_be_a_scenario_is_refused(tmp_path: Path, content: bytes, row: int | None, says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=says) as refusal:
        load_scenario(path)
    assert refusal.value.problems[0].row == row


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be read") as refusal:
        load_scenario(tmp_path / name)
    assert refusal.value.problems[0].file == str(tmp_path / name)
