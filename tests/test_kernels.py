"""Compiled kernels belong to the source that they were compiled from."""

from __future__ import annotations

from pathlib import Path

import pytest

import eunomia
from eunomia.kernels import KEPT, ROOMS, VARIABLE, settle


def a_package(folder: Path) -> Path:
    (folder / "core").mkdir()
    (folder / "core" / "moves.py").write_text("old = 1\n")
    return folder


def test_a_change_in_any_file_with_kernels_gives_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = a_package(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    before = settle(package)
    monkeypatch.delenv(VARIABLE)
    assert settle(package) == before
    monkeypatch.delenv(VARIABLE)
    (package / "core" / "moves.py").write_text("old = 12\n")
    assert settle(package) != before


def test_what_the_user_says_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "elsewhere")
    assert settle(a_package(tmp_path)) is None


def test_kernels_of_sources_that_are_gone_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = a_package(tmp_path)
    for age in range(9):
        (package / "__pycache__" / f"kernels-{age}").mkdir(parents=True)
    monkeypatch.delenv(VARIABLE, raising=False)
    settle(package)
    assert len(list((package / "__pycache__").glob("kernels-*"))) == KEPT - 1


def test_every_room_with_kernels_says_where_they_are_kept() -> None:
    package = Path(eunomia.__file__).parent
    made = {file.relative_to(package) for file in package.rglob("*.py") if "@njit(" in file.read_text(encoding="utf-8")}
    assert made
    assert [str(file) for file in made if not str(file).startswith(ROOMS)] == []
    assert [room for room in ROOMS if "import kernels" not in (package / room / "__init__.py").read_text("utf-8")] == []
