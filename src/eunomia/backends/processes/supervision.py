"""Supervises one gang and kills all of its processes at its end. In a process of its own; standard library only.

Standard input: a line of JSON with the command. Standard output: L once the gang runs, U when processes do not die; its
end means that the gang has ended and the exit record is written. Standard error, inherited, is the job's log; with
`errors`, a path, what the gang writes to its standard error goes there.

It outlives its scheduler until the lease ends: orders are read from the lease file (`stop`: the grace) when the lease
that it knows is over, when it gets SIGCHLD (`is_woken`: orders come with one), and now and then. It locks the files in
`locks` before it launches the gang, and writes who it is to the file `record`, so that another scheduler finds it. With
`lock`, the open lock file of a run, the end of standard input stops the gang, as it means that the scheduler has ended.
With `processes` the gang has so many processes, with the variables of torchrun; when one of them fails, the others are
stopped. Their control group is `group`, with `limits`; `memory_bytes` is what they may use, where the group does not
see to it. One with `claim` runs under an engine, which may have started it twice: the first to create that file goes
on, and ends with the exit code of the gang. The gang has `environment` besides the supervisor's own, begins in `cwd`,
and runs under `account`, if that is given. With the arguments `--die-with-parent PID` it kills the gang, with all of
its processes, when the process that started it ends.

It does nothing that may take long while the gang runs: the log is copied by a thread, see `log_copier`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import signal
import sys
import time

from eunomia.backends.processes.gang_group import (
    GangGroup,
    become_subreaper,
    boot_id,
    control,
    descendants,
    give_back_memory,
    is_running,
    kill,
    memory_bytes,
    processes_with,
    start_time,
)
from eunomia.backends.processes.gang_launch import (
    CANNOT_START,
    DIE_WITH_PARENT,
    STOP_SIGNALS,
    Launcher,
    ranks,
    what_ran_out,
)
from eunomia.backends.processes.log_copier import LogCopier
from eunomia.backends.processes.plain_files import open_anew, open_plain

TYPE_CHECKING = False  # see `gang_launch`
if TYPE_CHECKING:
    from typing import Any

POLL_S = 0.2  # of the lease file
QUIET_POLL_S = 60.0  # of a gang that has run for long, if orders wake the supervisor
REAP_S = 0.02  # between checks for killed processes
MEMORY_S = 1.0  # between readings of the memory that the gang uses
ALARM_S = 5.0  # after an alarm of memory, in which the kernel's kill is looked for
MOST_LEASE = 4096  # bytes of a lease that are read
MOST_HOLDERS = 1 << 20  # bytes of a lock file that are read
AGAIN_S = 1.0  # until a record is written again that the disk has not taken
UNKILLABLE_S = 5.0  # after KILL: then its seats are out of service until the last process has ended
ABANDONED = signal.SIGUSR1  # the parent has ended: kill the gang at once


class Supervisor:
    """One gang from its launch to its exit record."""

    def __init__(self, spec: dict[str, Any], wake: int) -> None:
        self.spec = spec
        self.outlives = "lock" not in spec  # its scheduler; else only the exit record has to survive a power cut
        self.group = GangGroup(spec["group"], spec.get("limits")) if spec.get("group") else None
        self.alarm = self.group.memory_alarm() if self.group is not None and "memory_gib" in spec else None
        self.wakes = [wake] if self.alarm is None else [wake, self.alarm]
        self.cause = "exited"  # or asked, orphaned, expired, signalled, memory, later: why the gang was stopped
        self.reason = ""  # in words, if it was memory or later
        self.signalled = self.abandoned = self.is_unkillable = False
        self.has_input = True
        self.kill_at = math.inf
        self.end = math.inf  # of the lease
        self.code: int | None = None  # 0, or that of the first process that failed; None while any runs
        self.failed_code = 0
        self.begun = self.memory_at = time.monotonic()  # also when memory is looked at again
        self.alarmed_at = -math.inf
        self.locks: list[tuple[int, bool]] = []  # open files, and whether a partner may have them too
        self.pids: list[int] = []  # also their group ids
        self.running: set[int] = set()

    def run(self) -> None:
        """Supervise the gang until all of its processes have ended, then write the exit record."""
        if not self.may_launch():
            return
        self.sign_locks()
        limit = self.spec.get("log_bytes", 0)
        errors = self.begin_errors()
        log = LogCopier(self.spec["log"], limit, self.spec.get("errors", ""), errors) if limit else None
        self.launcher = Launcher(self.spec, *((2, errors) if log is None else log.write_ends))
        try:
            for variables in ranks(self.spec["processes"]) if "processes" in self.spec else [{}]:
                self.pids.append(self.launcher.launch(variables))
        except OSError as error:
            self.cannot_launch(error)
        if log is not None:
            log.start()
        self.running.update(self.pids)
        if self.code is None:
            with contextlib.suppress(OSError):  # a full disk; what is known of the gang is in the record before
                self.write_record(launched=True)
            self.tell(b"L")
        give_back_memory()
        while self.code is None:
            self.wait()
            self.read_lease()
            self.check_memory()
            self.enforce()
            self.reap()
        self.kill_remaining()
        if log is not None:
            log.finish(UNKILLABLE_S)
        for handle, _ in self.locks:
            if locked(handle, shared=False):  # no partner has it, so it names no holder from now on
                os.ftruncate(handle, 0)
        if self.group is not None:
            if self.group.ran_out_of_memory():
                self.cause, self.reason = "memory", self.memory_reason()
            self.group.remove()
        self.write_ends()

    def begin_errors(self) -> int:
        """Return the open file for standard error: the log, or one of its own that says that a start begins."""
        if "errors" not in self.spec:
            return 2
        handle = open_anew(self.spec["errors"], os.O_WRONLY | os.O_APPEND, 0o600)
        os.write(handle, f"--- epoch {self.spec['epoch']}\n".encode())
        return handle

    def cannot_launch(self, error: OSError) -> None:
        """End before the gang runs; raises the error unless the machine has run out of something."""
        self.reason = what_ran_out(error)
        if not self.reason:
            raise error
        self.code, self.cause = CANNOT_START, "later"

    def write_ends(self) -> None:
        """Write how the gang ended; on a full disk as soon as it can be, as a job that finished must not run again."""
        while True:
            try:
                if self.code == 0:
                    write_whole(self.spec["finished"], "{}", durable=self.outlives)
                self.write_exit()
                return
            except OSError as error:
                if not what_ran_out(error):
                    raise
            time.sleep(AGAIN_S)

    def write_exit(self) -> None:
        record = {"code": self.code, "cause": self.cause, "epoch": self.spec["epoch"]}
        if self.reason:
            record["reason"] = self.reason
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
        flags = os.O_RDWR | os.O_APPEND
        self.locks = [(open_anew(path, flags, 0o600), shared) for path, shared in self.spec["locks"]]
        while not all(is_left(*lock) for lock in self.locks):
            self.wait(REAP_S)
            if self.is_called_back() and is_left(*self.locks[0]):  # that of the job
                return self.end_early()
        if os.path.exists(self.spec["exit"]):  # of a supervisor of the same epoch
            return False
        if os.path.exists(self.spec["finished"]):  # the gang of an earlier epoch finished while it was being stopped
            self.code = 0
            self.write_exit()
            return False
        return self.end_early() if self.is_called_back() else True

    def sign_locks(self) -> None:
        """Write into the locked files whose they are, for the case that this supervisor is killed; see `is_left`."""
        holder = {"pid": os.getpid(), "start": start_time(os.getpid()), "boot": boot_id()}
        line = json.dumps(holder | {"lease": self.spec["lease"], "group": self.spec.get("group", "")})
        for handle, shared in self.locks:
            if not shared:
                os.ftruncate(handle, 0)
            os.write(handle, f"{line}\n".encode())

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
        """Write who supervises the gang. After the launch that need not survive a power cut, as the gang does not."""
        pid = os.getpid()
        record: dict[str, Any] = {
            "pid": pid,
            "start": start_time(pid),
            "epoch": self.spec["epoch"],
            "launched": launched,
        }
        record["boot"] = boot_id()
        for key in ("job", "seats", "group"):
            if key in self.spec:
                record[key] = self.spec[key]
        if unkillable:
            record["unkillable"] = True
        write_whole(self.spec["record"], json.dumps(record), durable=self.outlives and not launched)

    def tell(self, byte: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, BlockingIOError):  # the scheduler has ended, or does not read
            os.write(1, byte)

    def wait(self, longest_s: float | None = None) -> None:
        """Wait for an order, the end of a child, or the next poll."""
        now = time.monotonic()
        due = (self.end, self.kill_at, self.kill_at + UNKILLABLE_S)
        timeout = min(self.pace_s() if longest_s is None else longest_s, *(at - now for at in due if at > now))
        ready, _, _ = select.select([0, *self.wakes] if self.has_input else self.wakes, [], [], timeout)
        for wake in self.wakes:
            if wake in ready:
                os.read(wake, 4096)
                if wake == self.alarm:
                    self.alarmed_at = time.monotonic()
        if 0 in ready and not os.read(0, 4096):
            self.has_input = False
            if not self.outlives:
                self.stop("orphaned", self.spec["grace_s"])
        if self.abandoned:
            self.stop("orphaned", 0.0)
        if self.signalled:
            self.signalled = False
            self.stop("signalled", self.spec["grace_s"])

    def pace_s(self) -> float:
        """Return how long the lease need not be looked at: longer, the longer the gang has run."""
        now = time.monotonic()
        is_alarmed = now - self.alarmed_at < ALARM_S  # the kernel gives it before it kills and counts
        if "is_woken" not in self.spec or self.kill_at < math.inf or is_alarmed:
            return POLL_S
        longest_s = MEMORY_S if "memory_bytes" in self.spec else QUIET_POLL_S
        return min(max((now - self.begun) / 8, POLL_S), longest_s)

    def read_lease(self) -> None:
        """Read orders. Without a lease, as its folder or the job has removed it, the last one remains valid."""
        try:
            handle = open_plain(self.spec["lease"])
        except OSError:
            return
        text = os.read(handle, MOST_LEASE)
        os.close(handle)
        try:
            lease = json.loads(text)
            end = math.inf if lease["end_s"] is None else float(lease["end_s"])
            grace_s = float(lease["stop"]) if "stop" in lease else None
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError):  # not as its scheduler wrote it
            return
        self.end = end
        if grace_s is not None:
            self.stop("asked", grace_s)

    def enforce(self) -> None:
        now = time.monotonic()
        if now >= self.end and self.kill_at == math.inf:
            self.stop("expired", self.spec["grace_s"])
        if now >= self.kill_at:
            self.signal_gang(signal.SIGKILL)
            if self.group is not None:
                self.group.kill()
        if now >= self.kill_at + UNKILLABLE_S:
            self.say_unkillable()

    def check_memory(self) -> None:
        """Stop a gang that uses more memory than it asked for, where no control group sees to all of it."""
        if self.alarm is not None and self.group is not None and self.group.ran_out_of_memory():
            self.stop("memory", 0.0)
        limit, now = self.spec.get("memory_bytes", math.inf), time.monotonic()
        if limit == math.inf or now < self.memory_at:
            return
        self.memory_at = now + MEMORY_S
        pids = descendants(os.getpid()) if self.group is None else self.group.pids()
        if memory_bytes(pids, limit) > limit:
            self.reason = self.memory_reason()
            self.stop("memory", 0.0)

    def memory_reason(self) -> str:
        return f"it used more than {self.spec['memory_gib']:g} GiB of memory, which is its memory_gib"

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
        if code == CANNOT_START and (reason := self.launcher.what_ran_out()):
            self.cause, self.reason = "later", reason
        if not self.running:
            self.code = self.failed_code
        elif code:
            self.stop(self.cause, self.spec["grace_s"])

    def kill_remaining(self) -> None:
        """Kill all remaining descendants, and what else is in the control group."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # an empty group, or another user's
                os.killpg(pid, signal.SIGKILL)
        deadline, pause_s = time.monotonic() + UNKILLABLE_S, REAP_S
        while self.reap() or (self.group is not None and self.group.is_populated()):
            if self.group is not None:
                self.group.kill()
            kill(descendants(os.getpid()))
            if time.monotonic() >= deadline:
                self.say_unkillable()
                pause_s = MEMORY_S
            time.sleep(pause_s)

    def say_unkillable(self) -> None:
        """Say once that processes of the gang do not die, so that its seats are given to no other."""
        if not self.is_unkillable:
            self.is_unkillable = True
            with contextlib.suppress(OSError):  # a full disk
                self.write_record(launched=True, unkillable=True)
            self.tell(b"U")


def claimed(path: str) -> bool:
    """Create a file unless it exists; the engines of all machines see the same folder."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def is_left(handle: int, shared: bool) -> bool:
    """Lock an open file if it is free and nothing is left of the gangs that had it, whose supervisors may be killed."""
    if not locked(handle, shared):
        return False
    leases, groups = set[bytes](), list[GangGroup]()
    for line in os.pread(handle, MOST_HOLDERS, 0).splitlines():
        with contextlib.suppress(ValueError, LookupError, TypeError):  # a part of a line, after a power cut
            holder = json.loads(line)
            if holder["boot"] == boot_id() and not is_running(int(holder["pid"]), holder["start"]):
                leases.add(f"EUNOMIA_LEASE_FILE={holder['lease']}".encode())
                groups += [GangGroup(holder["group"])] if holder["group"] else []
    groups = [group for group in groups if group.is_populated()]
    pids = processes_with(leases) if leases else []
    for group in groups:
        group.kill()
    kill(pids)
    return not (groups or pids)


def locked(handle: int, shared: bool) -> bool:
    """Lock an open file if it is free; the lock ends with this process."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_whole(path: str, text: str, *, durable: bool = True) -> None:
    """Replace a file atomically, and so that a power cut does not undo it if it is to be durable."""
    draft = f"{path}.draft"
    with open(open_anew(draft, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
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
    become_subreaper()
    os.set_blocking(1, False)  # a scheduler that does not read delays nothing
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
    try:
        supervisor.run()
    except OSError as error:
        if supervisor.pids:  # it runs, so this is no matter of starting it later
            raise
        supervisor.cannot_launch(error)
        supervisor.write_ends()
    if "claim" in spec and supervisor.code:
        raise SystemExit(supervisor.code if supervisor.code > 0 else 128 - supervisor.code)
