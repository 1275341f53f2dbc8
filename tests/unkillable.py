"""Processes that cannot be killed, as those that hang in the kernel: the freezer of cgroup v1 holds them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FREEZER = Path("/sys/fs/cgroup/freezer")
LONGEST_S = 120.0


class Freezer:
    """A group of processes that do not end until it is thawed."""

    def __init__(self) -> None:
        self.group = FREEZER / f"eunomia-test-{os.getpid()}"

    def freeze(self, pid: int) -> None:
        """Make a process unkillable."""
        (self.group / "cgroup.procs").write_text(str(pid))
        self._become("FROZEN")

    def thaw(self) -> None:
        """Let all go on, or end."""
        self._become("THAWED")

    def end(self) -> None:
        """Kill what is in it, and remove it: after a test that failed as well, nothing stays frozen."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.thaw()
        deadline = time.monotonic() + LONGEST_S
        while self._pids():
            assert time.monotonic() < deadline, "processes of the freezer do not end"
            time.sleep(0.01)
        self.group.rmdir()

    def _pids(self) -> list[int]:
        return [int(line) for line in (self.group / "cgroup.procs").read_text().split()]

    def _become(self, state: str) -> None:
        (self.group / "freezer.state").write_text(state)
        deadline = time.monotonic() + LONGEST_S
        while (self.group / "freezer.state").read_text().strip() != state:
            assert time.monotonic() < deadline, f"the freezer does not become {state}"
            time.sleep(0.01)


@contextmanager
def freezer() -> Iterator[Freezer]:
    """Lend a freezer; skips where there can be none."""
    found = Freezer()
    try:
        found.group.mkdir()
    except OSError:
        pytest.skip("needs the freezer of cgroup v1, and root")
    try:
        yield found
    finally:
        found.end()
