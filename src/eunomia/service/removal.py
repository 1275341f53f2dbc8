"""Removes what the site keeps no longer: ended jobs with their folders, events, forecasts, decisions, and logs.

All of it goes in pieces of a few milliseconds, between which the service does what others ask for. A job's folder goes
before its row, so what a kill interrupts is found again; nothing of a job that is live is touched.
"""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from eunomia.backends.processes.folder import folder_name
from eunomia.backends.processes.folder_removal import folder_bytes, remove_folder
from eunomia.backends.processes.found_gangs import running_gangs
from eunomia.service.audit_removal import AuditRemoval
from eunomia.service.fault_points import faultpoint
from eunomia.service.messages import Principal
from eunomia.service.site import ServiceSection
from eunomia.service.store import ServiceStore
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.store.old_rows import PIECE_S as ROWS_S
from eunomia.service.store.old_rows import Limits, OldRows
from eunomia.service.store.removal_reader import RemovalReader
from eunomia.service.writer import Writer

DAY_S = 86_400.0
FIRST_S, SWEEP_S = 10.0, 3600.0  # until the first sweep, and between two
THOROUGH = 24  # sweeps, of which the first looks at each folder: those of unknown jobs do not become more
PIECE_S = 0.008  # of work between two pauses
END_S = 2.0  # for which an end of the service waits for a sweep at most
PAUSE, LONGEST_PAUSE_S = 4.0, 1.0  # a pause is so many times as long as the piece before it, at most so long
REMOVER = Principal("removal", "", "viewer")  # in whose turns the writer removes rows
JOBS_FOLDER = "jobs"  # of the state folder
JOBS = 64  # of which one piece removes the rows
PAGE = 1000  # jobs that are read at once
LOGS = ("log", "log.1", "log.parts", "errors", "errors.1", "errors.parts")  # in a job's folder
LOGS_GONE = "logs_before"  # in the store: logs of jobs that ended before are gone
_JOB_FOLDER = re.compile(r"[0-9]{1,18}-[a-z0-9]{1,40}")  # of ids that a controller makes
_log = logging.getLogger("eunomia.service")


class Stopped(Exception):
    """The service ends; the next one goes on."""


def limits_of(service: ServiceSection, now: float) -> Limits:
    """Return up to which time of the service rows go."""
    decisions = service.history_days if service.decision_days is None else service.decision_days
    audit = -math.inf if service.audit_days is None else (now - service.audit_days * DAY_S) // DAY_S * DAY_S
    return Limits(history=now - service.history_days * DAY_S, decisions=now - decisions * DAY_S, audit=audit)


@dataclass(frozen=True, slots=True)
class Removal:
    """One sweep through a store and a folder of jobs.

    `change` runs a change of the store where that may be done; `pause` gets how long the piece before took, waits,
    and raises Stopped where no more is to be done. One that is `thorough` looks at each folder of a job.
    A transaction removes the rows of so many jobs, or other rows for `rows_s`.
    """

    service: ServiceSection
    jobs: Path
    reader: RemovalReader
    now: float
    change: Callable[[Callable[[ServiceStore], int]], int]
    pause: Callable[[float], None]
    thorough: bool = True
    jobs_at_once: int = JOBS
    rows_s: float = ROWS_S

    # ---- what goes -------------------------------------------------------------------------------------------

    def plan(self) -> list[OldRows]:
        """Return what would go, and how much it is."""
        limits = limits_of(self.service, self.now)
        ended = [self._folder(job_id) for _, job_id in self._ended(-math.inf, limits.history)]
        folders = [path for path in (*ended, *self._unknown_folders()) if path.is_dir() and not path.is_symlink()]
        sizes = [folder_bytes(path) for path in folders]
        logs = [size for _, size in self._old_logs(self._end_of_logs())]
        return [
            OldRows("job folders", len(folders), sum(size for _, size in sizes)),
            OldRows("logs of ended jobs", len(logs), sum(logs)),
            *self.reader.old_rows(limits),
        ]

    def sweep(self) -> list[tuple[str, int]]:
        """Remove it; return how many of each there were. Raises Stopped."""
        limits = limits_of(self.service, self.now)
        jobs = self._remove_jobs(limits)
        audit = AuditRemoval(self.reader, self.jobs.parent, self.change, self._paced)
        files = audit.sweep(self.now, limits.audit)
        rows = self._repeat(lambda store: store.remove_aged(limits, self.rows_s))
        logs = self._remove_logs()
        unknown = self._remove_folders(path.name for path in self._unknown_folders()) if self.thorough else 0
        self._repeat(lambda store: store.shrink())
        return [
            ("ended jobs", jobs), ("parts of the audit log", files), ("other rows", rows), ("logs", logs),
            ("folders of unknown jobs", unknown),
        ]  # fmt: skip

    def _repeat(self, change: Callable[[ServiceStore], int]) -> int:
        """Make a change of the store again and again until nothing is left to do; return the sum of what it did."""
        total = 0
        while found := self._timed(change):
            total += found
        return total

    def _timed(self, change: Callable[[ServiceStore], int]) -> int:
        begun = time.perf_counter()
        found = self.change(change)
        self.pause(time.perf_counter() - begun)
        return found

    def _ended(self, since: float, until: float) -> Iterator[tuple[float, str]]:
        """Yield end and id of the jobs that ended in a span, the first first."""
        after = (-math.inf, 0)
        while page := self.reader.ended(since, until, PAGE, after):
            yield from ((at, job_id) for at, _, job_id in page)
            after = page[-1][:2]

    # ---- jobs and their folders ------------------------------------------------------------------------------

    def _folder(self, job_id: str) -> Path:
        return self.jobs / folder_name(job_id)

    def _remove_jobs(self, limits: Limits) -> int:
        """Remove ended jobs, the folders of a few and then their rows."""
        gone = 0
        while page := self.reader.ended(-math.inf, limits.history, self.jobs_at_once):
            self._remove_folders(folder_name(job_id) for _, _, job_id in page)
            numbers = [number for _, number, _ in page]
            found = self._timed(partial(_remove_rows, numbers=numbers))
            if not found:  # they could not be removed now
                break
            gone += found
        return gone

    def _remove_folders(self, names: Iterable[str]) -> int:
        """Remove folders of jobs; one that cannot be is named in the log. Returns how many were there."""
        if not self.jobs.is_dir():
            return 0
        parent, gone, begun = os.open(self.jobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), 0, time.perf_counter()
        try:
            for name in names:
                if not os.path.lexists(self.jobs / name):
                    continue
                try:
                    for _ in remove_folder(parent, name):
                        faultpoint("removal.folder")
                        begun = self._paced(begun)
                except OSError as error:
                    _log.warning("%s: it cannot be removed: %s", self.jobs / name, error)
                else:
                    gone += 1
        finally:
            os.close(parent)
        return gone

    def _unknown_folders(self) -> Iterator[Path]:
        """Yield folders of jobs that the store does not know, in which nothing was written since the history begins.

        An earlier version removed the rows of jobs and left their folders. What runs there is left alone.
        """
        limit = self.reader.fact("origin", 0.0) + limits_of(self.service, self.now).history
        last = self.reader.fact("last_job", 0.0)
        with suppress(OSError):
            names = [name for name in self._unknown() if int(name.partition("-")[0]) <= last]
            running = {gang.folder.path.name for gang in running_gangs(self.jobs)} if names else set()
            for name in names:
                if name not in running and _last_written(self.jobs / name) < limit:
                    yield self.jobs / name

    def _unknown(self) -> list[str]:
        """Return which folders have names of jobs that the store does not know."""
        found, begun = list[str](), time.perf_counter()
        with os.scandir(self.jobs) as entries:
            names = (entry.name for entry in entries if _JOB_FOLDER.fullmatch(entry.name))
            while page := list(islice(names, PAGE)):
                known = self.reader.known(page)
                found += (name for name in page if name not in known)
                begun = self._paced(begun)
        return found

    # ---- logs ------------------------------------------------------------------------------------------------

    def _old_logs(self, until: float) -> Iterator[tuple[Path, int]]:
        """Yield the logs of kept jobs that ended before a time, and their bytes; those that are gone already not."""
        for _, job_id in self._ended(self._begin_of_logs(), until):
            for path in self._logs(job_id):
                if (size := _bytes(path)) is not None:
                    yield path, size

    def _logs(self, job_id: str) -> list[Path]:
        return [self._folder(job_id) / name for name in LOGS]

    def _begin_of_logs(self) -> float:
        """Return from which end on there are logs; those of jobs that go now go with them."""
        return max(self.reader.fact(LOGS_GONE, -math.inf), limits_of(self.service, self.now).history)

    def _end_of_logs(self) -> float:
        """Return before which end logs go: those that are too old, and so many that the others are small enough."""
        found = -math.inf if self.service.log_days is None else self.now - self.service.log_days * DAY_S
        if self.service.logs_gib is None:
            return found
        sizes = partial(self._sized_logs, max(self._begin_of_logs(), found))
        too_much = sum(size for _, size in sizes()) - self.service.logs_gib * 2**30
        for at, size in sizes():
            if too_much <= 0:
                break
            too_much -= size
            found = math.nextafter(at, math.inf)
        return found

    def _sized_logs(self, since: float) -> Iterator[tuple[float, int]]:
        """Yield the end of jobs and the bytes of their logs, the first first."""
        begun = time.perf_counter()
        for at, job_id in self._ended(since, math.inf):
            yield at, sum(_bytes(path) or 0 for path in self._logs(job_id))
            begun = self._paced(begun)

    def _remove_logs(self) -> int:
        """Remove logs of ended jobs; return how many."""
        until, gone, begun = self._end_of_logs(), 0, time.perf_counter()
        if until <= self.reader.fact(LOGS_GONE, -math.inf):
            return 0
        for path, _ in self._old_logs(until):
            try:
                path.unlink()
            except OSError as error:  # it has gone, or the job has put a folder there
                _log.warning("%s: it cannot be removed: %s", path, error)
            else:
                gone += 1
            begun = self._paced(begun)
        self._timed(partial(_note_logs, until=until))
        return gone

    def _paced(self, begun: float) -> float:
        """Pause if the piece of work that began then is long enough; return when the next one begins."""
        if (took := time.perf_counter() - begun) < PIECE_S:
            return begun
        self.pause(took)
        return time.perf_counter()


def _remove_rows(store: ServiceStore, numbers: Sequence[int]) -> int:
    return store.remove_jobs(numbers)


def _note_logs(store: ServiceStore, until: float) -> int:
    with store.transaction() as db:
        store.set_meta(db, LOGS_GONE, repr(until))
    return 0


def _bytes(path: Path) -> int | None:
    """Return the bytes of a file, or of the link that a job has put there; None where there is neither."""
    try:
        return path.lstat().st_size
    except OSError:
        return None


def _last_written(folder: Path) -> float:
    """Return when something was last written in a folder, by the wall clock, as far as its own entries say it."""
    times = [folder.lstat().st_mtime]
    with suppress(OSError), os.scandir(folder) as entries:
        times += [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
    return max(times)


class RegularRemoval(threading.Thread):
    """Sweeps soon after a start, and then every hour, in a thread of its own beside the writer's."""

    def __init__(self, writer: Writer, place: Path | str, jobs: Path) -> None:
        super().__init__(name="removal", daemon=True)
        self._writer, self._place, self._jobs = writer, place, jobs
        self._stopping = threading.Event()
        self._sweeps = 0

    def run(self) -> None:
        """Sweep until `stop`."""
        wait_s = FIRST_S
        while not self._stopping.wait(wait_s):
            begun, wait_s = time.monotonic(), SWEEP_S
            try:
                gone = self.sweep()
            except Stopped:
                return
            except Exception:
                _log.exception("what is kept no longer could not be removed; it is tried again")
            else:
                if any(count for _, count in gone):
                    said = ", ".join(f"{count:,} {what}" for what, count in gone if count)
                    _log.info("removed: %s, in %.0f s", said, time.monotonic() - begun)

    def sweep(self) -> list[tuple[str, int]]:
        """Remove what the site keeps no longer now. Raises Stopped when the service ends meanwhile."""
        service, is_thorough = self._writer.controller.site.service, self._sweeps % THOROUGH == 0
        with closing(RemovalReader(self._place)) as reader:
            now = self._writer.clock.now()
            found = Removal(service, self._jobs, reader, now, self._change, self._pause, is_thorough).sweep()
        self._sweeps += 1
        return found

    def stop(self) -> None:
        """Remove no more, from soon on."""
        self._stopping.set()
        if self.is_alive():
            self.join(END_S)

    def _change(self, change: Callable[[ServiceStore], int]) -> int:
        def made(writer: Writer) -> int:
            try:
                return change(writer.store)
            except DiskFull as error:  # files that go make room; rows go later
                _log.warning("rows are not removed now: %s", error)
                return 0

        answer = self._writer.change(made, REMOVER)
        while True:
            try:
                return int(answer.result(0.2))
            except TimeoutError:
                if self._stopping.is_set():
                    raise Stopped from None

    def _pause(self, worked_s: float) -> None:
        if self._stopping.wait(min(worked_s * PAUSE, LONGEST_PAUSE_S)):
            raise Stopped
