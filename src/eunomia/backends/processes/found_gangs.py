"""Gangs that run in a folder of jobs, found by their processes: also those that a store does not know."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eunomia.backends.processes.folder import JobFolder, read_json
from eunomia.backends.processes.gang_group import boot_id, is_running, kernel_text, wake_supervisor

MOST_DIGITS = 12  # of the number of a start
_VARIABLE = b"EUNOMIA_LEASE_FILE="


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
        wake_supervisor(self.supervisor[0])


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
    held = _locked_by(pid)
    for file in (path / "job.lock", *(path.parent / "seats" / f"{seat}.lock" for seat in gang.seats)):
        if not file.exists() or file.stat().st_ino not in held:
            return f"process {pid} has not locked {file.name}"
    return ""


def _locked_by(pid: int) -> set[int]:
    """Return the numbers of the files (inodes) that a process has locked."""
    words = [line.split() for line in kernel_text("/proc/locks").splitlines()]
    return {int(one[5].rpartition(":")[2]) for one in words if one[1] == "FLOCK" and one[4] == str(pid)}


def _lease_files(jobs: Path) -> set[Path]:
    """Return the lease files that processes have in their environment, of gangs below this folder."""
    found, prefix = set[Path](), _VARIABLE + os.fsencode(f"{jobs}{os.sep}")
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0") if name.isdigit() else []
            found.update(Path(os.fsdecode(one.removeprefix(_VARIABLE))) for one in variables if one.startswith(prefix))
    return {path for path in found if path.parent.parent == jobs}
