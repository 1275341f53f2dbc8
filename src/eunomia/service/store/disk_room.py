"""Room on the disk of the state folder: a reserve that is given up when the disk is full, and the wait for more."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
from pathlib import Path

from eunomia.service.store.opening import StoreProblem

FILE = "store.reserve"
RESERVE_BYTES = 8 * 2**20
SPARE_BYTES = 16 * 2**20  # of the disk: below, new jobs are refused
START_BYTES = 2**20  # a start needs so much
AGAIN_S = 0.5  # between attempts to write
_log = logging.getLogger("eunomia.service")


class DiskFull(StoreProblem):
    """The disk has no room for what was to be stored. Nothing of it was."""


class DiskRoom:
    """The reserve of one state folder. `is_waiting`: it is used up, and nothing can be stored."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FILE
        self._closing = threading.Event()
        self.is_waiting = False

    def free_bytes(self) -> int:
        """Return the free bytes of the disk, besides the reserve."""
        return shutil.disk_usage(self._folder).free

    @property
    def is_held(self) -> bool:
        """Whether the reserve is there."""
        return self._path.exists()

    def begin(self) -> None:
        """Make the reserve, or give it up for a start on a full disk. Raises DiskFull if there is not even that."""
        if self.free_bytes() < START_BYTES and not self.give_up():
            raise DiskFull.of(self._folder, "the disk is full", "make room on it, and start again")
        self.hold()

    def hold(self) -> None:
        """Make the reserve, once there is room for it and for new jobs; nothing if it is there."""
        if self.is_held or self.free_bytes() < RESERVE_BYTES + SPARE_BYTES:
            return
        draft = self._path.with_suffix(".draft")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _allocate(handle)
            finally:
                os.close(handle)
            draft.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            _log.warning("%s: no room can be reserved: %s", self._folder, error)

    def give_up(self) -> bool:
        """Remove the reserve, so that its room can be used; False if there is none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        _log.warning("%s: the disk is full; the reserve of %d MiB is used", self._folder, RESERVE_BYTES // 2**20)
        return True

    def wait(self) -> bool:
        """Return once it is worth to write again: at once with a reserve, else a while later; False at the end."""
        if self.give_up():
            return True
        if not self.is_waiting:
            _log.error("%s: the disk is full; nothing is stored until there is room", self._folder)
        self.is_waiting = True
        return not self._closing.wait(AGAIN_S)

    def written(self) -> None:
        """Note that something could be stored."""
        if self.is_waiting:
            _log.warning("%s: there is room on the disk again", self._folder)
        self.is_waiting = False

    def close(self) -> None:
        """Let no thread wait any longer."""
        self._closing.set()


def _allocate(handle: int) -> None:
    """Take the room of the reserve; by zeros where the system has no other way. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, RESERVE_BYTES)
    else:
        for _ in range(RESERVE_BYTES // 2**20):
            os.write(handle, bytes(2**20))
        os.fsync(handle)
