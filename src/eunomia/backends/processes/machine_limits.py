"""What this machine gives a process that starts gangs: open files, processes, memory."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import resource
from pathlib import Path

from eunomia.backends.processes.group_base import GroupBase

FILES_A_GANG = 3  # open in the process that starts it: two pipes, and what says that its supervisor has ended
PROCESSES_A_GANG = 3  # its supervisor, the thread that copies its log, and the program itself
MEMORY_A_GANG = 8 * 2**20  # bytes; of its supervisor
ENOUGH_FILES = 65_536  # where there is no limit
SPARE_FILES = 64  # kept for everything else
LEAST_TASKS = 1024  # that a gang may have at least


@functools.cache
def raise_open_files() -> int:
    """Raise this process's soft limit of open files to the hard one; return what it was, which gangs are given."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        most = ENOUGH_FILES if hard == resource.RLIM_INFINITY else hard
        with contextlib.suppress(ValueError, OSError):  # some systems have a limit of their own below
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    return soft


def open_files_left() -> int:
    """Return how many files this process may still open for gangs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31
    return soft - min(SPARE_FILES, soft // 4) - _count("/proc/self/fd")


def room_for_gangs() -> dict[str, int]:
    """Return how many gangs fit on this machine now, by what is used up first; what jobs themselves need comes on top.

    What the system does not tell is left out.
    """
    room = {"open files": open_files_left() // FILES_A_GANG}
    most = _most_tasks()
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        most.append(soft)
    if most:
        room["processes"] = max(min(most) - _running_tasks(), 0) // PROCESSES_A_GANG
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            room["memory"] = int(line.split()[1]) * 1024 // MEMORY_A_GANG
    return dict(sorted(room.items(), key=lambda one: one[1]))


def tasks_for(share: float) -> int:
    """Return how many processes and threads a gang may have that holds this share of the accelerators; 0 = any number.

    All together may have half of what the machine has, so that one that makes more and more leaves room for others.
    """
    most = _most_tasks()
    return max(int(min(most) / 2 * share), LEAST_TASKS) if most else 0


def describe_room() -> list[str]:
    """Return in words how many gangs this machine has room for, and what sees to their limits."""
    raise_open_files()
    room = [f"{count:,} by {what}" for what, count in room_for_gangs().items()]
    base = GroupBase.find()
    groups = f"in control groups below {base.path}" if base.path else f"without control groups ({base.why})"
    memory = "enforced by the kernel" if "memory" in base.limits else "enforced by a reading each second"
    cpus = "enforced by the kernel" if "cpu" in base.limits else "not enforced: no control group here has a CPU limit"
    tasks = "enforced by the kernel" if "pids" in base.limits else "not enforced"
    return [
        f"gangs:     room for so many at once, without what the jobs themselves need: {', '.join(room)}",
        f"limits:    gangs run {groups}; memory_gib is {memory}; cpus is {cpus}; "
        f"the number of processes of a job is {tasks}",
    ]


def machine_room() -> tuple[float, float]:
    """Return the CPUs and the memory of this machine in GiB; inf for what the system does not tell."""
    kib = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal:")]
    return float(os.cpu_count() or math.inf), kib[0] / 2**20 if kib else math.inf


def _most_tasks() -> list[int]:
    """Return the numbers that limit how many tasks the machine has."""
    found = (_number(f"/proc/sys/kernel/{name}") for name in ("pid_max", "threads-max"))
    return [one for one in found if one is not None]


def _running_tasks() -> int:
    """Return how many tasks the machine has, from the fourth field of loadavg, as in 2/345."""
    found = _lines("/proc/loadavg")
    return int(found[0].split()[3].partition("/")[2]) if found else 0


def _count(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def _number(path: str) -> int | None:
    found = _lines(path)
    return int(found[0]) if found else None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []
