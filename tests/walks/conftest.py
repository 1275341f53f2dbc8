"""A folder with a tiny scenario, and the command line typed in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app

HEADER = "job_id,submitted_s,scale_factor,job_type,duration_s\n"
JOBS = HEADER + "a,0,2,LM,100\nb,0,1,LM,50\nc,10,1,CNN,30\n"
SCENARIO = """\
[cluster]
accelerators = { v100 = 2 }
[workload]
trace = "jobs.csv"
[throughputs]
source = "uniform"
"""
RANDOM_SCENARIO = """\
[cluster]
accelerators = {{ v100 = 16, k80 = 16 }}
[workload]
generator = "philly-like"
jobs = 15
rate_per_hour = 40
[belief]
kind = "noisy"
error = 0.3
[policy]
name = "las"
types = "agnostic"
[world]
job_failures_per_hour = 0.2
node_failures_per_hour = 0.05
cancel_fraction = {cancelled}
"""


class Desk:
    """A folder to stand in, and what was typed last."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.code, self.stdout, self.stderr = 0, "", ""

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def type(self, *words: str) -> int:
        """Run `eunomia words…`; return its exit code. What no command line may do, raise, is raised here."""
        result = CliRunner().invoke(app, list(words))
        self.code, self.stdout, self.stderr = result.exit_code, result.stdout, result.stderr
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return self.code

    def random_scenario(self, cancelled: float = 0.2) -> str:
        """Return a scenario in which everything that can be drawn is drawn."""
        return RANDOM_SCENARIO.format(cancelled=cancelled)

    def listing(self) -> list[str]:
        """Return everything in the folder, hidden or not, but for compiled Python."""
        return sorted(str(path) for path in self.folder.rglob("*") if "__pycache__" not in str(path))

    def simulate(self, *words: str, out: str = "out", record: bool = True) -> Path:
        """Simulate the tiny scenario, which must go well; return the folder of results."""
        assert self.type("simulate", "tiny.toml", "--out", out, *(["--record"] if record else []), *words) == 0, (
            self.stderr
        )
        return self.folder / out

    def refused(self, *words: str) -> dict[str, Any]:
        """Type what must be answered with exit code 2, the problems as the only output, and nothing written."""
        before = self.listing()
        assert self.type(*words, "--json") == 2, self.stdout
        assert self.listing() == before
        answer = json.loads(self.stdout)
        assert list(answer) == ["error"]
        error: dict[str, Any] = answer["error"]
        assert set(error) == {"count", "problems"}
        assert len(error["problems"]) == min(error["count"], 20)
        for problem in error["problems"]:
            assert list(problem) == ["file", "row", "column", "value", "rule", "fix"]
            assert problem["file"]
            assert problem["rule"]
            assert problem["fix"]
        return error

    def places(self, *words: str) -> list[tuple[str, int | None, str | None]]:
        """Return (name of the file, row, column) of every problem of what must be refused."""
        problems = self.refused(*words)["problems"]
        return [(Path(problem["file"]).name, problem["row"], problem["column"]) for problem in problems]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A folder with tiny.toml and jobs.csv, which is the current one."""
    monkeypatch.chdir(tmp_path)
    found = Desk(tmp_path)
    found.write("tiny.toml", SCENARIO)
    found.write("jobs.csv", JOBS)
    yield found
    assert not [name for name in found.listing() if Path(name).name.startswith(".")], "a draft was left"


@pytest.fixture
def jobs() -> Callable[..., str]:
    """Return what makes a trace of lines."""
    return lambda *lines: HEADER + "".join(line + "\n" for line in lines)
