"""The page of the solvers names the files, functions and limits that the code has, and leaves out no file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOLVERS = ROOT / "src" / "eunomia" / "solvers"
PAGE = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
PICTURE = PAGE.split("```mermaid\n")[1].split("```")[0]
TABLES, EVERY = PAGE.split("```\n")[1].split("## Every file")
FILES = {str(path.relative_to(SOLVERS)) for path in SOLVERS.rglob("*.py") if path.name != "__init__.py"}


def rows(text: str) -> list[list[str]]:
    """The cells of the tables of a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if "| ---" not in line]


def test_the_picture_and_the_tables_name_files_that_are_there() -> None:
    named = re.findall(r"[a-z_/]+\.py", PICTURE + TABLES)
    assert len(named) > 40
    assert set(named) <= FILES


def test_what_stands_in_brackets_after_a_file_is_defined_there() -> None:
    pairs = re.findall(r"`([a-z_/]+\.py)` \((`\w+`(?:, `\w+`)*)\)", TABLES)
    assert len(pairs) > 20
    for file, names in pairs:
        source = (SOLVERS / file).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^def {name}\b", source, re.MULTILINE), (file, name)


@pytest.mark.parametrize("cells", [cells for cells in rows(TABLES) if len(cells) == 6 and cells[0] != "question"])
def test_a_limit_has_the_value_that_the_page_states(cells: list[str]) -> None:
    file, name = re.findall(r"`([^`]+)`", cells[2])[:2]
    source = (SOLVERS / file).read_text(encoding="utf-8")
    assert re.search(rf"^{name} = {cells[3]}\b", source, re.MULTILINE), cells


def test_no_file_of_the_solvers_is_missing() -> None:
    listed = set()
    for folder, files in rows(EVERY)[1:]:
        above = folder.strip("`") if folder.startswith("`") else ""
        listed |= {f"{above}{name}" for name in re.findall(r"`(\w+\.py)`", files)}
    alone = set(re.findall(r"`(\w+\.py)`", TABLES))
    assert listed <= FILES
    assert listed | alone == FILES
