"""The tutorial does what it says: every file of it is written, every command run, every line shown is looked for."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import eunomia

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)
PROGRAMS = {"eunomia": [sys.executable, "-m", "eunomia"], "python": [sys.executable]}
NOT_RUN = {"sh"}  # how to install


@dataclass(frozen=True)
class Block:
    """A fenced block of the page."""

    line: int
    language: str
    file: str | None
    text: str


def blocks() -> Iterator[Block]:
    page = PAGE.read_text(encoding="utf-8")
    for found in BLOCK.finditer(page):
        yield Block(page[: found.start()].count("\n") + 1, found["language"], found["file"], found["text"])


def surroundings() -> dict[str, str]:
    """Return an environment in which the tutorial's commands find this Eunomia and print the same everywhere."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    package = str(Path(eunomia.__file__).parents[1])
    return {**ours, "PYTHONPATH": package, "COLUMNS": "120", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def run(command: str, folder: Path) -> str:
    """Return what a command prints; it has to succeed."""
    program, *rest = shlex.split(command)
    words = [*PROGRAMS.get(program, [program]), *rest]
    done = subprocess.run(
        words, cwd=folder, env=surroundings(), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"$ {command}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def demand_shown(shown: list[str], printed: str, command: str) -> None:
    """Every piece that is shown was printed, in this order; how lines are wrapped and padded does not matter."""
    rest = " ".join(printed.split())
    pieces = (" ".join(piece.split()) for line in shown for piece in line.split("…"))
    for piece in filter(None, pieces):
        _, found, rest = rest.partition(piece)
        assert found, f"$ {command}\ndoes not print {piece!r} where it is shown:\n{printed}"


def follow(block: Block, folder: Path) -> None:
    """Write the file of a block, or run its commands."""
    if block.file is not None:
        (folder / block.file).write_text(block.text, encoding="utf-8")
        return
    command, *shown = block.text.splitlines()
    demand_shown(shown, run(command.removeprefix("$ "), folder), command.removeprefix("$ "))


@pytest.mark.slow
def test_every_block_of_the_tutorial_does_what_it_shows(tmp_path: Path) -> None:
    for block in blocks():
        if block.language not in NOT_RUN:
            try:
                follow(block, tmp_path)
            except AssertionError as error:
                pytest.fail(f"docs/tutorial.md, line {block.line}: {error}")


def test_every_block_is_a_file_or_one_command() -> None:
    for block in blocks():
        commands = [line for line in block.text.splitlines() if line.startswith("$ ")]
        is_command = block.language == "console" and len(commands) == 1 and block.text.startswith("$ ")
        assert block.file or is_command or block.language in NOT_RUN, f"docs/tutorial.md, line {block.line}"


def test_what_is_shown_has_to_be_printed_in_order() -> None:
    demand_shown(["fifo … 4 …", "report: x"], "fifo     4  1.4 h\nreport:\n x\n", "as it is")
    with pytest.raises(AssertionError, match="does not print 'report: y'"):
        demand_shown(["fifo … report: y"], "fifo 4\nreport: x", "another name")
    with pytest.raises(AssertionError, match="does not print 'fifo'"):
        demand_shown(["report: x … fifo"], "fifo 4\nreport: x", "another order")
