"""A folder with a tiny scenario, and the command line typed in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.desk import HEADER, CommandDesk

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


class Desk(CommandDesk):
    """A desk with a tiny scenario."""

    def random_scenario(self, cancelled: float = 0.2) -> str:
        """Return a scenario in which everything that can be drawn is drawn."""
        return RANDOM_SCENARIO.format(cancelled=cancelled)

    def simulate(self, *words: str, out: str = "out", record: bool = True) -> Path:
        """Simulate the tiny scenario, which must go well; return the folder of results."""
        assert self.type("simulate", "tiny.toml", "--out", out, *(["--record"] if record else []), *words) == 0, (
            self.stderr
        )
        return self.folder / out


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
