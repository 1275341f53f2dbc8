"""A world of processes: orders go in, reports come out; gangs run on this machine or under an engine.

`eunomia run` and the service drive it alike, see `driver`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eunomia.backends.orders import Order
from eunomia.backends.processes.device_use import DeviceDriver
from eunomia.backends.reports import GangFaulty
from eunomia.model.topology import Topology

NO_SAVE_GRACE_S = 0.5  # for a gang that need not save
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldInputs:
    """What a world of processes is made from. The last group is for this machine only."""

    workdir: Path  # of the jobs' folders
    topology: Topology
    report: Callable[[Any], None]  # receives every report, in the thread of the world
    options: Mapping[str, Any] = field(default_factory=dict)  # the table [world.NAME]
    forked: Callable[[], None] = lambda: None  # called after each start

    lease_s: float = float("inf")  # after which gangs stop by themselves if this process does not renew their leases
    lock: int | None = None  # open lock file of a run, whose gangs stop when this process ends; None = they go on
    driver: DeviceDriver | None = None  # says who uses the accelerators
    log_bytes: int = 0  # longest log; 0 = any
    account: str = ""  # of this machine, for jobs of users who have none, where this process is root
    token_of: Callable[[str, int], str] | None = None  # the token of a start, to speak to the service
    umask: int | None = None  # of jobs; None = that of this process


class ProcessWorld:
    """Base of worlds: a thread carries out orders, and hands every report to the function that the world was given."""

    url = ""  # of the service, for the jobs that it launches
    renewals = 0  # of leases so far; an engine keeps gangs without any

    def __init__(self, name: str, inputs: WorldInputs) -> None:
        self._report = inputs.report
        self._is_run = inputs.lock is not None  # else of a service
        self._faulty: set[tuple[str, int]] = set()  # starts that were reported as such
        self.failure: BaseException | None = None  # what ended the thread unexpectedly
        self._closing = self._stops_jobs = self._hurries = False
        self._over = threading.Event()  # the thread has done its work
        self._thread = threading.Thread(target=self._run_watched, name=f"{name} world", daemon=True)

    def start(self) -> None:
        """Begin to carry out orders."""
        self._thread.start()

    def wait_until_ready(self, within_s: float) -> None:
        """Wait until gangs can be started, but no longer than this."""

    def carry_out(self, orders: Iterable[Order]) -> None:
        """Take orders; each is acknowledged with `OrderTaken`. An order that was taken before changes nothing."""
        raise NotImplementedError

    def use_topology(self, topology: Topology) -> None:
        """Go on with other accelerators, for gangs that are launched from now on."""

    def explain(self, why: Mapping[str, str]) -> None:
        """Show users why jobs wait that they submitted to an engine, by its numbers of these."""

    def close(self, *, stop_jobs: bool = False, hurry: bool = False, wait_s: float = 60.0) -> None:
        """End the thread. The gangs go on, unless `stop_jobs` stops them, with a checkpoint or in a hurry."""
        self._stops_jobs, self._hurries = stop_jobs, hurry
        self._closing = True
        if self._thread.ident is not None:
            self._wake()
            if self._over.wait(wait_s):  # no join: where an interrupt ends one, CPython takes the thread for ended
                self._thread.join()

    def _guard(self, about: tuple[str, int], step: Callable[..., None], *inputs: Any) -> bool:
        """Do something about one start; say whether that went well.

        What fails, such as for a file that its job has removed, ends a run. A service goes on with its other gangs, and
        the fault is reported once. What is to be done again is no fault.
        """
        try:
            step(*inputs)
        except Exception as error:
            if self._is_run or self._is_done_again(error):
                raise
            if about not in self._faulty:
                self._faulty.add(about)
                _log.error("start %d of job %r cannot be dealt with", about[1], about[0], exc_info=error)
                self._report(GangFaulty(*about, f"{type(error).__name__}: {error}"[:300]))
            return False
        return True

    def _is_done_again(self, error: Exception) -> bool:
        """Say whether what has failed so is done again later."""
        return False

    def _wake(self) -> None:
        """Wake the thread, which waits for orders."""
        raise NotImplementedError

    def _run(self) -> None:
        """Carry out orders until the world is closed."""
        raise NotImplementedError

    def _run_watched(self) -> None:
        """Log and keep an unexpected error: a run or service whose world has ended must end, not wait for reports."""
        try:
            self._run()
        except BaseException as error:
            _log.exception("the %s has failed", self._thread.name)
            self.failure = error
        finally:
            self._over.set()
