"""docs/solve.md says what is: every field, every name of an answer; its commands and its Python run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.allocation import solve
from eunomia.allocation.parse_problem import FIELDS, REQUIRED
from eunomia.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "solve.md").read_text(encoding="utf-8")


def names(heading: str) -> list[str]:
    """Return the names in the first column of the table below a heading."""
    section = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    return [name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def test_the_page_has_every_field_and_no_other() -> None:
    assert sorted(names("The problem")) == sorted(FIELDS)
    assert re.findall(r"^\| `(\w+)` .*always needed", PAGE, re.MULTILINE) == list(REQUIRED)


def test_the_page_has_every_name_of_an_answer_in_order() -> None:
    assert names("The answer") == list(solve("fifo", ROOT / "examples" / "problem.json").as_dict())


@pytest.mark.parametrize("line", re.findall(r"^eunomia (.*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_go_well(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.stderr


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for number, block in enumerate(blocks):
        exec(block, {})  # noqa: S102  our own page
        if number == 0:
            ask = ["solve", "--policy", "isolated", "--problem", "large.npz", "--out", "answer.arrow"]
            assert CliRunner().invoke(app, ask).exit_code == 0
