"""Supervises one gang and kills all of its processes at its end. A separate script; standard library only.

Standard input: a line of JSON with the command, then orders, one a line: `stop GRACE_S`. Its end means that the
scheduler has ended, and stops the gang. Standard output: one byte whenever the progress file changes; its end means
that the gang has ended and the exit record is written. Standard error, inherited, is the job's log.

A command line with `detached` makes a supervisor that outlives its scheduler until the lease ends: orders are read from
the lease file (`stop`: the grace), it locks the files in `locks` before it launches the gang, and writes who it is to
the file `record`, so that another scheduler finds it. One with `claim` runs under an engine, which may have started it
twice: the first to create that file goes on, and ends with the exit code of the gang. It adds `environment` to its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import math
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

POLL_S = 0.2  # of the lease and progress files
REAP_S = 0.02  # between checks for killed processes
CANNOT_START = 127
DIE_WITH_PARENT, SUBREAPER = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    """One gang from its launch to its exit record."""

    def __init__(self, spec: dict[str, Any], rest: bytes, wake: int) -> None:
        self.spec = spec
        self.orders = rest
        self.wake = wake
        self.cause = "exited"  # or asked, orphaned, expired, signalled: why the gang was stopped
        self.signalled = False
        self.reads_orders = True
        self.kill_at = math.inf
        self.end = math.inf  # of the lease
        self.code: int | None = None
        self.seen = _file_state(spec["progress"])
        self.pid = 0

    def run(self) -> None:
        """Supervise the gang until all of its processes have ended, then write the exit record."""
        if self.spec.get("detached") and not self.may_launch():
            return
        self.pid = launch(self.spec["command"], self.spec.get("cwd", ""))
        if self.spec.get("detached"):
            self.write_record(launched=True)
            self.tell(b"L")
        while self.code is None:
            self.wait()
            self.read_lease()
            self.report_progress()
            self.enforce()
            self.reap()
        self.kill_remaining()
        self.report_progress()
        if self.code == 0 and self.spec.get("detached"):
            write_whole(self.spec["finished"], "{}")
        self.write_exit()

    def write_exit(self) -> None:
        record = {"code": self.code, "cause": self.cause, "epoch": self.spec["epoch"]}
        write_whole(self.spec["exit"], json.dumps(record))

    def may_launch(self) -> bool:
        """Wait until earlier gangs have left the job and the seats; False if the job ended or was stopped meanwhile."""
        if "claim" in self.spec and not claimed(self.spec["claim"]):
            return False
        self.write_record(launched=False)
        handles = [(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), shared) for path, shared in self.spec["locks"]]
        while not all(locked(handle, shared) for handle, shared in handles):
            self.wait(REAP_S)
            if self.is_stopped_early():
                return False
        if "claim" in self.spec and self.is_stopped_early():
            return False
        if os.path.exists(self.spec["exit"]):  # of a supervisor of the same epoch
            return False
        if os.path.exists(self.spec["finished"]):  # the gang of an earlier epoch finished while it was being stopped
            self.code = 0
            self.write_exit()
            return False
        return True

    def is_stopped_early(self) -> bool:
        """Return whether the gang was stopped before its launch, which then has an exit record."""
        self.read_lease()
        if self.kill_at == math.inf and time.monotonic() < self.end:
            return False
        self.code, self.cause = -signal.SIGTERM, "asked" if self.kill_at < math.inf else "expired"
        self.write_exit()
        return True

    def write_record(self, *, launched: bool) -> None:
        pid = os.getpid()
        record = {"pid": pid, "start": start_time(pid), "epoch": self.spec["epoch"], "launched": launched}
        write_whole(self.spec["record"], json.dumps(record))

    def tell(self, byte: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the scheduler has ended; standard input ends too
            os.write(1, byte)

    def wait(self, longest_s: float = POLL_S) -> None:
        """Wait for an order, the end of a child, or the next poll."""
        left = min(self.end, self.kill_at) - time.monotonic()
        timeout = left if 0 < left < longest_s else longest_s
        ready, _, _ = select.select([0, self.wake] if self.reads_orders else [self.wake], [], [], timeout)
        if self.wake in ready:
            os.read(self.wake, 4096)
        if 0 in ready:
            self.read_orders(os.read(0, 4096))
        if self.signalled:
            self.signalled = False
            self.stop("signalled", self.spec["grace_s"])

    def read_orders(self, chunk: bytes) -> None:
        if not chunk:
            self.reads_orders = False
            if not self.spec.get("detached"):
                self.stop("orphaned", self.spec["grace_s"])
            return
        *lines, self.orders = (self.orders + chunk).split(b"\n")
        for line in lines:
            self.stop("asked", float(line.split()[1]))

    def read_lease(self) -> None:
        try:
            with open(self.spec["lease"], encoding="utf-8") as file:
                lease = json.load(file)
        except FileNotFoundError:  # the folder was removed; the last lease remains valid
            return
        self.end = math.inf if lease["end_s"] is None else lease["end_s"]
        if "stop" in lease:
            self.stop("asked", lease["stop"])

    def enforce(self) -> None:
        now = time.monotonic()
        if now >= self.end and self.kill_at == math.inf:
            self.stop("expired", self.spec["grace_s"])
        if now >= self.kill_at:
            self.signal_gang(signal.SIGKILL)

    def stop(self, cause: str, grace_s: float) -> None:
        """TERM now, KILL after the grace. A second call can only shorten the grace."""
        if self.kill_at == math.inf:
            self.cause = cause
            if self.pid:
                self.signal_gang(signal.SIGTERM)
        self.kill_at = min(self.kill_at, time.monotonic() + grace_s)

    def signal_gang(self, number: int) -> None:
        """Signal the process group of the gang, or its first process before the group exists."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            with contextlib.suppress(ProcessLookupError):  # it has ended; see `reap`
                os.kill(self.pid, number)

    def reap(self) -> bool:
        """Collect ended children. Return whether any child is alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def kill_remaining(self) -> None:
        """Kill all remaining descendants."""
        with contextlib.suppress(ProcessLookupError):  # an empty group
            os.killpg(self.pid, signal.SIGKILL)
        while self.reap():
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    os.kill(pid, signal.SIGKILL)
            time.sleep(REAP_S)

    def report_progress(self) -> None:
        stamp = _file_state(self.spec["progress"])
        if stamp != self.seen:
            self.seen = stamp
            self.tell(b".")


def launch(command: list[str], cwd: str = "") -> int:
    """Start the gang in its own session; it is killed when this process ends. Return its pid, also its group id."""
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # no signal may be lost between fork and exec
    pid = os.fork()
    if pid == 0:
        _exec(command, parent, cwd)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return pid


def _exec(command: list[str], parent: int, cwd: str) -> NoReturn:
    try:
        control(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(CANNOT_START)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        if cwd:
            os.chdir(cwd)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]!r}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(CANNOT_START)


def descendants(root: int) -> list[int]:
    """Return the descendants of process `root` from /proc; none without /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):  # it has ended
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    pids, stack = [], [root]
    while stack:
        below = children.get(stack.pop(), [])
        pids += below
        stack += below
    return pids


def control(option: int, value: int) -> None:
    """Call prctl on Linux; elsewhere only the process group is used."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def claimed(path: str) -> bool:
    """Create a file unless it exists; the engines of all machines see the same folder."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def locked(handle: int, shared: bool) -> bool:
    """Lock an open file if it is free; the lock ends with this process."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start_time(pid: int) -> str:
    """Return when a process started, in ticks since the boot; "" without /proc. A pid alone names no process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""


def write_whole(path: str, text: str) -> None:
    """Replace a file atomically and durably."""
    draft = f"{path}.draft"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _file_state(path: str) -> tuple[int, int]:
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return stat.st_ino, stat.st_mtime_ns


def _first_line() -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data:
        chunk = os.read(0, 65536)
        if not chunk:
            raise SystemExit("standard input ended before the command")
        data += chunk
    line, _, rest = data.partition(b"\n")
    return line, rest


def main() -> None:
    line, rest = _first_line()
    spec = json.loads(line)
    if "lock" in spec:
        os.set_inheritable(spec["lock"], False)  # inherited by supervisors, not by gangs
    os.environ.update(spec.get("environment", {}))
    control(SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    supervisor = Supervisor(spec, rest, wake_read)

    def on_signal(number: int, _frame: object) -> None:
        supervisor.signalled = supervisor.signalled or number != signal.SIGCHLD

    signal.set_wakeup_fd(wake_write)
    for number in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, on_signal)
    supervisor.run()
    if "claim" in spec and supervisor.code:
        raise SystemExit(supervisor.code if supervisor.code > 0 else 128 - supervisor.code)


if __name__ == "__main__":
    main()
