"""Who holds the locks of seats and jobs, as the kernel says, whatever files and schedulers say."""

from __future__ import annotations

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from datetime import UTC, datetime
from pathlib import Path

from eunomia.backends.processes.gang_group import kernel_text, start_time, thaw
from eunomia.backends.processes.plain_files import open_plain

MOST_DIGITS = 12  # of the number of a seat
MOST_SIGNED = 1 << 20  # bytes of a lock file that are read
LOOK_S = 4.0  # between looks
_VARIABLE = b"EUNOMIA_LEASE_FILE="


def locks() -> dict[int, set[int]]:
    """Return which processes have locked each file, by the number of the file (inode)."""
    found = defaultdict[int, set[int]](set)
    for line in kernel_text("/proc/locks").splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[4].isdigit():  # one that waits for a lock has an arrow for its second word
            found[int(words[5].rpartition(":")[2])].add(int(words[4]))
    return found


def holders(path: Path, held: dict[int, set[int]]) -> set[int]:
    """Return the processes that have locked a file; files of two file systems may have the same number."""
    try:
        one = path.stat()
    except OSError:  # it is not there
        return set()
    return {pid for pid in held.get(one.st_ino, ()) if _has_open(pid, one)}


def lease_of(pid: int) -> str:
    """Return the lease file that a process has in its environment, of the start that it belongs to; "" = none."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or belongs to another user
        return ""
    return next((os.fsdecode(one.removeprefix(_VARIABLE)) for one in variables if one.startswith(_VARIABLE)), "")


def moment(at_s: float) -> str:
    """Return a wall-clock time in UTC. Raises ValueError for one that no calendar has."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def seats_signed(folder: Path, lease: str) -> tuple[int, ...]:
    """Return the seats whose locked files in a folder name the start with this lease; see `Supervisor.sign_locks`."""
    signed, found = json.dumps(lease).encode(), list[int]()
    for seat, path in _lock_files(folder):
        try:
            handle = open_plain(path)
        except OSError:
            continue
        try:
            if signed in os.read(handle, MOST_SIGNED):
                found.append(seat)
        finally:
            os.close(handle)
    return tuple(sorted(found))


class SeatLocks:
    """The locked files of seats in a folder, as they were looked at last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.due = -math.inf  # when to look again, in s of time.monotonic, if no gang waits
        self._held: dict[int, set[int]] = {}
        self.strange: dict[int, tuple[int, str, str]] = {}  # seat → process, its lease file or "", since when

    def look(self, known: Iterable[tuple[int, str, tuple[int, ...]]], named: Set[str], own: str) -> None:
        """Find the seats that a process has locked of which no gang is known to have them.

        `known` are supervisors and lease files of gangs, with their seats, `named` lease files of others; `own` begins
        those of our gangs. A process of ours that is stopped is continued, so that it ends with its lease.
        """
        self._held, self.due = locks(), time.monotonic() + LOOK_S
        pids, leases = defaultdict[int, set[int]](set), defaultdict[str, set[int]](set)
        for pid, lease, seats in known:
            pids[pid].update(seats)
            leases[lease].update(seats)
        before, self.strange = self.strange, {}
        for seat, path in _lock_files(self._folder) if self._held else ():
            for pid in sorted(self._held.get(_number(path), ())):
                if seat in pids.get(pid, ()) or seat in leases.get(lease := lease_of(pid), ()):
                    continue
                if lease not in named and pid in self.holders(path):
                    is_same = seat in before and before[seat][0] == pid
                    since = before[seat][2] if is_same else moment(time.time())
                    self.strange[seat] = pid, lease if lease.startswith(own) else "", since
                    if lease.startswith(own):
                        thaw(pid, start_time(pid))
        if self.strange:
            self.due = -math.inf

    def holders(self, path: Path) -> set[int]:
        """Return the processes that had locked a file."""
        return holders(path, self._held)


def _lock_files(folder: Path) -> Iterator[tuple[int, Path]]:
    for name in os.listdir(folder):
        stem, _, ending = name.partition(".")
        if ending == "lock" and stem.isascii() and stem.isdigit() and len(stem) < MOST_DIGITS:
            yield int(stem), folder / name


def _number(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:  # it was removed by now
        return -1


def _has_open(pid: int, file: os.stat_result) -> bool:
    try:
        handles = os.listdir(f"/proc/{pid}/fd")
    except OSError:  # it has ended, or is not ours to see: then it could not open what is ours
        return False
    for handle in handles:
        try:
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{handle}"), file):
                return True
        except OSError:  # closed by now
            continue
    return False
