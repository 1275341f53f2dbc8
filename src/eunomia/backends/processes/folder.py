"""The files of the jobs of a run, and the lock of their folder."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import math
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.lease import write_whole
from eunomia.model.job import Job

MAX_NAME = 80  # characters of a folder's name
TAIL_BYTES = 4096  # of a log, read for its last lines
RETRY_S = 0.05  # between attempts to lock a folder
SHOWN = 200  # characters of a line of a log
MAX_REPORT = 65_536  # bytes of a progress report
_log = logging.getLogger(__name__)


def folder_name(job_id: str) -> str:
    """Return a name that is valid in any file system and unique to the job; plain ids are unchanged."""
    if re.fullmatch(r"[a-z0-9_-][a-z0-9._-]*", job_id) and len(job_id) <= MAX_NAME:
        return job_id
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", job_id)[: MAX_NAME // 2]
    return f"{plain}~{hashlib.sha256(job_id.encode(errors='surrogatepass')).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one job: log, lease, progress and exit record."""

    path: Path
    checkpoints: Path

    @classmethod
    def of(cls, job: Job, workdir: Path, cwd: Path) -> JobFolder:
        """Return the folder of a job without creating it."""
        path = workdir / folder_name(job.job_id)
        return cls(path, cwd / job.checkpoint_dir if job.checkpoint_dir else path / "checkpoint")

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def lease(self) -> Path:
        return self.path / "lease.json"

    @property
    def progress(self) -> Path:
        return self.path / "progress.json"

    @property
    def exit(self) -> Path:
        return self.path / "exit.json"

    def prepare(self) -> None:
        """Create the folders and remove the exit record of an earlier gang."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self.exit.unlink(missing_ok=True)

    def write_lease(self, end_s: float) -> None:
        """Write the end of the lease, in s of time.monotonic; inf = without end."""
        write_whole(self.lease, json.dumps({"end_s": None if math.isinf(end_s) else end_s}))

    def read_progress(self, total_steps: float) -> float | None:
        """Return the saved steps that the job reports; None without a valid report."""
        try:
            step = json.loads(_written_by_job(self.progress))["step"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            _log.warning("%s: not a progress report (%s); write it with Lease.progress", self.progress, error)
            return None
        if isinstance(step, bool) or not isinstance(step, (int, float)) or not 0 <= step < math.inf:
            _log.warning("%s: step is %.100r, but it counts from 0; report ignored", self.progress, step)
            return None
        return min(float(step), total_steps)

    def read_loss(self) -> float:
        """Return the last loss that the job reported; nan without a valid one."""
        try:
            loss = json.loads(_written_by_job(self.progress))["loss"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return math.nan  # `read_progress` logs invalid reports
        return float(loss) if isinstance(loss, (int, float)) and not isinstance(loss, bool) else math.nan

    def read_exit(self) -> tuple[int, str, int] | None:
        """Return exit code, cause and epoch of the last gang that ended; None if none has in this run."""
        try:
            record = json.loads(self.exit.read_bytes())
        except FileNotFoundError:
            return None
        return int(record["code"]), str(record["cause"]), int(record["epoch"])

    def last_line(self) -> str:
        """Return the last line of the log, for a message; "" if it is empty."""
        lines = last_lines(self.log, 1)
        return lines[0][:SHOWN] if lines else ""


def _written_by_job(path: Path) -> bytes:
    """Return the beginning of a file that a job may have replaced by anything. Raises OSError for what is no file."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return os.read(handle, MAX_REPORT)
    finally:
        os.close(handle)


def last_lines(log: Path, count: int) -> list[str]:
    """Return up to `count` last lines of a log, without control characters."""
    try:
        with open(log, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
            lines = file.read().decode(errors="replace").rstrip().splitlines()
    except FileNotFoundError:
        return []
    return ["".join(c for c in line.expandtabs() if c.isprintable()) for line in lines[-count:]]


def lock(workdir: Path, wait_s: float = 0.0) -> int:
    """Lock a folder for one run and return the open lock file, which supervisors inherit.

    So the lock is released when the last supervisor has ended. Raises InvalidInput if another run still has the lock
    after `wait_s`.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    handle = os.open(workdir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline, is_waiting = time.monotonic() + wait_s, False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= deadline:
                break
        if not is_waiting:
            _log.warning("%s: jobs of an earlier run still save and stop; waiting for them", workdir)
            is_waiting = True
        time.sleep(RETRY_S)
    os.close(handle)
    rule = "this folder is in use by a run, or by jobs that are being stopped"
    fix = "wait until it has ended, or name another folder"
    raise InvalidInput([Problem(file=str(workdir), rule=rule, fix=fix)])
