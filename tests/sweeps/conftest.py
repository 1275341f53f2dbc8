"""A folder with a tiny scenario and a sweep over it, and the command line typed in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.desk import HEADER, CommandDesk

JOBS = HEADER + "".join(f"j{k},{13 * k},{1 + k % 2},LM,{40 + 97 * k % 120}\n" for k in range(12))
SCENARIO = """\
[cluster]
accelerators = { gpu = 2 }
[workload]
trace = "jobs.csv"
[throughputs]
source = "uniform"
"""
SWEEP = """\
scenario = "tiny.toml"
[axes]
policy = ["fifo", "srtf"]
load = [1.0, 2.0]
seed = [0, 1]
"""


class Desk(CommandDesk):
    """A desk with a sweep."""

    def shell(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `eunomia words…` in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "eunomia", *words], cwd=self.folder, env={**os.environ, **environment},
            capture_output=True, text=True, encoding="utf-8", check=False, timeout=300,
        )  # fmt: skip

    def sweep(self, *words: str, out: str = "out") -> dict[str, Any]:
        """Sweep, which must not be refused; return what it prints as JSON."""
        assert self.type("sweep", "sweep.toml", "--out", out, "--json", *words) in (0, 1), self.stdout
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    def problems(self, text: str) -> list[tuple[str, int | None, str | None]]:
        """Return file, line and key of everything that is wrong with a sweep, which writes nothing."""
        self.write("sweep.toml", text)
        return self.places("sweep", "sweep.toml", "--out", "out")

    def table(self, out: str = "out") -> list[dict[str, Any]]:
        """Return the rows of the table of results."""
        rows: list[dict[str, Any]] = pq.read_table(self.folder / out / "sweep.parquet").to_pylist()
        return rows


@pytest.fixture(scope="session")
def files() -> Mapping[str, str]:
    """Return the files of every desk, by name."""
    return {"tiny.toml": SCENARIO, "jobs.csv": JOBS, "sweep.toml": SWEEP}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]) -> Desk:
    """A folder with tiny.toml, jobs.csv and sweep.toml, which is the current one."""
    monkeypatch.chdir(tmp_path)
    found = Desk(tmp_path)
    for name, text in files.items():
        found.write(name, text)
    return found
