"""The demo of the service, and how its list of jobs fits a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.service.bench import until

from eunomia.cli.service_session import show_table

DEMO = Path(__file__).parents[2] / "examples" / "service" / "demo.py"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short name: that of a unix socket has 107 characters at most."""
    with TemporaryDirectory(dir="/tmp") as found:
        yield Path(found)


def test_sigterm_to_the_demo_ends_its_service_and_removes_its_folder(short_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    tmp_path = short_path
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, str(DEMO)], stdout=subprocess.PIPE, text=True, env=variables) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("Try:"):
                break
        (folder,) = tmp_path.glob("eunomia-demo-*")
        holder = (folder / "state" / "lock").read_text().split()
        assert holder[0] == "process"
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(120) == 0
    until(lambda: not Path("/proc", holder[1]).exists())
    assert not folder.exists()


def test_a_long_reason_does_not_break_the_line_of_a_job(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    reason = "exit code 1: RuntimeError: CUDA out of memory. " * 9
    rows = [("12-abcde", "bert", "vision", "failed", "4", reason), ("9-abcde", "bert", "vision", "running", "4", "")]
    show_table(("id", "name", "tenant", "state", "gpus", "reason"), rows, "no jobs", cut="reason")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "…" in lines[1] and "exit code 1: Runtime" in lines[1]
