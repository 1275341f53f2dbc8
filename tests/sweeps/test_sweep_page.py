"""docs/sweep.md says what is: its example runs and prints what it shows, and it has every key of a sweep file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eunomia.sweeps import plan, read
from eunomia.sweeps.sweep_file import KEYS

if TYPE_CHECKING:
    from conftest import Desk

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(desk: Desk) -> None:
    text = PAGE.partition('```toml title="sweep.toml"\n')[2].partition("```")[0]
    command, *shown = PAGE.partition("```console\n$ eunomia ")[2].partition("```")[0].splitlines()
    desk.write("sweep.toml", text)
    assert desk.type(*shlex.split(command)) == 0, desk.stderr
    printed = desk.stdout.splitlines()
    assert [line for line in shown if line not in printed] == ["…"]


def test_the_page_has_every_key_of_a_sweep_and_no_other() -> None:
    section = PAGE.partition("## The file")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `\[*(\w+)", section, re.MULTILINE)
    assert sorted(listed) == sorted(KEYS)


def test_the_other_sweeps_that_are_shown_can_be_run(desk: Desk) -> None:
    desk.write("demo.toml", (ROOT / "examples" / "demo.toml").read_text(encoding="utf-8"))
    desk.write("runs.toml", PAGE.partition("as lines:\n\n```toml\n")[2].partition("```")[0])
    assert len(plan(read(desk.folder / "runs.toml"))) == 6
    assert len(plan(read(ROOT / "examples" / "sweep.toml"))) == 45


def test_the_python_of_the_page_runs(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.write("demo.toml", (ROOT / "examples" / "demo.toml").read_text(encoding="utf-8"))
    exec(PAGE.partition("```python\n")[2].partition("```")[0], {})  # noqa: S102  our own page
    assert len({float(line) for line in capsys.readouterr().out.splitlines()}) == 3
