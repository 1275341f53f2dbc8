"""The page of the architecture says what the source has: rooms in their order, files, names, and numbers of files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "eunomia"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> Iterator[list[str]]:
    """The cells of the tables of a section, without their heads."""
    for line in section(title).splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| file", "| behaviour")):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_picture_has_every_room_on_the_floor_that_the_import_contract_gives_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    floors = [set(re.findall(r"\w+", floor)) for floor in contracts["contracts"][0]["layers"]]
    picture = section("The rooms").split("```text\n")[1].split("```")[0]
    drawn = [set(re.split(r"\s{2,}", line)[0].split()) for line in picture.splitlines()]
    assert drawn == floors[1:]  # the first is __main__


def test_a_walk_names_what_its_files_define() -> None:
    steps = [*rows("The life of a trace job"), *rows("The life of a submission")]
    assert len(steps) > 20
    for file, names, _ in steps:
        source = (PACKAGE / quoted(file)[0]).read_text(encoding="utf-8")
        for name in quoted(names):
            assert re.search(rf"^\s*(?:async )?(?:def|class) {name}\b", source, re.MULTILINE), (file, name)


def test_the_files_to_open_are_there_and_counted() -> None:
    behaviours = list(rows("Files to open"))
    assert len(behaviours) == 4
    for _, before, now, read, files in behaviours:
        assert int(now) == len(quoted(files)) < int(before)
        assert int(read) == len(quoted(re.sub(r"\([^)]*\)", "", files)))
        assert all((PACKAGE / file).is_file() for file in quoted(files))


def test_where_to_add_something_is_a_place_in_the_package() -> None:
    for _, places, _ in list(rows("Where to add what"))[1:]:
        assert all((PACKAGE / place).exists() for place in quoted(places)), places
