"""Gangs that run in a folder of jobs, found by their processes: also those that a store does not know."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eunomia.backends.processes.folder import JobFolder, read_json
from eunomia.backends.processes.gang_group import all_pids, boot_id, is_running, wake_supervisor
from eunomia.backends.processes.lock_holders import holders, lease_of, locks

MOST_DIGITS = 12  # of the number of a start


@dataclass(frozen=True, slots=True)
class FoundGang:
    """A gang whose supervisor runs."""

    job_id: str
    epoch: int
    seats: tuple[int, ...]
    supervisor: tuple[int, str]  # process id and start time
    folder: JobFolder
    doubt: str = ""  # why it may be no gang of ours: a job may write files that name any seats

    @property
    def key(self) -> tuple[str, int]:
        return self.job_id, self.epoch

    @property
    def is_running(self) -> bool:
        """Whether its supervisor still runs."""
        return is_running(*self.supervisor)

    def stop(self, grace_s: float) -> None:
        """Have its supervisor stop it, with so much time to save. Raises OSError."""
        self.folder.write_lease(0.0, grace_s)
        wake_supervisor(*self.supervisor)


def running_gangs(jobs: Path) -> Iterator[FoundGang]:
    """Yield the gangs below a folder of jobs, in order of their files."""
    for lease in sorted(_lease_files(jobs.resolve())):
        number = lease.stem.partition("-")[2]
        if not (number.isascii() and number.isdigit() and len(number) < MOST_DIGITS):
            continue  # a job may have set the variable to anything
        folder = JobFolder(lease.parent, lease.parent / "checkpoint", int(number))
        record = read_json(folder.record) or {}
        try:
            job_id, seats = str(record.get("job", lease.parent.name)), tuple(map(int, record.get("seats", ())))
            found = FoundGang(job_id, folder.epoch, seats, (int(record["pid"]), str(record["start"])), folder)
        except (LookupError, ValueError, TypeError, OverflowError):  # no record of a supervisor
            continue
        with contextlib.suppress(OSError):  # it has ended by now
            if found.is_running:
                yield replace(found, doubt=_doubt(found, record))


def _doubt(gang: FoundGang, record: Mapping[str, Any]) -> str:
    """Return why the process that a record names is not known to be the supervisor of a gang on those seats.

    A supervisor runs as we do, and has locked its job and each seat, which no other process can have while it lives.
    """
    pid, path = gang.supervisor[0], gang.folder.path
    if not record.get("launched"):
        return "it has not begun"
    if record.get("boot", boot_id()) != boot_id() or os.stat(f"/proc/{pid}").st_uid != os.geteuid():
        return f"process {pid} is not its supervisor"
    held = locks()
    for file in (path / "job.lock", *(path.parent / "seats" / f"{seat}.lock" for seat in gang.seats)):
        if pid not in holders(file, held):
            return f"process {pid} has not locked {file.name}"
    return ""


def _lease_files(jobs: Path) -> set[Path]:
    """Return the lease files that processes have in their environment, of gangs below this folder."""
    found = {Path(lease) for pid in all_pids() if (lease := lease_of(pid)).startswith(f"{jobs}{os.sep}")}
    return {path for path in found if path.parent.parent == jobs}
