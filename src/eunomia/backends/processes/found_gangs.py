"""Gangs that run in a folder of jobs, found by their processes: also those that a store does not know."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eunomia.backends.processes.folder import JobFolder, read_json
from eunomia.backends.processes.gang_group import is_running, wake_supervisor

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
        if found.is_running:
            yield found


def _lease_files(jobs: Path) -> set[Path]:
    """Return the lease files that processes have in their environment, of gangs below this folder."""
    found, prefix = set[Path](), _VARIABLE + os.fsencode(f"{jobs}{os.sep}")
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0") if name.isdigit() else []
            found.update(Path(os.fsdecode(one.removeprefix(_VARIABLE))) for one in variables if one.startswith(prefix))
    return {path for path in found if path.parent.parent == jobs}
