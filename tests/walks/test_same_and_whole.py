"""Results are the same bytes every time, and there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

INTERRUPTING = """\
import os, signal
from eunomia.policies.order.fifo import Fifo

class Interrupting(Fifo):
    def decide(self, view):
        if view.at > 0:
            number = getattr(signal, os.environ["WHICH"])
            if signal.getsignal(number) is signal.SIG_IGN:  # as a shell leaves it to what runs in the background
                signal.signal(number, signal.default_int_handler)
            signal.raise_signal(number)
        return super().decide(view)
"""


def shell(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m eunomia words…` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "eunomia", *words], cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    """Return every file but timing.json."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.endswith("timing.json")}


def test_one_seed_gives_the_same_bytes_whatever_the_environment_and_another_seed_others(desk: Desk) -> None:
    desk.write("tiny.toml", desk.random_scenario())
    first = files(desk.simulate())
    settings: list[dict[str, str]] = [
        {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
        {"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.ISO-8859-1", "PYTHONIOENCODING": "ascii"},
    ]
    for number, environment in enumerate(settings):
        out = f"again-{number}"
        ran = shell(desk.folder, "simulate", "tiny.toml", "--out", out, "--record", **environment)
        assert ran.returncode == 0, ran.stderr
        assert files(desk.folder / out) == first
    other = files(desk.simulate("--set", "seed=1", out="other"))
    assert [name for name in first if first[name] == other[name]] == []


@pytest.mark.parametrize("which", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_leaves_nothing_and_an_old_result_as_it_was(desk: Desk, which: str) -> None:
    desk.write("interrupting.py", INTERRUPTING)
    old = files(desk.simulate())
    before = desk.listing()
    out = "out" if which == "SIGINT" else "new/deep/out"
    words = ("tiny.toml", "--policy", "interrupting.py:Interrupting", "--out", out, "--force", "--record")
    ran = shell(desk.folder, "simulate", *words, WHICH=which)
    assert ran.returncode in {"SIGINT": (130,), "SIGTERM": (130, 128 + signal.SIGTERM)}[which]
    assert "Traceback" not in ran.stderr
    assert desk.listing() == before
    assert files(desk.folder / "out") == old


def test_an_interrupted_comparison_leaves_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHICH", "SIGINT")
    desk.write("interrupting.py", INTERRUPTING)
    before = desk.listing()
    asked = ("--policy", "fifo", "--policy", "interrupting.py:Interrupting")
    assert desk.type("compare", "tiny.toml", "--out", "out", *asked, "--json") == 130
    assert desk.stdout == ""
    assert desk.listing() == before
