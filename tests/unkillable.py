"""Processes that cannot be killed, as those that hang in the kernel: the freezer of cgroup v1 holds them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FREEZER = Path("/sys/fs/cgroup/freezer")


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

    def _become(self, state: str) -> None:
        (self.group / "freezer.state").write_text(state)
        while (self.group / "freezer.state").read_text().strip() != state:
            time.sleep(0.01)


@contextmanager
def freezer() -> Iterator[Freezer]:
    """Lend a freezer; skips where there can be none."""
    found = Freezer()
    try:
        found.group.mkdir()
    except OSError:
        pytest.skip("needs the freezer of cgroup v1, and root")
    yield found
    found.thaw()
    while (found.group / "cgroup.procs").read_text():
        time.sleep(0.01)
    found.group.rmdir()
