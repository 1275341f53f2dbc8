"""A service for weeks on a clock that is set, killed again and again amid what it removes: its books agree."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from benchmarks import service_year
from benchmarks.service_year import Year

KILLS = (
    "audit.closed:kill:2", "removal.folder:kill:200", "removal.rows:kill:30", "audit.written:kill:2",
    "snapshot.half:kill:1", "turn.committed:kill:100", "removal.rows:kill:60",
)  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: each of thousands of commits waits for the disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as found:
        yield Path(found)


@pytest.mark.parametrize(
    ("days", "jobs", "history", "rounds"),
    [(20, 48, 4, 1), pytest.param(60, 50, 10, 3, marks=[pytest.mark.slow, pytest.mark.nightly])],
)
def test_after_weeks_and_kills_amid_removals_nothing_live_is_lost_and_the_store_is_as_large_as_before(
    folder: Path, days: int, jobs: int, history: int, rounds: int
) -> None:
    begin = Year(folder, jobs, history)
    sizes = dict[int, tuple[int, int, int]]()

    def measure(day: int) -> None:
        found = begin.measured(day)
        sizes[day] = found["kept"], found["folders"], found["store_bytes"]

    begin.run(2 * history + 1, lambda day: measure(day) if day == 2 * history + 1 else None)
    assert begin.disagreements() == []
    begin.store.close()
    command = [sys.executable, service_year.__file__, str(folder), str(days), str(jobs), str(history)]
    for kill in KILLS * rounds:
        variables = {**os.environ, "EUNOMIA_TEST_BUILD": "1", "EUNOMIA_FAULT_POINT": kill}
        found = subprocess.run(command, check=False, env=variables, stdout=subprocess.PIPE, text=True)
        assert (found.returncode, found.stdout) == (-signal.SIGKILL, ""), kill
    found = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    assert (found.returncode, found.stdout.strip()) == (0, "")
    begin = Year(folder, jobs, history)
    measure(days)
    assert begin.disagreements() == [] and begin.clock.at >= (days - 1) * service_year.DAY_S
    (kept, folders, size), (kept_then, folders_then, size_then) = sizes[days], sizes[2 * history + 1]
    assert kept <= kept_then + begin.an_hour and folders <= folders_then + begin.an_hour and size <= 1.5 * size_then
    begin.store.close()


@pytest.mark.parametrize("change", [
    "DELETE FROM jobs WHERE id = (SELECT id FROM jobs WHERE live = 0 ORDER BY number DESC LIMIT 1)",
    "UPDATE job_counts SET jobs = jobs + 1 WHERE state = 'failed'",
    "DELETE FROM ended_hours WHERE hour = (SELECT max(hour) - 2 FROM ended_hours)",
    "UPDATE audit SET action = 'other' WHERE seq = (SELECT max(seq) - 1 FROM audit)",
])  # fmt: skip
def test_books_that_do_not_agree_are_named(folder: Path, change: str) -> None:
    year = Year(folder, 48, 1)
    year.run(2)
    assert year.disagreements() == []
    year.store._db.execute(change)
    assert year.disagreements()
    year.store.close()
