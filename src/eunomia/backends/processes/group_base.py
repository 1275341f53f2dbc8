"""Where control groups of gangs can be made on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from eunomia.backends.processes.gang_group import OUR_GROUPS, GangGroup, kernel_text, write_kernel

DELEGATED = ("user.delegate", "trusted.delegate")  # attributes by which systemd says that a group is ours to divide
LIMITS = ("memory", "cpu", "pids")  # controllers


@dataclass(frozen=True, slots=True)
class GroupBase:
    """Where groups of gangs can be made, and which limits the kernel enforces there."""

    path: str = ""  # of cgroup v2; "" = nowhere
    enabled: frozenset[str] = frozenset()  # controllers that groups below it have
    separate: Mapping[str, str] = field(default_factory=dict)  # others, of cgroup v1, each with where it makes groups
    why: str = ""  # no group can be made, in words

    @property
    def limits(self) -> frozenset[str]:
        """Return the controllers that limit what a gang uses."""
        return self.enabled | self.separate.keys()

    @classmethod
    def find(cls, proc: str = "/proc") -> GroupBase:
        """Return the group of this process, or the one above where that was handed to us and this one is a part."""
        mounts, own = _mounts(proc), _own_groups(proc)
        if "" not in mounts or "" not in own:
            return cls(why="cgroup v2 is not mounted here")
        mount, path = mounts[""][0], _joined(mounts[""], own[""])
        above = os.path.dirname(path)
        if path != mount and _is_delegated(above) and os.access(f"{above}/cgroup.procs", os.W_OK):
            path = above
        try:
            populated = "populated" in _tried(path, "cgroup.events")
        except OSError as error:
            return cls(why=f"{path} cannot be written ({error.strerror}); have systemd delegate it (Delegate=yes)")
        if not populated:
            return cls(why=f"{path} is no group of cgroup v2")
        enabled, separate = _enabled(path), dict[str, str]()
        for name in LIMITS:
            if name not in enabled and name in mounts and name in own:
                with contextlib.suppress(OSError):  # not ours to divide
                    _tried(folder := _joined(mounts[name], own[name]), "cgroup.procs")
                    separate[name] = folder
        return cls(path, enabled, separate)

    def group_of(self, name: str) -> str:
        """Return the path of the group of that name; "" where none can be made."""
        return f"{self.path}/{OUR_GROUPS}{name}" if self.path else ""

    def group(self, path: str) -> GangGroup:
        """Return a group with what limits it, by its path."""
        name = os.path.basename(path)
        return GangGroup(path, {one: f"{folder}/{name}" for one, folder in self.separate.items()})

    def remove_empty(self, prefix: str) -> None:
        """Remove the empty groups of gangs whose names begin so."""
        for folder in {self.path, *self.separate.values()} - {""}:
            for name in os.listdir(folder):
                if name.startswith(OUR_GROUPS + prefix):
                    GangGroup(f"{folder}/{name}").remove()


def _mounts(proc: str) -> dict[str, tuple[str, str]]:
    """Return where each controller of cgroup v1 is mounted, and v2 under "": the folder, and its root in the tree."""
    found = dict[str, tuple[str, str]]()
    for line in kernel_text(f"{proc}/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        if kind in ("cgroup", "cgroup2"):
            root, folder = (word.encode().decode("unicode_escape") for word in before.split()[3:5])
            for name in options.split()[-1].split(",") if kind == "cgroup" else [""]:
                found.setdefault(name, (folder, root))
    return found


def _own_groups(proc: str) -> dict[str, str]:
    """Return the group of this process of each controller of cgroup v1, and that of v2 under ""."""
    lines = [line.split(":", 2) for line in kernel_text(f"{proc}/self/cgroup").splitlines()]
    return {name: path for number, names, path in lines for name in (names.split(",") if number != "0" else [""])}


def _joined(mount: tuple[str, str], own: str) -> str:
    folder, root = mount
    return os.path.normpath(f"{folder}/{own.removeprefix(root.rstrip('/'))}")


def _tried(path: str, name: str) -> str:
    """Make a group for a moment, and return what a file of it says. Raises OSError."""
    probe = f"{path}/eunomia-probe-{os.getpid()}"
    os.mkdir(probe)
    said = kernel_text(f"{probe}/{name}")
    os.rmdir(probe)
    return said


def _is_delegated(path: str) -> bool:
    for name in DELEGATED:
        with contextlib.suppress(OSError, AttributeError):  # no such attribute, or no such call on this system
            return os.getxattr(path, name) == b"1"
    return False


def _enabled(path: str) -> frozenset[str]:
    """Enable the controllers that are to be had for groups below this one; return which are."""
    there = set(LIMITS) & set(kernel_text(f"{path}/cgroup.controllers").split())
    for name in sorted(there):
        write_kernel(f"{path}/cgroup.subtree_control", f"+{name}")  # processes in the group itself forbid it
    return frozenset(there & set(kernel_text(f"{path}/cgroup.subtree_control").split()))
