"""Where a run keeps the files of its jobs, and who may use the place."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import math
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.lease import write_whole
from eunomia.model.job import Job

LONGEST_NAME = 80  # characters of a folder's name
TAIL_BYTES = 4096  # of the log, searched for its last lines
LOOK_S = 0.05  # between two attempts to lock a folder
SHOWN = 200  # characters of that line
_log = logging.getLogger(__name__)


def folder_name(job_id: str) -> str:
    """Return a name that is safe in any file system and differs for different jobs; plain ids are kept."""
    if re.fullmatch(r"[a-z0-9_-][a-z0-9._-]*", job_id) and len(job_id) <= LONGEST_NAME:
        return job_id
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", job_id)[: LONGEST_NAME // 2]
    return f"{plain}~{hashlib.sha256(job_id.encode(errors='surrogatepass')).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one job: its log, its lease, its progress and how its gang ended."""

    path: Path
    checkpoints: Path

    @classmethod
    def of(cls, job: Job, workdir: Path, cwd: Path) -> JobFolder:
        """Name the folder of a job; makes nothing."""
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
        """Make the folders and forget how an earlier gang ended."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self.exit.unlink(missing_ok=True)

    def write_lease(self, end_s: float) -> None:
        """Promise the seats until `end_s` on the clock of time.monotonic; inf = for as long as the job needs."""
        write_whole(self.lease, json.dumps({"end_s": None if math.isinf(end_s) else end_s}))

    def read_progress(self, total_steps: float) -> float | None:
        """Return the steps that the job says are safe, or None if it says nothing that can be so."""
        try:
            step = json.loads(self.progress.read_bytes())["step"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            _log.warning("%s: not a progress report (%s); write it with Lease.progress", self.progress, error)
            return None
        if isinstance(step, bool) or not isinstance(step, (int, float)) or not 0 <= step < math.inf:
            _log.warning("%s: step is %.100r, but it counts from 0; report passed over", self.progress, step)
            return None
        return min(float(step), total_steps)

    def read_loss(self) -> float:
        """Return the loss that the job reported last; nan = none, or nothing that can be one."""
        try:
            loss = json.loads(self.progress.read_bytes())["loss"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return math.nan  # `read_progress` has said what is wrong with the report
        return float(loss) if isinstance(loss, (int, float)) and not isinstance(loss, bool) else math.nan

    def read_exit(self) -> tuple[int, str, int] | None:
        """Return exit code, cause and epoch of the gang that ended last; None if no gang of this run has."""
        try:
            found = json.loads(self.exit.read_bytes())
        except FileNotFoundError:
            return None
        return int(found["code"]), str(found["cause"]), int(found["epoch"])

    def last_lines(self, count: int) -> list[str]:
        """Return up to so many of the last lines of the log, without what a terminal would obey."""
        return last_lines(self.log, count)

    def last_words(self) -> str:
        """Return the last line of the log, for a message; "" if there is none."""
        lines = last_lines(self.log, 1)
        return lines[0][:SHOWN] if lines else ""


def last_lines(log: Path, count: int) -> list[str]:
    """Return up to so many of the last lines of a log that are not empty, each without control characters."""
    try:
        with open(log, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
            lines = file.read().decode(errors="replace").rstrip().splitlines()
    except FileNotFoundError:
        return []
    return ["".join(c for c in line.expandtabs() if c.isprintable()) for line in lines[-count:]]


def lock(workdir: Path, wait_s: float = 0.0) -> int:
    """Take a folder for one run and return the open lock, which supervisors share.

    So the folder is free again only when the last of them is gone. Raises InvalidInput while another run holds it;
    `wait_s` is how long to wait for that, such as for jobs that still save.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    handle = os.open(workdir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    give_up, waits = time.monotonic() + wait_s, False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= give_up:
                break
        if not waits:
            _log.warning("%s: jobs of an earlier run still save and stop; waiting for them", workdir)
            waits = True
        time.sleep(LOOK_S)
    os.close(handle)
    problems = Problems(str(workdir))
    problems.add(
        "this folder is in use by a run, or by jobs that are being stopped",
        "wait until it has ended, or name another folder",
    )
    raise InvalidInput(problems.kept)
