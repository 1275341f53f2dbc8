"""What a newcomer relies on before anything runs: the lock, the verbs of make, the environment, the links."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PINS = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tool(name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fake_python(folder: Path, answers: str) -> str:
    """A `python` that runs the shell line `answers`."""
    fake = folder / "python3"
    fake.write_text(f"#!/bin/sh\n{answers}\n")
    fake.chmod(0o755)
    return str(fake)


def make_env(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run tools/make_env in a bare copy of the project in `folder`."""
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "make_env", folder / "tools")
    shutil.copy(ROOT / "requirements.lock", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    environment = {**os.environ, "PYTHON": python}
    return subprocess.run(
        ["sh", "tools/make_env"], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "asked",
    [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["dev"],
        *PROJECT["build-system"]["requires"],
    ],
)
def test_every_package_the_project_asks_for_is_pinned_at_a_version_it_accepts(asked: str) -> None:
    requirement = Requirement(asked)
    assert requirement.specifier.contains(PINS[requirement.name])


def test_the_lock_names_no_place_to_download_from_and_hashes_every_pin() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|^\s*-|@ ", re.sub(r"--hash=sha256:[0-9a-f]{64}", "", lock), re.MULTILINE)
    for name, pin in PINS.items():
        assert re.search(rf"^{re.escape(name)}=={re.escape(pin)} \\\n    --hash=sha256:", lock, re.MULTILINE), name


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
def test_make_alone_lists_what_can_be_made() -> None:
    said = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    verbs = [line.split()[1] for line in said.splitlines() if line.startswith("make ")]
    assert {"demo", "test", "test-all", "check", "bench", "docs"} <= set(verbs)
    assert all(len(line.split()) > 3 for line in said.splitlines() if line.startswith("make "))


def test_a_python_too_old_is_answered_in_one_line_that_says_what_to_type(tmp_path: Path) -> None:
    refused = make_env(tmp_path, fake_python(tmp_path, "echo 3.9"))
    assert refused.returncode == 1
    assert "is Python 3.9; try: make test PYTHON=" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()


def test_a_python_without_venv_is_answered_with_the_package_that_brings_it(tmp_path: Path) -> None:
    no_venv = 'case "$2" in *ensurepip*) exit 1 ;; esac\necho 3.12'
    refused = make_env(tmp_path, fake_python(tmp_path, no_venv))
    assert refused.returncode == 1
    assert "apt install python3.12-venv" in refused.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "PYTHON=no-such-python does not run" in make_env(tmp_path, "no-such-python").stderr


def test_a_link_to_nothing_is_found_and_links_in_code_or_to_elsewhere_are_let_be(tmp_path: Path) -> None:
    (tmp_path / "here.md").write_text("# A `name` & more\n\n## Twice\n\n## Twice\n")
    (tmp_path / "page.md").write_text(
        "[1](here.md) [2](here.md#a-name--more) [3](here.md#twice-1) [4](https://example.org/x) `[5](code.md)`\n"
        "```\n[6](fenced.md)\n```\n"
        "[7](gone.md)\n"
        "[8](here.md#thrice)\n"
    )
    assert tool("check_docs").broken(tmp_path) == [
        "page.md:5: gone.md does not exist",
        "page.md:6: here.md#thrice names no heading of here.md",
    ]


def test_the_reference_has_the_docstring_of_every_public_class_of_a_room(tmp_path: Path) -> None:
    tool("make_reference").write_reference(tmp_path)
    inputs = (tmp_path / "inputs.md").read_text()
    assert "### `InvalidInput`" in inputs
    assert "Input that cannot be used." in inputs
    assert "(inputs.md)" in (tmp_path / "README.md").read_text()
