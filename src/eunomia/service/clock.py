"""The service's time: seconds that never go back, over restarts and reboots of the machine."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Protocol

from eunomia.service.store.schema import StoredClock

MOST_AWAY_S = 7 * 86_400.0  # that the machine is believed to have been off: its clock may be wrong when it starts
_log = logging.getLogger(__name__)


class ServiceClock(Protocol):
    """Where the writer gets the time from."""

    def now(self) -> float:
        """Return seconds of the service's time, which never go back."""
        ...

    def stored(self, at: float) -> StoredClock:
        """Return what lets the next service go on from this time."""
        ...


class MonotonicClock:
    """The service's time: it goes on with the machine's monotonic clock, over a reboot with the wall clock.

    What the wall clock says is believed between 0 and `MOST_AWAY_S`, as time that has been counted never goes back.
    """

    def __init__(self, last: StoredClock | None) -> None:
        self._boot = _boot_id()
        mono, wall = time.monotonic(), time.time()
        if last is None:
            begin = 0.0
        elif last.boot == self._boot and self._boot:
            begin = last.at + max(mono - last.monotonic, 0.0)
        else:
            away = wall - last.wall
            begin = last.at + min(max(away, 0.0), MOST_AWAY_S)
            if not 0.0 <= away <= MOST_AWAY_S:
                text = "by its clock this machine was off for %.1f days; %.1f are counted. Is the clock right?"
                _log.warning(text, away / 86_400, (begin - last.at) / 86_400)
        self._origin = mono - begin

    def now(self) -> float:
        """Return seconds of the service's time."""
        return time.monotonic() - self._origin

    def stored(self, at: float) -> StoredClock:
        """Return the clocks of this machine at time `at`."""
        return StoredClock(at, self._boot, time.monotonic(), time.time())


class SetClock:
    """A clock that is set, for tests and measurements."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        """Return the time that was set, in s."""
        return self.at

    def stored(self, at: float) -> StoredClock:
        """Return a time for the store."""
        return StoredClock(at, "", 0.0, 0.0)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
