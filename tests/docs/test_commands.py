"""The commands that the pages show are there, with the options that they are shown with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from eunomia.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def wrong_options(text: str) -> list[str]:
    """Return each option in a line with a command that has no such option."""
    found = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        for shown in re.findall(r"\beunomia ([^`|#]*)", line):
            command: Any = get_command(app)
            words = shown.split()
            while words and words[0] in getattr(command, "commands", ()):
                command = command.commands[words.pop(0)]
            if hasattr(command, "commands"):  # a sentence about Eunomia
                continue
            options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
            given = words[: words.index("--")] if "--" in words else words
            names = [re.sub(r"[=.,;:)('\"…].*", "", word) for word in given]
            found += [f"{name} of eunomia {shown}" for name in names
                      if re.fullmatch(r"--[a-z][a-z-]*", name) and name not in options]  # fmt: skip
    return found


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_each_option_that_a_page_shows_is_one_of_its_command(page: Path) -> None:
    assert wrong_options(page.read_text(encoding="utf-8")) == []


def test_an_option_that_no_command_has_is_found() -> None:
    assert wrong_options("`eunomia submit --accelerators 2 -- train --mine`") == [
        "--accelerators of eunomia submit --accelerators 2 -- train --mine"
    ]
