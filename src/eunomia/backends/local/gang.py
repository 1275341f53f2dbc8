"""One start of a job: its supervisor, its lease, its end."""

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

from eunomia.backends.local.job_directory import JobFolder
from eunomia.lease import CALLED_BACK
from eunomia.model.job import Job

SUPERVISOR = Path(__file__).with_name("supervisor.py")
SWEEP_S = 5.0  # longest time to hunt what a killed supervisor left behind


@dataclass(frozen=True, slots=True)
class Ending:
    """How a gang ended. `cause` says who wanted it: nobody ("exited"), us ("asked"), or the supervisor."""

    code: int  # of the first process; -n = killed by signal n
    cause: str

    @property
    def finished(self) -> bool:
        return self.code == 0

    @property
    def was_stopped(self) -> bool:
        """Whether an order can explain the end; otherwise the gang failed just before it."""
        return self.cause != "exited" or self.code == CALLED_BACK

    def lapsed(self, end_s: float) -> bool:
        """Whether it went because its lease, which ended at `end_s`, was not renewed in time."""
        left_by_itself = self.cause == "exited" and self.code == CALLED_BACK and time.monotonic() >= end_s
        return self.cause == "expired" or left_by_itself

    def reason(self, last_words: str) -> str:
        """Say why the job failed, in a line."""
        if self.cause == "lost":
            return "its supervisor was killed"
        if self.code == CALLED_BACK:
            return f"it stopped by itself with exit code {CALLED_BACK}, which means called back, though nobody called"
        how = f"exit code {self.code}" if self.code >= 0 else f"killed by {_signal_name(-self.code)}"
        return f"{how}: {last_words}" if last_words else how


@dataclass(slots=True, eq=False)
class LocalGang:
    """A gang that has seats, or waits for those before it to leave them."""

    job: Job
    epoch: int
    seats: frozenset[int]
    lease_id: tuple[str, int]  # two that share seats have one lease
    until: float  # seconds since the run began
    folder: JobFolder
    environment: dict[str, str]
    stopping: bool = False
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def launch(self, end_s: float, grace_s: float, lock: int, cwd: Path) -> int:
        """Start the supervisor, which starts the gang; return the pipe it speaks through. May raise OSError."""
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
        """Whether `other`, which is alive, is of the same job or on the same seats under another lease."""
        same_seats = not self.seats.isdisjoint(other.seats) and self.lease_id != other.lease_id
        return self.job.job_id == other.job.job_id or same_seats

    def stop(self, grace_s: float) -> None:
        """Ask for its end: TERM now, KILL after the grace."""
        self.stopping = True
        self._send(f"stop {grace_s!r}")

    def has_news(self) -> bool:
        """Whether the supervisor said something; False when it has ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        return bool(os.read(self.process.stdout.fileno(), 4096))

    def bury(self) -> Ending:
        """Say how the gang ended, after its supervisor has; if that was killed, nothing of the gang survives it."""
        self._wait()
        found = self.folder.read_exit()
        if found is None:
            sweep(self.folder)
            return Ending(-signal.SIGKILL, "lost")
        code, cause, _ = found
        return Ending(code, cause)

    def destroy(self) -> None:
        """Kill the supervisor and all that it watched, at once."""
        assert self.process is not None
        self.process.kill()
        self._wait()
        sweep(self.folder)

    def let_go(self) -> None:
        """Leave the end to the supervisor, which stops the gang when nothing is connected to it any more."""
        assert self.process is not None
        self._close_pipes()

    def _wait(self) -> None:
        assert self.process is not None
        self.process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
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
        with contextlib.suppress(BrokenPipeError):  # it has ended; the other pipe says so too
            if not self.process.stdin.closed:
                self.process.stdin.write(line.encode() + b"\n")


def sweep(folder: JobFolder) -> None:
    """Kill every process that carries the lease of this job, wherever in the tree; where there is no /proc, none."""
    mark, give_up = f"EUNOMIA_LEASE_FILE={folder.lease}".encode(), time.monotonic() + SWEEP_S
    while time.monotonic() < give_up and (found := carriers(mark)):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def carriers(mark: bytes) -> list[int]:
    """Return the processes that have this variable in their environment."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):  # it ended, or is not ours to read
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def lease_end(origin: float, until: float, grace_s: float) -> float:
    """Return when a supervisor must act on a lease, on time.monotonic's clock: renewals may be late by the grace."""
    return math.inf if math.isinf(until) else origin + until + grace_s
