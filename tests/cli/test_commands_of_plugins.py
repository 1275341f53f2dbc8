"""Commands of other packages are found by their entry points; an absent or broken package is named."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from eunomia.cli import plugins
from eunomia.inputs.install_hint import install_command


def answer(monkeypatch: pytest.MonkeyPatch, points: list[EntryPoint], *words: str) -> tuple[int, str]:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point for point in points if point.group == group])
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command("nothing")(lambda: None)
    plugins.add_commands(app)
    ended = CliRunner().invoke(app, list(words))
    return ended.exit_code, ended.output


def test_a_command_of_another_package_runs_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("reproduce", "eunomia_reproduction.command:reproduce", plugins.GROUP)
    code, said = answer(monkeypatch, [point], "reproduce", "--list")
    assert (code, "gavel-fig8" in said) == (0, True)


def test_without_its_package_a_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = answer(monkeypatch, [], "reproduce", "gavel-fig8", "--out", "x", "--json")
    assert code == 2
    assert json.loads(said)["error"]["problems"][0]["fix"] == install_command(companion="reproduction")
    assert "Needs eunomia-scheduler-reproduction." in " ".join(
        answer(monkeypatch, [], "reproduce", "--help")[1].split()
    )


def test_a_package_that_cannot_be_loaded_is_named_and_other_commands_work(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("plan", "no_such_package.plan:plan", plugins.GROUP)
    code, said = answer(monkeypatch, [point], "plan", "--budget", "1")
    assert code == 2
    assert "no_such_package.plan:plan cannot be loaded: ModuleNotFoundError" in said
    assert answer(monkeypatch, [point], "nothing")[0] == 0
