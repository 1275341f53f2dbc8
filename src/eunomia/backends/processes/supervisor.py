"""Supervises one gang and kills all of its processes at its end. A separate script; standard library only.

Standard input: a line of JSON with the command; what comes later is a reason to read the lease. Standard output: L once
the gang runs, a point whenever the progress file changes, U when processes do not die; its end means that the gang has
ended and the exit record is written. Standard error, inherited, is the job's log.

It outlives its scheduler until the lease ends: orders are read from the lease file (`stop`: the grace), it locks the
files in `locks` before it launches the gang, and writes who it is to the file `record`, so that another scheduler finds
it. With `lock`, the open lock file of a run, the end of standard input stops the gang, as it means that the scheduler
has ended. With `processes` the gang has so many processes, with the variables of torchrun; when one of them fails, the
others are stopped. One with `claim` runs under an engine, which may have started it twice: the first to create that
file goes on, and ends with the exit code of the gang. The gang has `environment` besides the supervisor's own, begins
in `cwd`, and runs under `account`, if that is given. With the arguments `--die-with-parent PID` it kills the gang, with
all of its processes, when the process that started it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import math
import os
import select
import shutil
import signal
import socket
import sys
import time
from typing import Any, NoReturn

POLL_S = 0.2  # of the lease and progress files
REAP_S = 0.02  # between checks for killed processes
CANNOT_START = 127
UNKILLABLE_S = 5.0  # after KILL: then its seats are out of service until the last process has ended
# PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER and PR_SET_NO_NEW_PRIVS of <linux/prctl.h>
DIE_WITH_PARENT, SUBREAPER, NO_NEW_PRIVILEGES = 1, 36, 38
ABANDONED = signal.SIGUSR1  # the parent has ended: kill the gang at once
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    """One gang from its launch to its exit record."""

    def __init__(self, spec: dict[str, Any], wake: int) -> None:
        self.spec = spec
        self.outlives = "lock" not in spec  # its scheduler; else only the exit record has to survive a power cut
        self.wake = wake
        self.cause = "exited"  # or asked, orphaned, expired, signalled: why the gang was stopped
        self.signalled = self.abandoned = False
        self.has_input = True
        self.kill_at = math.inf
        self.end = math.inf  # of the lease
        self.code: int | None = None  # 0, or that of the first process that failed; None while any runs
        self.failed_code = 0
        self.seen = _file_state(spec["progress"])
        self.pids: list[int] = []  # also their group ids
        self.running: set[int] = set()

    def run(self) -> None:
        """Supervise the gang until all of its processes have ended, then write the exit record."""
        if not self.may_launch():
            return
        for variables in ranks(self.spec["processes"]) if "processes" in self.spec else [{}]:
            self.pids.append(launch(self.spec, variables))
        self.running.update(self.pids)
        self.write_record(launched=True)
        self.tell(b"L")
        while self.code is None:
            self.wait()
            self.read_lease()
            self.report_progress()
            self.enforce()
            self.reap()
            self.rotate_log()
        self.kill_remaining()
        self.report_progress()
        if self.code == 0:
            write_whole(self.spec["finished"], "{}", durable=self.outlives)
        self.write_exit()

    def write_exit(self) -> None:
        record = {"code": self.code, "cause": self.cause, "epoch": self.spec["epoch"]}
        write_whole(self.spec["exit"], json.dumps(record))
        if "last_exit" in self.spec:
            write_whole(self.spec["last_exit"], json.dumps(record), durable=False)

    def may_launch(self) -> bool:
        """Wait until earlier gangs have left the job and the seats; False if the job ended or was stopped meanwhile.

        Also one that was stopped waits for the job: its end says that no earlier gang of the job runs.
        """
        if "claim" in self.spec and not claimed(self.spec["claim"]):
            return False
        self.write_record(launched=False)
        handles = [(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), shared) for path, shared in self.spec["locks"]]
        while not all(locked(handle, shared) for handle, shared in handles):
            self.wait(REAP_S)
            if self.is_called_back() and locked(*handles[0]):  # that of the job
                return self.end_early()
        if os.path.exists(self.spec["exit"]):  # of a supervisor of the same epoch
            return False
        if os.path.exists(self.spec["finished"]):  # the gang of an earlier epoch finished while it was being stopped
            self.code = 0
            self.write_exit()
            return False
        return self.end_early() if self.is_called_back() else True

    def is_called_back(self) -> bool:
        """Return whether the lease has ended or was called back."""
        self.read_lease()
        return self.kill_at < math.inf or time.monotonic() >= self.end

    def end_early(self) -> bool:
        """Record the end of a gang that was never launched; return False."""
        self.code, self.cause = -signal.SIGTERM, "asked" if self.kill_at < math.inf else "expired"
        self.write_exit()
        return False

    def write_record(self, *, launched: bool, unkillable: bool = False) -> None:
        pid = os.getpid()
        record = {"pid": pid, "start": start_time(pid), "epoch": self.spec["epoch"], "launched": launched}
        if unkillable:
            record["unkillable"] = True
        write_whole(self.spec["record"], json.dumps(record), durable=self.outlives)

    def tell(self, byte: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the scheduler has ended; standard input ends too
            os.write(1, byte)

    def wait(self, longest_s: float = POLL_S) -> None:
        """Wait for an order, the end of a child, or the next poll."""
        left = min(self.end, self.kill_at) - time.monotonic()
        timeout = left if 0 < left < longest_s else longest_s
        ready, _, _ = select.select([0, self.wake] if self.has_input else [self.wake], [], [], timeout)
        if self.wake in ready:
            os.read(self.wake, 4096)
        if 0 in ready and not os.read(0, 4096):
            self.has_input = False
            if not self.outlives:
                self.stop("orphaned", self.spec["grace_s"])
        if self.abandoned:
            self.stop("orphaned", 0.0)
        if self.signalled:
            self.signalled = False
            self.stop("signalled", self.spec["grace_s"])

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
            self.signal_gang(signal.SIGTERM)
        self.kill_at = min(self.kill_at, time.monotonic() + grace_s)

    def signal_gang(self, number: int) -> None:
        """Signal the process group of each process of the gang, or the process before its group exists."""
        for pid in sorted(self.running):
            try:
                os.killpg(pid, number)
            except (ProcessLookupError, PermissionError):  # no group yet, or only of another user's processes
                with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended; see `reap`
                    os.kill(pid, number)

    def reap(self) -> bool:
        """Collect ended children. Return whether any child is alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid in self.running:
                self.running.remove(pid)
                self.member_ended(os.waitstatus_to_exitcode(status))

    def member_ended(self, code: int) -> None:
        """Stop the others after the first failure; the last end is that of the gang."""
        self.failed_code = self.failed_code or code
        if not self.running:
            self.code = self.failed_code
        elif code:
            self.stop(self.cause, self.spec["grace_s"])

    def kill_remaining(self) -> None:
        """Kill all remaining descendants."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # an empty group, or another user's
                os.killpg(pid, signal.SIGKILL)
        deadline = time.monotonic() + UNKILLABLE_S
        while self.reap():
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or is another user's
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() >= deadline:
                deadline = math.inf
                self.write_record(launched=True, unkillable=True)
                self.tell(b"U")
            time.sleep(REAP_S)

    def rotate_log(self) -> None:
        """Keep the end of a log that is too long beside it, and begin again; all processes append to the same file."""
        limit = self.spec.get("log_bytes", 0)
        if limit and (size := os.fstat(2).st_size) > limit:
            with open(self.spec["log"], "rb") as old, open(f"{self.spec['log']}.1", "wb") as kept:
                old.seek(size - limit)
                shutil.copyfileobj(old, kept)
            os.ftruncate(2, 0)

    def report_progress(self) -> None:
        stamp = _file_state(self.spec["progress"])
        if stamp != self.seen:
            self.seen = stamp
            self.tell(b".")


def ranks(count: int) -> list[dict[str, str]]:
    """Return what torchrun sets for each of `count` processes on one machine, with a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [{"RANK": str(rank), "LOCAL_RANK": str(rank), **shared} for rank in range(count)]


def launch(spec: dict[str, Any], variables: dict[str, str]) -> int:
    """Start a process in its own session; it is killed when this process ends. Return its pid, also its group id."""
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # no signal may be lost between fork and exec
    pid = os.fork()
    if pid == 0:
        _exec(spec, variables, parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return pid


def _exec(spec: dict[str, Any], variables: dict[str, str], parent: int) -> NoReturn:
    command = spec["command"]
    what = f"cannot start {command[0]!r}"
    try:
        if "account" in spec:
            become(**spec["account"])
        control(DIE_WITH_PARENT, signal.SIGKILL)  # after the change of user, which forgets it
        if os.getppid() != parent:
            os._exit(CANNOT_START)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        if spec.get("cwd"):
            what = f"cannot begin in the folder {spec['cwd']!r}"
            os.chdir(spec["cwd"])
            what = f"cannot start {command[0]!r}"
        environment = {**os.environ, **variables}
        if "umask" in spec:
            os.umask(spec["umask"])
        try:
            os.execvpe(command[0], command, environment)
        except FileNotFoundError:
            if "python" not in spec:
                raise
            os.execve(spec["python"], [spec["python"], *command[1:]], environment)
    except OSError as error:
        os.write(2, f"{what}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(CANNOT_START)


def become(uid: int, gid: int, groups: list[int], **_person: str) -> None:
    """Give up the rights of root for those of an account, for good. Raises OSError if they cannot be given up."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    control(NO_NEW_PRIVILEGES, 1)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid):
        raise PermissionError(errno.EPERM, "the rights of root could not be given up")


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


def write_whole(path: str, text: str, *, durable: bool = True) -> None:
    """Replace a file atomically, and so that a power cut does not undo it if it is to be durable."""
    draft = f"{path}.draft"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(draft, path)
    if not durable:
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _file_state(path: str) -> tuple[int, int]:
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return stat.st_ino, stat.st_mtime_ns


def _first_line() -> bytes:
    data = b""
    while b"\n" not in data:
        chunk = os.read(0, 65536)
        if not chunk:
            raise SystemExit("standard input ended before the command")
        data += chunk
    return data.partition(b"\n")[0]


def die_with_parent() -> None:
    """Be signalled when the parent ends; end now if it has ended already."""
    control(DIE_WITH_PARENT, ABANDONED)
    if os.getppid() != int(sys.argv[sys.argv.index("--die-with-parent") + 1]):
        raise SystemExit("the process that started this one has ended")


def main() -> None:
    if "--die-with-parent" in sys.argv:
        die_with_parent()
    spec = json.loads(_first_line())
    if "lock" in spec:
        os.set_inheritable(spec["lock"], False)  # inherited by supervisors, not by gangs
    os.environ.update(spec.get("environment", {}))
    control(SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    supervisor = Supervisor(spec, wake_read)

    def on_signal(number: int, _frame: object) -> None:
        if number == ABANDONED:
            supervisor.abandoned = True
        else:
            supervisor.signalled = supervisor.signalled or number != signal.SIGCHLD

    signal.set_wakeup_fd(wake_write)
    for number in (*STOP_SIGNALS, signal.SIGCHLD, ABANDONED):
        signal.signal(number, on_signal)
    supervisor.run()
    if "claim" in spec and supervisor.code:
        raise SystemExit(supervisor.code if supervisor.code > 0 else 128 - supervisor.code)


if __name__ == "__main__":
    main()
