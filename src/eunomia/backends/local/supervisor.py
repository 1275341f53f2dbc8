"""Watches one gang and leaves no process of it behind. Runs as a script of its own, standard library only.

Standard input: a line of JSON that says what to run, then orders, one a line: `stop GRACE_S`. Its end means that the
scheduler is gone, and stops the gang too. Standard output: one byte whenever the progress file changes; its end means
that the gang is gone and the exit record written. Standard error, inherited, is the job's log.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

LOOK_S = 0.2  # between two looks at the lease and progress files
SETTLE_S = 0.02  # between two looks for processes that were killed
CANNOT_START = 127
DIE_WITH_PARENT, SUBREAPER = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    """One gang from its launch to its exit record."""

    def __init__(self, spec: dict[str, Any], rest: bytes, wake: int) -> None:
        self.spec = spec
        self.orders = rest
        self.wake = wake
        self.cause = "exited"  # or asked, orphaned, expired, signalled: why it was told to end
        self.signalled = False
        self.listening = True
        self.kill_at = math.inf
        self.end = math.inf  # of the lease
        self.code: int | None = None
        self.seen = _stamp(spec["progress"])
        self.pid = 0

    def run(self) -> None:
        """Watch the gang until none of its processes is left, then say how it ended."""
        self.pid = launch(self.spec["command"])
        while self.code is None:
            self.wait()
            self.look_at_lease()
            self.tell_progress()
            self.enforce()
            self.reap()
        self.clear_away()
        self.tell_progress()
        ended = {"code": self.code, "cause": self.cause, "epoch": self.spec["epoch"]}
        write_whole(self.spec["exit"], json.dumps(ended))

    def wait(self) -> None:
        """Sleep until an order, a death in the family, or the next time to look."""
        left = min(self.end, self.kill_at) - time.monotonic()
        timeout = left if 0 < left < LOOK_S else LOOK_S
        ready, _, _ = select.select([0, self.wake] if self.listening else [self.wake], [], [], timeout)
        if self.wake in ready:
            os.read(self.wake, 4096)
        if 0 in ready:
            self.hear(os.read(0, 4096))
        if self.signalled:
            self.signalled = False
            self.tell_to_end("signalled", self.spec["grace_s"])

    def hear(self, chunk: bytes) -> None:
        if not chunk:
            self.listening = False
            self.tell_to_end("orphaned", self.spec["grace_s"])
            return
        *lines, self.orders = (self.orders + chunk).split(b"\n")
        for line in lines:
            self.tell_to_end("asked", float(line.split()[1]))

    def look_at_lease(self) -> None:
        try:
            with open(self.spec["lease"], encoding="utf-8") as file:
                end = json.load(file)["end_s"]
        except FileNotFoundError:  # the folder was removed; what was promised stands
            return
        self.end = math.inf if end is None else end

    def enforce(self) -> None:
        now = time.monotonic()
        if now >= self.end and self.kill_at == math.inf:
            self.tell_to_end("expired", self.spec["grace_s"])
        if now >= self.kill_at:
            self.signal_gang(signal.SIGKILL)

    def tell_to_end(self, cause: str, grace_s: float) -> None:
        """TERM now, KILL after the grace. A second call may only hasten the end."""
        if self.kill_at == math.inf:
            self.cause = cause
            self.signal_gang(signal.SIGTERM)
        self.kill_at = min(self.kill_at, time.monotonic() + grace_s)

    def signal_gang(self, number: int) -> None:
        """Signal every process of the gang's group; before it has its group, the first process."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile; `reap` will see
                os.kill(self.pid, number)

    def reap(self) -> bool:
        """Bury the dead. Return whether any child is alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def clear_away(self) -> None:
        """Kill what the gang left behind, wherever in the tree it hides."""
        with contextlib.suppress(ProcessLookupError):  # an empty group
            os.killpg(self.pid, signal.SIGKILL)
        while self.reap():
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                    os.kill(pid, signal.SIGKILL)
            time.sleep(SETTLE_S)

    def tell_progress(self) -> None:
        stamp = _stamp(self.spec["progress"])
        if stamp != self.seen:
            self.seen = stamp
            with contextlib.suppress(BrokenPipeError):  # nobody listens; standard input says so too
                os.write(1, b".")


def launch(command: list[str]) -> int:
    """Start the gang in a session of its own, to die with this process. Return its pid, which is its group too."""
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)  # none may be lost between fork and exec
    pid = os.fork()
    if pid == 0:
        _become(command, parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    return pid


def _become(command: list[str], parent: int) -> NoReturn:
    try:
        control(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(CANNOT_START)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*ENDINGS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]!r}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(CANNOT_START)


def descendants(root: int) -> list[int]:
    """Return the processes below `root`, from /proc; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError):  # it ended while we looked
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found, look_at = [], [root]
    while look_at:
        below = children.get(look_at.pop(), [])
        found += below
        look_at += below
    return found


def control(option: int, value: int) -> None:
    """Call prctl where there is one; elsewhere the process group alone must do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def write_whole(path: str, text: str) -> None:
    """Replace a file in one step and for good."""
    draft = f"{path}.draft"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns


def _first_line() -> tuple[bytes, bytes]:
    heard = b""
    while b"\n" not in heard:
        chunk = os.read(0, 65536)
        if not chunk:
            raise SystemExit("standard input ended before it said what to run")
        heard += chunk
    line, _, rest = heard.partition(b"\n")
    return line, rest


def main() -> None:
    line, rest = _first_line()
    spec = json.loads(line)
    os.set_inheritable(spec["lock"], False)  # held by supervisors, not by gangs
    control(SUBREAPER, 1)
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)
    supervisor = Supervisor(spec, rest, awake)

    def hear(number: int, _frame: object) -> None:
        supervisor.signalled = supervisor.signalled or number != signal.SIGCHLD

    signal.set_wakeup_fd(wake)
    for number in (*ENDINGS, signal.SIGCHLD):
        signal.signal(number, hear)
    supervisor.run()


if __name__ == "__main__":
    main()
