"""Help, misuse, and the commands that only print."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from eunomia.cli.app import app, main

if TYPE_CHECKING:
    from conftest import Desk


def test_help_explains_every_option_in_a_sentence_and_loads_nothing_heavy(desk: Desk) -> None:
    assert desk.type("--help") == 0
    commands = re.findall(r"^  ([a-z-]+)  +\S", desk.stdout.partition("Laboratory")[2], re.MULTILINE)
    assert {"simulate", "compare", "replay", "explain", "policies", "schema"} <= set(commands)
    for command in commands:
        assert desk.type(command, "--help") == 0
        for option in re.findall(r"^  --?\w.*(?:\n    .*)*", desk.stdout.partition("Options:")[2], re.MULTILINE):
            assert re.search(r"[A-Z][^.]+ \S+[^.]*\.\s*(\[required\])?|Show this message", option), option
    look = "import sys; from typer.testing import CliRunner; from eunomia.cli.app import app; "
    look += "CliRunner().invoke(app, ['--help']); print([m for m in ('numpy', 'numba', 'pyarrow') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout.strip() == "[]"


def test_the_help_of_every_command_has_an_example() -> None:
    commands = list(leaves(get_command(app), ()))
    assert len(commands) > 30
    for words, command in commands:
        texts = " ".join(f"{command.help or ''} {command.epilog or ''}".split())
        assert re.search(rf"(Example|For example): eunomia (-\S+ )*{' '.join(words)}\b", texts), words


def leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, one in inner.items():
        yield from leaves(one, (*words, name))


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
