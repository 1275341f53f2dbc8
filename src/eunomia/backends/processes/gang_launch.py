"""Starts the processes of a gang. Standard library only: supervisors use it."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import warnings  # noqa: F401 - `os.execvpe` imports it, when a job's account may not read it any more

from eunomia.backends.processes.gang_group import GangGroup, control, write_kernel

# Neither typing is imported, nor socket where it is not needed: each supervisor has memory of its own.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

CANNOT_START = 127
OOM_SCORE = "500"  # of jobs: when memory runs out, the kernel kills them before the service and supervisors
DIE_WITH_PARENT, NO_NEW_PRIVILEGES = 1, 38  # PR_SET_PDEATHSIG and PR_SET_NO_NEW_PRIVS of <linux/prctl.h>
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What says that this machine has run out of something, not that the gang is wrong: it can be started later.
RAN_OUT = {
    errno.EMFILE: "open files", errno.ENFILE: "open files", errno.EAGAIN: "processes", errno.ENOMEM: "memory",
    errno.ENOSPC: "space on its disk", errno.EDQUOT: "space on its disk",
}  # fmt: skip


def what_ran_out(error: OSError) -> str:
    """Return in words what this machine has none of; "" if the error says something else."""
    found = RAN_OUT.get(error.errno or 0)
    return f"this machine has no {found} left for it ({os.strerror(error.errno or 0)})" if found else ""


class Launcher:
    """Starts processes, and knows why one could not begin."""

    def __init__(self, spec: dict[str, Any], output: int, errors: int) -> None:
        self._spec, self._output, self._stderr = spec, output, errors
        self._errors, self._report = os.pipe()  # an error of exec; the write end is closed by exec itself
        os.set_blocking(self._errors, False)

    def launch(self, variables: dict[str, str]) -> int:
        """Start a process in its own session; it is killed when this process ends. Return its pid, also its group id.

        Raises OSError.
        """
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # no signal may be lost between fork and exec
        try:
            pid = os.fork()
            if pid == 0:
                self._exec(variables, parent)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        return pid

    def what_ran_out(self) -> str:
        """Return what the machine had none of when a process was to begin; "" if that was not the cause."""
        with contextlib.suppress(BlockingIOError):
            if number := os.read(self._errors, 100).split():
                return what_ran_out(OSError(int(number[0]), ""))
        return ""

    def _exec(self, variables: dict[str, str], parent: int) -> NoReturn:
        spec = self._spec
        command = spec["command"]
        what = f"cannot start {command[0]!r}"
        try:
            if spec.get("group"):
                GangGroup(spec["group"], spec.get("limits")).enter()
            write_kernel("/proc/self/oom_score_adj", OOM_SCORE)
            if "nofile" in spec:
                resource.setrlimit(
                    resource.RLIMIT_NOFILE, (spec["nofile"], resource.getrlimit(resource.RLIMIT_NOFILE)[1])
                )
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
            os.dup2(self._output, 1)
            os.dup2(self._stderr, 2)
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
            os.write(self._report, f"{error.errno} ".encode())
            os.write(2, f"{what}: {error.strerror}\n".encode(errors="replace"))
        finally:
            os._exit(CANNOT_START)


def ranks(count: int) -> list[dict[str, str]]:
    """Return what torchrun sets for each of `count` processes on one machine, with a port that is free now."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [{"RANK": str(rank), "LOCAL_RANK": str(rank), **shared} for rank in range(count)]


def become(uid: int, gid: int, groups: list[int], **_person: str) -> None:
    """Give up the rights of root for those of an account, for good. Raises OSError if they cannot be given up."""
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    control(NO_NEW_PRIVILEGES, 1)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid):
        raise PermissionError(errno.EPERM, "the rights of root could not be given up")
