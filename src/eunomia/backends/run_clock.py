"""The clock of a run, which stops while no process drives the run."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

from eunomia.lease import write_whole

SAVE_EVERY_S = 1.0


class RunClock:
    """Seconds since the run began, saved to `file` for a process that resumes the run."""

    def __init__(self, file: Path | None):
        self._file = file
        self._runs = False
        self._saved_s = -math.inf
        self.origin = time.monotonic()  # time.monotonic at time 0

    def start(self, at: float) -> None:
        """Start the clock at time `at`."""
        self.origin, self._runs = time.monotonic() - at, True

    def now(self) -> float:
        """Return the time in s."""
        return time.monotonic() - self.origin

    def limit_wait(self, wait_s: float) -> float:
        """Return the longest wait in s before the next save is due."""
        return wait_s if self._file is None else min(wait_s, SAVE_EVERY_S)

    def save(self, *, at_once: bool = False) -> None:
        """Write the time if due, or `at_once`; a clock that was not started writes nothing."""
        now = self.now()
        if self._file is not None and self._runs and (at_once or now - self._saved_s >= SAVE_EVERY_S):
            self._saved_s = now
            write_whole(self._file, json.dumps({"at": now}))


def read_clock(file: Path) -> float:
    """Return the last saved time in s; 0 if there is none."""
    try:
        return max(float(json.loads(file.read_bytes())["at"]), 0.0)
    except FileNotFoundError:
        return 0.0
