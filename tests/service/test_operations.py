"""The files for operators name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.service.bench import LiveService
from typer.testing import CliRunner

from eunomia.cli.app import app

FOLDER = Path(__file__).parents[2] / "docs" / "operations"


def test_the_board_and_the_alerts_ask_for_figures_that_there_are(shared: LiveService) -> None:
    text, _ = shared.operator.text("/metrics")
    lines = text.splitlines()
    known = {line.split("{")[0].split()[0] for line in lines if line and not line.startswith("#")}
    known |= {line.split()[2] for line in lines if line.startswith("# TYPE")}
    board = json.loads((FOLDER / "grafana-board.json").read_text())
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    asked += (FOLDER / "prometheus.yml").read_text().replace("eunomia.token", "")
    page = (FOLDER.parent / "operations.md").read_text()
    names = set(re.findall(r"eunomia_[a-z_]+", asked + page))
    assert names
    assert names <= known


def test_the_unit_stops_the_service_alone_and_checks_the_site_first() -> None:
    unit = (FOLDER / "eunomia.service").read_text()
    assert "KillMode=process" in unit
    assert re.search(r"ExecStartPre=\S+/eunomia serve \S+ --check", unit)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    said = CliRunner().invoke(app, ["--show-completion", shell], prog_name="eunomia")
    assert said.exit_code == 0
    assert "_EUNOMIA_COMPLETE" in said.output
