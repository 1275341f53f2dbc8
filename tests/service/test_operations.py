"""The files for operators name what there is."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from tests.service.bench import SITE, LiveService, command_line, until
from typer import testing
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    anew = inspect.unwrap(testing._get_command)  # reads the variable; the commands that all tests share are built
    monkeypatch.setattr(testing, "_get_command", anew)
    said = CliRunner().invoke(app, ["--show-completion", shell], prog_name="eunomia")
    assert said.exit_code == 0
    assert "_EUNOMIA_COMPLETE" in said.output


def test_a_node_is_removed_and_resumed_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path, SITE.replace("{ cpu = 2 }", "{ cpu = 2 }\naccelerators_per_node = 1"))
    service.start()
    typed = command_line(service, monkeypatch)
    try:
        wide = service.operator.submit({"command": ["sleep", "600"], "accelerators": 2})["id"]
        until(lambda: service.operator.get(f"/v1/jobs/{wide}")["state"] == "running")
        shown = typed("node", "remove", "cpu-1", "--dry-run")
        assert shown == f"cpu-1: would move {wide}; could run nowhere then: {wide}\n"
        assert "up" in typed("nodes")
        assert "removed" not in typed("nodes")
        assert typed("node", "remove", "cpu-1", "--reason", "sold") == f"cpu-1: removed; moved {wide}\n"
        assert "removed: sold" in typed("nodes")
        assert json.loads(typed("cluster", "--json"))["types"]["cpu"]["total"] == 1
        until(lambda: "[types_absent]" in typed("why", wide))
        assert "LTGF" in typed("tenants")
        assert typed("resume", "cpu-1") == "cpu-1: in service\n"
        kinds = _kinds_of_events(service)
        assert kinds.index("NodeRemoved") < kinds.index("NodeJoined")
        service.operator.send("DELETE", f"/v1/jobs/{wide}")
    finally:
        service.kill()
        service.stop_jobs()


def _kinds_of_events(service: LiveService) -> list[str]:
    """Return the kinds of all events up to the one that a node has joined."""
    found: list[str] = []
    for _, kind, _ in service.operator.events("/v1/events", after=0):
        found.append(kind)
        if kind == "NodeJoined":
            break
    return found
