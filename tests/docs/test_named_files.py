"""Files, modules and identifiers that pages name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("CONTRIBUTING.md")])
NOTES = [
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    ROOT / "docs" / "architecture.md",
    ROOT / "CONTRIBUTING.md",
]
PACKAGES = {"eunomia": ROOT / "src", "eunomia_reproduction": ROOT / "reproduction" / "src"}
BASES = [ROOT, *PACKAGES.values(), *(base / name for name, base in PACKAGES.items()), ROOT / "src/eunomia/solvers"]
ROOMS = {path.name for path in (ROOT / "src" / "eunomia").iterdir() if path.is_dir()}
FOLDERS = {"src", "tests", "docs", "tools", "benchmarks", "examples", "reproduction"} | ROOMS
OTHERS = {"get_policy", "awk", "handle_exit"}  # of other systems
GROUPS = {"eunomia.commands", "eunomia.began"}  # no modules: entry points, and a key of metadata
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*")
DOTTED = re.compile(r"(?:eunomia|eunomia_reproduction)(?:\.\w+)+")


def quoted(page: Path) -> Iterator[str]:
    """What stands between backticks in a page, but for fenced code."""
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield from re.findall(r"`([^`\n]+)`", line)


def is_placeholder(path: str) -> bool:
    return any(part.partition(".")[0].isupper() for part in path.split("/"))


def missing_file(page: Path, path: str) -> bool:
    """Whether a path that reads as one of our files is none."""
    own = path.endswith(".py") or path.split("/", maxsplit=1)[0] in FOLDERS
    if not own or is_placeholder(path):
        return False
    return not any((base / f"{path}{end}").exists() for base in (*BASES, page.parent) for end in ("", ".py"))


def missing_name(dotted: str) -> bool:
    """Whether a dotted name leads to no module, and to no word in the last module on the way."""
    package, *parts = dotted.split(".")
    place = PACKAGES[package] / package
    for number, part in enumerate(parts):
        if (place / part).is_dir() or (place / f"{part}.py").is_file():
            place /= part
            continue
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        return number + 1 < len(parts) - 1 or not re.search(rf"\b{parts[-1]}\b", file.read_text(encoding="utf-8"))
    return False


@cache
def words() -> set[str]:
    """Every word of the sources, tests, tools and examples, and of the names of their files."""
    found: set[str] = set()
    for folder in ("src", "reproduction", "tests", "benchmarks", "tools", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".toml", ".js", ".html", ""):
                found.update(re.findall(r"\w+", path.stem))
                found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")) if path.is_file() else ())
    return found | set(re.findall(r"\w+", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))) | {"pyproject"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_no_file_and_no_module_that_is_gone(page: Path) -> None:
    names = list(quoted(page))
    paths = [name.split("::")[0] for name in names if PATH.fullmatch(name.split("::")[0])]
    dotted = [name.split("(")[0] for name in names if DOTTED.fullmatch(name.split("(")[0])]
    assert [path for path in paths if missing_file(page, path)] == []
    assert [name for name in dotted if missing_name(name) and name not in GROUPS] == []


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_names_nothing_that_no_source_knows(note: Path) -> None:
    names = [name for name in quoted(note) if " " not in name and not name.startswith("-")]
    unknown = {word for name in names for word in re.findall(r"[A-Za-z_]\w+", name)} - words() - OTHERS
    assert unknown == set()


def test_a_path_and_a_name_that_are_gone_are_found() -> None:
    page = ROOT / "docs" / "index.md"
    assert missing_file(page, "core/no_such_file.py") and not missing_file(page, "core/scheduler.py")
    assert missing_name("eunomia.core.scheduler.NoSuchClass") and not missing_name("eunomia.core.scheduler.Scheduler")
