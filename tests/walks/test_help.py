"""Help, misuse, and the commands that only print."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from eunomia.cli.app import main

if TYPE_CHECKING:
    from conftest import Desk


WITH_EXAMPLE = ("simulate", "compare", "sweep", "figure", "run", "replay", "explain", "solve", "schema", "policies")


def test_help_explains_every_option_in_a_sentence_and_loads_nothing_heavy(desk: Desk) -> None:
    assert desk.type("--help") == 0
    commands = re.findall(r"^  (\w+)  +\S", desk.stdout.partition("Commands:")[2], re.MULTILINE)
    assert {"simulate", "compare", "replay", "explain", "policies", "schema"} <= set(commands)
    for command in commands:
        assert desk.type(command, "--help") == 0
        assert "Example:" in desk.stdout or command not in WITH_EXAMPLE, command
        for option in re.findall(r"^  --?\w.*(?:\n    .*)*", desk.stdout.partition("Options:")[2], re.MULTILINE):
            assert re.search(r"[A-Z][^.]+ \S+[^.]*\.\s*(\[required\])?|Show this message", option), option
    look = "import sys; from typer.testing import CliRunner; from eunomia.cli.app import app; "
    look += "CliRunner().invoke(app, ['--help']); print([m for m in ('numpy', 'numba', 'pyarrow') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "words",
    [("simulate",), ("simulat", "tiny.toml"), ("simulate", "tiny.toml", "--ouf", "x"),
     ("compare", "tiny.toml", "--out", "out", "--load", "abc")],
)  # fmt: skip
def test_a_command_line_that_cannot_be_read_is_answered_in_json_when_json_is_asked_for(
    desk: Desk, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["eunomia", *words, "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert json.loads(capsys.readouterr().out)["error"]["count"] == 1


def test_the_list_of_policies_describes_each_and_a_misspelt_one_is_answered(desk: Desk) -> None:
    assert desk.type("policies", "--json") == 0
    cards = json.loads(desk.stdout)
    assert {"fifo", "las", "max_min_fairness"} <= {card["name"] for card in cards}
    for card in cards:
        assert {"name", "door", "objective", "technique", "paper", "needs"} <= set(card)
    for card in cards:
        assert desk.type("policies", card["name"]) == 0
        assert card["name"] in desk.stdout
    assert desk.refused("policies", "fiffo")["problems"][0]["value"] == "fiffo"


def test_the_schema_of_scenarios_is_json(desk: Desk) -> None:
    assert desk.type("schema") == 0
    assert {"cluster", "workload"} <= set(json.loads(desk.stdout)["properties"])
