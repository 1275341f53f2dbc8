"""One start of a job: its supervisor process, lease and end."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from eunomia.backends.processes.folder import JobFolder
from eunomia.lease import CALLED_BACK
from eunomia.model.job import Job

SUPERVISOR = Path(__file__).with_name("supervisor.py")
KILL_S = 5.0  # longest time to kill processes of a dead supervisor


@dataclass(frozen=True, slots=True)
class Ending:
    """How a gang ended. `cause` is "exited" (by itself), "asked" (by the backend), or a reason of the supervisor."""

    code: int  # of the first process; -n = killed by signal n
    cause: str

    @property
    def finished(self) -> bool:
        return self.code == 0

    @property
    def was_stopped(self) -> bool:
        """Whether the gang ended because of an order; otherwise it failed before the order."""
        return self.cause != "exited" or self.code == CALLED_BACK

    def has_lapsed(self, end_s: float) -> bool:
        """Whether the gang ended because its lease, until `end_s`, was not renewed in time."""
        left_by_itself = self.cause == "exited" and self.code == CALLED_BACK and time.monotonic() >= end_s
        return self.cause == "expired" or left_by_itself

    def reason(self, last_line: str) -> str:
        """Return why the job failed, with the last line of its log."""
        if self.cause == "lost":
            return "its supervisor was killed"
        if self.code == CALLED_BACK:
            return f"it stopped by itself with exit code {CALLED_BACK}, which means called back, but it was not"
        how = f"exit code {self.code}" if self.code >= 0 else f"killed by {_signal_name(-self.code)}"
        return f"{how}: {last_line}" if last_line else how


@dataclass(slots=True, eq=False)
class LocalGang:
    """A gang that has seats, or waits until earlier gangs have left them."""

    job: Job
    epoch: int
    seats: frozenset[int]
    lease_id: tuple[str, int]  # of both jobs that share seats
    until: float  # seconds since the run began
    folder: JobFolder
    environment: dict[str, str]
    stopping: bool = False
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def launch(self, end_s: float, grace_s: float, lock: int, cwd: Path) -> int:
        """Start the supervisor, which starts the gang; return its output pipe. Raises OSError if that fails."""
        self.folder.prepare()
        self.folder.write_lease(end_s)
        files = {
            "EUNOMIA_LEASE_FILE": str(self.folder.lease),
            "EUNOMIA_PROGRESS_FILE": str(self.folder.progress),
            "EUNOMIA_CHECKPOINT_DIR": str(self.folder.checkpoints),
        }
        with open(self.folder.log, "ab") as log:
            log.write(f"--- epoch {self.epoch}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=self.environment | files,
                cwd=cwd,
                start_new_session=True,
                pass_fds=(lock,),
            )
        self._send(json.dumps(self._spec(grace_s, lock)))
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def must_wait_for(self, other: LocalGang) -> bool:
        """Whether `other`, a live gang, has the same job, or the same seats with another lease."""
        same_seats = not self.seats.isdisjoint(other.seats) and self.lease_id != other.lease_id
        return self.job.job_id == other.job.job_id or same_seats

    def stop(self, grace_s: float) -> None:
        """Stop the gang: TERM now, KILL after `grace_s`."""
        self.stopping = True
        self._send(f"stop {grace_s!r}")

    def read_output(self) -> bool:
        """Read the output of the supervisor; return False when it has ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        return bool(os.read(self.process.stdout.fileno(), 4096))

    def reap(self) -> Ending:
        """Return how the gang ended, after its supervisor has; kill its processes if the supervisor was killed."""
        self._wait()
        record = self.folder.read_exit()
        if record is None:
            kill_processes(self.folder)
            return Ending(-signal.SIGKILL, "lost")
        code, cause, _ = record
        return Ending(code, cause)

    def destroy(self) -> None:
        """Kill the supervisor and its gang at once."""
        assert self.process is not None
        self.process.kill()
        self._wait()
        kill_processes(self.folder)

    def _wait(self) -> None:
        assert self.process is not None
        self.process.wait()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the pipes, after which the supervisor stops the gang."""
        assert self.process is not None
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _spec(self, grace_s: float, lock: int) -> dict[str, object]:
        first, *rest = self.job.command
        return {
            "command": [sys.executable if first == "python" else first, *rest],
            "lease": str(self.folder.lease),
            "progress": str(self.folder.progress),
            "exit": str(self.folder.exit),
            "epoch": self.epoch,
            "grace_s": grace_s,
            "lock": lock,
        }

    def _send(self, line: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the supervisor has ended
            if not self.process.stdin.closed:
                self.process.stdin.write(line.encode() + b"\n")


def kill_processes(folder: JobFolder) -> list[int]:
    """Kill every process of this job's lease; return those that did not die within `KILL_S`."""
    deadline = time.monotonic() + KILL_S
    while pids := processes_of(folder):
        if time.monotonic() >= deadline:
            break
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or runs as another user
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return pids


def processes_of(folder: JobFolder) -> list[int]:
    """Return the ids of processes with the lease of this job in their environment; none without /proc."""
    return processes_with(f"EUNOMIA_LEASE_FILE={folder.lease}".encode())


def processes_with(variable: bytes) -> list[int]:
    """Return the ids of processes with a variable NAME=value in their environment."""
    pids = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or belongs to another user
                if variable in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    pids.append(int(name))
    return pids


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def lease_end(origin: float, until: float, grace_s: float) -> float:
    """Return when a supervisor stops a gang, in s of time.monotonic: end of the lease + grace for late renewals."""
    return math.inf if math.isinf(until) else origin + until + grace_s
