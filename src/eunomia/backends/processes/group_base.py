"""Where control groups of gangs can be made on this machine."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from eunomia.backends.processes.gang_group import OUR_GROUPS, GangGroup, kernel_text, write_kernel

DELEGATED = ("user.delegate", "trusted.delegate")  # attributes by which systemd says that a group is ours to divide


@dataclass(frozen=True, slots=True)
class GroupBase:
    """Where groups of gangs can be made, and which limits the kernel enforces there."""

    path: str = ""  # "" = nowhere
    limits: frozenset[str] = frozenset()  # of memory, cpu
    why: str = ""  # no group can be made, in words

    @classmethod
    def find(cls, proc: str = "/proc") -> GroupBase:
        """Return the group of this process, or the one above where that was handed to us and this one is a part."""
        mount = _mount_of_cgroup2(proc)
        own = next((line[3:] for line in kernel_text(f"{proc}/self/cgroup").splitlines() if line.startswith("0::")), "")
        if not mount or not own:
            return cls(why="cgroup v2 is not mounted here")
        path = os.path.normpath(f"{mount}/{own}")
        above = os.path.dirname(path)
        if path != mount and _is_delegated(above) and os.access(f"{above}/cgroup.procs", os.W_OK):
            path = above
        probe = f"{path}/eunomia-probe-{os.getpid()}"
        try:
            os.mkdir(probe)
            populated = "populated" in kernel_text(f"{probe}/cgroup.events")
            os.rmdir(probe)
        except OSError as error:
            return cls(why=f"{path} cannot be written ({error.strerror}); have systemd delegate it (Delegate=yes)")
        if not populated:
            return cls(why=f"{path} is no group of cgroup v2")
        return cls(path, _enabled(path))

    def group_of(self, name: str) -> str:
        """Return the path of the group of that name; "" where none can be made."""
        return f"{self.path}/{OUR_GROUPS}{name}" if self.path else ""

    def remove_empty(self, prefix: str) -> None:
        """Remove the empty groups of gangs whose names begin so."""
        for name in os.listdir(self.path) if self.path else ():
            if name.startswith(OUR_GROUPS + prefix):
                GangGroup(f"{self.path}/{name}").remove()


def _mount_of_cgroup2(proc: str) -> str:
    for line in kernel_text(f"{proc}/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return before.split()[4].encode().decode("unicode_escape")
    return ""


def _is_delegated(path: str) -> bool:
    for name in DELEGATED:
        with contextlib.suppress(OSError, AttributeError):  # no such attribute, or no such call on this system
            return os.getxattr(path, name) == b"1"
    return False


def _enabled(path: str) -> frozenset[str]:
    """Enable the controllers that are to be had for groups below this one; return which are."""
    there = {"memory", "cpu"} & set(kernel_text(f"{path}/cgroup.controllers").split())
    for name in sorted(there):
        write_kernel(f"{path}/cgroup.subtree_control", f"+{name}")  # processes in the group itself forbid it
    return frozenset(there & set(kernel_text(f"{path}/cgroup.subtree_control").split()))
