"""The files of the jobs of a run or a service, and the lock of a run's folder."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import math
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eunomia.backends.processes.accounts import Account
from eunomia.backends.processes.gang_launch import what_ran_out
from eunomia.backends.processes.interactive_session import NOTE
from eunomia.backends.processes.plain_files import open_anew, open_plain
from eunomia.inputs.bounds import MOST_STEPS
from eunomia.inputs.json_text import parse_json
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.lease import CALLED_BACK, write_whole

PROGRESS, RECORD = "progress.json", "supervisor-"  # a file of a job, and what begins the names of others
MAX_NAME = 80  # characters of a folder's name
TAIL_BYTES = 4096  # of a log, read for its last lines
RETRY_S = 0.05  # between attempts to lock a folder
SHOWN = 200  # characters of a line of a log
LEASE_BYTES = 80  # length of each lease
MAX_REPORT = 65_536  # bytes of a progress report
_log = logging.getLogger(__name__)


def folder_name(job_id: str) -> str:
    """Return a name that is valid in any file system and unique to the job; plain ids are unchanged."""
    if re.fullmatch(r"[a-z0-9_-][a-z0-9._-]*", job_id) and len(job_id) <= MAX_NAME:
        return job_id
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", job_id)[: MAX_NAME // 2]
    return f"{plain}~{hashlib.sha256(job_id.encode(errors='surrogatepass')).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How a gang ended, as its supervisor wrote it down.

    `cause`: exited (by itself), asked (an order), or why else its supervisor stopped it: expired, orphaned, signalled,
    memory (it used too much), later (it was not launched, as the machine had none of something). The last two have a
    `reason`.
    """

    code: int  # of the first process that failed; -n = killed by signal n
    cause: str
    epoch: int
    reason: str = ""

    def outcome(self, *, was_stopped: bool, last_line: str) -> tuple[str, str]:
        """Return how the gang ended, and why if it failed; `was_stopped`: its stop was ordered.

        Finished, failed (by itself), stopped (by an order), or "ended": by none of these, its world knows by what.
        """
        if self.code == 0:
            return "finished", ""
        if self.cause == "memory":
            return "failed", f"killed: {self.reason}"
        if self.cause == "asked" or (was_stopped and (self.cause != "exited" or self.code == CALLED_BACK)):
            return "stopped", ""
        return ("ended", "") if self.cause != "exited" else ("failed", self._reason(last_line))

    def _reason(self, last_line: str) -> str:
        """Return why the job failed, with the last line of its log."""
        if self.code == CALLED_BACK:
            return f"it stopped by itself with exit code {CALLED_BACK}, which means called back, but it was not"
        how = f"exit code {self.code}" if self.code >= 0 else f"killed by {_signal_name(-self.code)}"
        return f"{how}: {last_line}" if last_line else how


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one start of a job; log, progress and checkpoints are those of the job."""

    path: Path
    checkpoints: Path
    epoch: int = 0
    account: Account | None = None  # under which the job runs; None = that of this process

    @classmethod
    def of(
        cls, workdir: Path, job_id: str, epoch: int = 0, checkpoint_dir: str = "", account: Account | None = None
    ) -> JobFolder:
        """Return the folder of a job below `workdir`, without creating it; `checkpoint_dir` "" = one in there."""
        path = workdir / folder_name(job_id)
        return cls(path, Path(checkpoint_dir) if checkpoint_dir else path / "checkpoint", epoch, account)

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def errors(self) -> Path:
        """Return the log of standard error, where that is apart."""
        return self.path / "errors"

    @property
    def own(self) -> Path:
        """Return the folder in which the job may write besides its checkpoints."""
        return self.path if self.account is None else self.path / "own"

    @property
    def progress(self) -> Path:
        return self.own / PROGRESS

    @property
    def token(self) -> Path:
        return self.path / f"token-{self.epoch}"

    @property
    def lease(self) -> Path:
        return self.path / f"lease-{self.epoch}.json"

    @property
    def exit(self) -> Path:
        return self.path / f"exit-{self.epoch}.json"

    @property
    def last_exit(self) -> Path:
        """Return the exit record of the last gang of the job that ended; runs have one."""
        return self.path / "exit.json"

    @property
    def record(self) -> Path:
        """Who supervises the gang."""
        return self.path / f"{RECORD}{self.epoch}.json"

    def make(self, mode: int = 0o777) -> None:
        """Create the folders; those that the job writes to belong to its account, which passes through the others."""
        self.path.mkdir(parents=True, exist_ok=True, mode=mode)
        for folder in dict.fromkeys((self.checkpoints, self.own)):
            if not folder.exists():
                folder.mkdir(parents=True, mode=mode)
                if self.account is not None:
                    self.account.own(folder)
        if self.account is not None:
            self.path.chmod(0o711)

    def begin_log(self) -> int:
        """Open the log, and write that a start begins."""
        log = open_anew(self.log, os.O_WRONLY | os.O_APPEND)
        os.write(log, f"--- epoch {self.epoch}\n".encode())
        return log

    def write_token(self, text: str) -> None:
        """Write the token of this start, for the job's account alone; its folder is the service's."""
        write_whole(self.token, f"{text}\n", mode=0o400)
        if self.account is not None:
            self.account.own(self.token)

    def write_lease(self, end_s: float, stop_grace_s: float | None = None) -> None:
        """Write the end of the lease, in s of time.monotonic, inf = without end; or an order to stop as well."""
        order = {} if stop_grace_s is None else {"stop": stop_grace_s}
        mode = None if self.account is None else 0o644  # its account reads it
        text = json.dumps({"end_s": None if math.isinf(end_s) else end_s, **order}).ljust(LEASE_BYTES)
        try:
            write_whole(self.lease, text, mode=mode)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self.lease.exists():
                raise
            # A full disk still has the room of the last one.
            with open(open_plain(self.lease, os.O_RDWR), "r+b", buffering=0) as file:
                file.write(text.encode())

    def forget_start(self) -> None:
        """Remove what a start left behind that did not launch its gang, as it is tried again."""
        last = read_json(self.last_exit)
        for path in (self.exit, self.record, *[self.last_exit] * (last is not None and last["epoch"] == self.epoch)):
            path.unlink(missing_ok=True)

    def read_progress(self, total_steps: float) -> float | None:
        """Return the saved steps that the job reports; None without a valid report."""
        try:
            step = parse_json(_written_by_job(self.progress).decode())["step"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("%s: not a progress report (%s); write it with Lease.progress", self.progress, error)
            return None
        if isinstance(step, bool) or not isinstance(step, (int, float)) or not 0 <= step <= MOST_STEPS:
            rule = f"it is a number from 0 to {MOST_STEPS:g}"
            _log.warning("%s: step is %.100r, but %s; report ignored", self.progress, step, rule)
            return None
        return min(float(step), total_steps)

    def read_idle(self) -> float | None:
        """Return since when an interactive job is idle, in s of time.monotonic; None if it is not."""
        since = (read_json(self.own / NOTE) or {}).get("idle_since")
        return float(since) if isinstance(since, int | float) and not isinstance(since, bool) else None

    def read_loss(self) -> float:
        """Return the last loss that the job reported; nan without a valid one."""
        try:
            loss = parse_json(_written_by_job(self.progress).decode())["loss"]
        except (OSError, ValueError, KeyError, TypeError):
            return math.nan  # `read_progress` logs invalid reports
        return float(loss) if isinstance(loss, (int, float)) and not isinstance(loss, bool) else math.nan

    def read_exit(self) -> ExitRecord | None:
        """Return how the gang of this epoch ended; None if it has not.

        The last record of the job counts too if it is about this epoch, or says that the job is finished.
        """
        for path in (self.exit, self.last_exit):
            found = read_json(path)
            if found is not None:
                try:
                    reason = str(found.get("reason", ""))
                    record = ExitRecord(int(found["code"]), str(found["cause"]), int(found["epoch"]), reason)
                except (LookupError, ValueError, TypeError, OverflowError) as error:
                    _log.warning("%s: no exit record (%r); passed over", path, error)
                    continue
                if record.epoch == self.epoch or record.code == 0:
                    return record
        return None

    def last_line(self) -> str:
        """Return the last line of its errors, else of the log since the gang began, for a message; "" without any."""
        for log in (self.errors, self.log):
            lines = last_lines(log, 1)
            if lines and not lines[0].startswith("--- epoch "):
                return lines[0][:SHOWN]
        return ""


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file that was written whole; None without that file, or where a power cut emptied it.

    Where jobs run under the account of the service they can write here, too.
    """
    try:
        return dict(parse_json(_written_by_job(path).decode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, OSError) and what_ran_out(error):  # what it says is not known yet
            raise
        _log.warning("%s: not as it was written (%s); passed over", path, error)
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _written_by_job(path: Path) -> bytes:
    """Return the beginning of a file that a job may have replaced by anything. Raises OSError for what is no file."""
    handle = open_plain(path)
    try:
        return os.read(handle, MAX_REPORT)
    finally:
        os.close(handle)


def last_lines(log: Path, count: int) -> list[str]:
    """Return up to `count` last lines of a log, without control characters."""
    try:
        handle = open_plain(log)
    except OSError:
        return []
    with open(handle, "rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
        lines = file.read().decode(errors="replace").rstrip().splitlines()
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
