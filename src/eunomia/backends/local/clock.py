"""The clock of a run: it stands still while no process of the run is there to drive it."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

from eunomia.lease import write_whole

KEPT_S = 1.0  # between two times at which the clock is written down


class RunClock:
    """Seconds since the run began; with `file` they are kept there, for a process that resumes the run."""

    def __init__(self, file: Path | None):
        self._file = file
        self._runs = False
        self._kept = -math.inf
        self.origin = time.monotonic()  # what time.monotonic says at time 0

    def start(self, at: float) -> None:
        """Let it be `at` now."""
        self.origin, self._runs = time.monotonic() - at, True

    def now(self) -> float:
        """Return the time."""
        return time.monotonic() - self.origin

    def shortened(self, wait_s: float) -> float:
        """Return how long one may wait before the time must be kept again."""
        return wait_s if self._file is None else min(wait_s, KEPT_S)

    def keep(self, *, at_once: bool = False) -> None:
        """Write the time down when that is due; a clock that was never started has nothing to keep."""
        now = self.now()
        if self._file is not None and self._runs and (at_once or now - self._kept >= KEPT_S):
            self._kept = now
            write_whole(self._file, json.dumps({"at": now}))


def read_clock(file: Path) -> float:
    """Return the time that was kept last; 0 if none was."""
    try:
        return max(float(json.loads(file.read_bytes())["at"]), 0.0)
    except FileNotFoundError:
        return 0.0
