"""Which gangs have written into their folders, as the kernel says (inotify): what has not changed is not read."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

CLOSE_WRITE, MOVED_TO, ONLY_FOLDERS, OVERFLOW = 0x8, 0x80, 0x01000000, 0x4000  # of <sys/inotify.h>
EVENT = struct.Struct("iIII")  # watch, what, cookie, length of the name that follows
MOST = 65_536  # bytes that are read at once: a job that writes without end must not keep its reader busy

Key = tuple[str, int]  # job and number of the start


class WrittenFiles:
    """Watches folders of gangs. `handle` is readable once something was written; -1 where the system has no inotify."""

    def __init__(self, is_meant: Callable[[str], bool]) -> None:
        self._is_meant = is_meant  # whether a file of that name is asked for
        self._folders = dict[int, set[Key]]()  # by watch; two starts of a job have the same folder
        self._libc, self.handle = ctypes.CDLL(None, use_errno=True), -1
        if hasattr(self._libc, "inotify_init1"):
            self.handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def watch(self, key: Key, folders: Iterable[Path]) -> bool:
        """Watch the folders of a gang; say whether that is possible."""
        for folder in dict.fromkeys(folders):
            kinds = CLOSE_WRITE | MOVED_TO | ONLY_FOLDERS
            watch = self._libc.inotify_add_watch(self.handle, os.fsencode(folder), kinds) if self.handle >= 0 else -1
            if watch < 0:
                self.forget(key)
                return False
            self._folders.setdefault(watch, set()).add(key)
        return True

    def forget(self, key: Key) -> None:
        """Watch the folders of a gang no more, unless another start of its job has them."""
        for watch, keys in list(self._folders.items()):
            keys.discard(key)
            if not keys:
                del self._folders[watch]
                self._libc.inotify_rm_watch(self.handle, watch)

    def read(self) -> set[Key]:
        """Return which gangs have written a file that is asked for, all if the kernel could not keep them all."""
        found, names = set[Key](), defaultdict[int, set[bytes]](set)
        try:
            said = os.read(self.handle, MOST)
        except BlockingIOError:
            return found
        place = 0
        while place < len(said):
            watch, what, _, length = EVENT.unpack_from(said, place)
            if what & OVERFLOW:
                return set().union(*self._folders.values())
            names[watch].add(said[place + EVENT.size : place + EVENT.size + length].rstrip(b"\0"))
            place += EVENT.size + length
        for watch, written in names.items():
            if any(self._is_meant(os.fsdecode(name)) for name in written):
                found |= self._folders.get(watch, set())
        return found

    def close(self) -> None:
        """Watch nothing more."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
