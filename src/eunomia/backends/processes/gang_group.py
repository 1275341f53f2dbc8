"""The processes of a gang, as the kernel knows them: a control group where there can be one, descendants.

Standard library only: supervisors use it. Whatever is not there, such as /proc or cgroup v2, is as if it were empty.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Set

CPU_PERIOD_US = 100_000
OUR_GROUPS = "eunomia-"  # begins their names
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>


class GangGroup:
    """A group of cgroup v2: what a process in it starts is in it too, whatever it does with sessions and variables.

    `limits` are its groups of cgroup v1, by the controller that each has, on a machine whose controllers are there.
    """

    def __init__(self, path: str, limits: Mapping[str, str] | None = None) -> None:
        """Raise ValueError for a path that we never make: it may come from a file that a job has written."""
        self.path, self.limits = path, dict(limits or {})
        for each in self._folders():
            if not os.path.basename(each).startswith(OUR_GROUPS):
                raise ValueError(f"{each} is no group of a gang")

    def make(self, memory_gib: float, cpus: float, tasks: int) -> None:
        """Make it with limits, 0 = none, which hold where their kernel controllers are there. Raises OSError."""
        for each in self._folders():
            os.makedirs(each, mode=0o755, exist_ok=True)
        if memory_gib:
            most = str(int(memory_gib * 2**30))
            self._set("memory", **{"memory.max": most, "memory.swap.max": "0"})
            self._set("memory", **{"memory.oom.group": "1"})  # all of the gang, not the largest process
            self._set("memory", **{"memory.limit_in_bytes": most, "memory.memsw.limit_in_bytes": most})
        if cpus:
            quota = str(max(int(cpus * CPU_PERIOD_US), 1000))
            self._set("cpu", **{"cpu.max": f"{quota} {CPU_PERIOD_US}"})
            self._set("cpu", **{"cpu.cfs_period_us": str(CPU_PERIOD_US), "cpu.cfs_quota_us": quota})
        if tasks:
            self._set("pids", **{"pids.max": str(tasks)})

    def _folders(self) -> list[str]:
        return [self.path, *dict.fromkeys(self.limits.values())]

    def _folder(self, controller: str) -> str:
        return self.limits.get(controller, self.path)

    def _set(self, controller: str, **values: str) -> None:
        for name, value in values.items():  # without effect in a version of cgroup that has no such file
            write_kernel(f"{self._folder(controller)}/{name}", value)

    def enter(self) -> None:
        """Move this process into the group."""
        for each in self._folders():
            write_kernel(f"{each}/cgroup.procs", "0")

    def pids(self) -> list[int]:
        """Return the processes of the group and of groups that they made below it."""
        return [
            int(line)
            for folder, _, _ in os.walk(self.path)
            for line in kernel_text(f"{folder}/cgroup.procs").split()
        ]  # fmt: skip

    def is_populated(self) -> bool:
        """Whether a process is in the group; one that has ended and was not waited for does not count."""
        return "populated 1" in kernel_text(f"{self.path}/cgroup.events")

    def kill(self) -> None:
        """Kill all processes of the group."""
        if not self.is_populated():
            return
        write_kernel(f"{self.path}/cgroup.kill", "1")  # since Linux 5.14
        if not os.path.exists(f"{self.path}/cgroup.kill"):
            kill(self.pids())

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process because the group's limit was reached."""
        name = "memory.oom_control" if "memory" in self.limits else "memory.events"
        counts = dict(line.split() for line in kernel_text(f"{self._folder('memory')}/{name}").splitlines())
        return int(counts.get("oom_kill", 0)) > 0

    def memory_alarm(self) -> int | None:
        """Return what becomes readable when the limit of memory is reached, in cgroup v1, which kills one process."""
        if "memory" not in self.limits:
            return None
        folder = self._folder("memory")
        try:
            alarm = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            watched = os.open(f"{folder}/memory.oom_control", os.O_RDONLY)
        except (AttributeError, OSError):  # not on this system, or the group is gone
            return None
        write_kernel(f"{folder}/cgroup.event_control", f"{alarm} {watched}")
        os.close(watched)
        return alarm

    def remove(self) -> None:
        """Remove the group if it is empty."""
        for each in self._folders():
            for folder, _, _ in os.walk(each, topdown=False):
                with contextlib.suppress(OSError):  # it is in use, or gone
                    os.rmdir(folder)


# ---- processes -------------------------------------------------------------------------------------------------------


def kill(pids: Iterable[int]) -> None:
    """Kill processes, those that have ended or belong to another user excepted."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def wake_supervisor(pid: int, started: str) -> None:
    """Have a supervisor read its lease now. Any other process that has the number by now takes no notice."""
    if pid > 0:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGCHLD)
        thaw(pid, started)


def thaw(pid: int, started: str) -> bool:
    """Continue that very process if it is stopped, by a signal or a tracer; say whether it was."""
    is_stopped = stat_of(pid)[:1] in (["T"], ["t"]) and is_running(pid, started)
    if is_stopped:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGCONT)
    return is_stopped


def descendants(root: int) -> list[int]:
    """Return the descendants of process `root` from /proc; none without /proc."""
    below: dict[int, list[int]] = {}
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):  # a kernel without: look at every process
        for pid in all_pids():
            with contextlib.suppress(IndexError):  # it has ended
                below.setdefault(int(stat_of(pid)[1]), []).append(pid)
    pids, stack = [], [root]
    while stack:
        pid = stack.pop()
        found = below.get(pid, []) if below else children(pid)
        pids += found
        stack += found
    return pids


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended
        return []
    return [int(each) for thread in threads for each in kernel_text(f"/proc/{pid}/task/{thread}/children").split()]


def processes_with(variables: Set[bytes]) -> list[int]:
    """Return the ids of processes with one of these variables NAME=value in their environment; none without /proc."""
    pids = []
    for pid in all_pids():
        if pid != os.getpid():
            # It may have ended, or belong to another user.
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if not variables.isdisjoint(file.read().split(b"\0")):
                    pids.append(pid)
    return pids


def stat_of(pid: int) -> list[str]:
    """Return state, parent, group, session … of a process, as proc(5) has them; [] if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []


def start_time(pid: int) -> str:
    """Return when a process started, in ticks since the boot; "" if it has ended. A pid alone names no process."""
    found = stat_of(pid)
    return found[19] if found and found[0] != "Z" else ""


def is_running(pid: int, started: str) -> bool:
    """Say whether that very process runs."""
    return bool(started) and start_time(pid) == started


def memory_bytes(pids: list[int], limit: float) -> int:
    """Return the memory of processes. What they share counts once where that decides whether `limit` is exceeded."""
    resident = sum(_resident(pid) for pid in pids)
    return resident if resident <= limit else sum(_proportional(pid) for pid in pids) or resident


def _resident(pid: int) -> int:
    found = kernel_text(f"/proc/{pid}/statm").split()
    return int(found[1]) * os.sysconf("SC_PAGE_SIZE") if found else 0


def _proportional(pid: int) -> int:
    for line in kernel_text(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def boot_id() -> str:
    """Return the id of this boot of the machine; "" where it has none."""
    return kernel_text("/proc/sys/kernel/random/boot_id").strip()


def become_subreaper() -> None:
    """Have what descends from this process become its child when its parent ends."""
    control(SUBREAPER, 1)


def give_back_memory() -> None:
    """Give the system back what this process has freed, where its C library does so."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def control(option: int, value: int) -> None:
    """Call prctl on Linux; elsewhere only the process group is used."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def all_pids() -> list[int]:
    """Return the processes of this machine; none without /proc."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def write_kernel(path: str, value: str) -> None:
    """Write to a file of the kernel, if it lets us."""
    with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
        file.write(value)


def kernel_text(path: str) -> str:
    """Return the text of a file of the kernel; "" if there is none, or what it is about has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
