"""The two parts of a job's output, and where each begins in all of it. Standard library only: supervisors use it.

`log` is the newer part, `log.1` the older one. `log.parts` has a line `part INODE BYTE` for each, with the byte of the
whole output at which it begins, and lines `time SECONDS BYTE`: at that time (Unix) so much had been written.
"""

from __future__ import annotations

import contextlib
import os

from eunomia.backends.processes.plain_files import open_anew, open_plain

MOST_PARTS = 1 << 24  # bytes of `log.parts` that are read
MOST_BYTES = 2**62  # of an output
NOTED_S, NOTED_BYTES, NOTED_LATEST_S = 10.0, 256, 60.0  # a time is noted after both, or after the last


class PartsFile:
    """What `log.parts` says. A line that cannot be used is passed over: where jobs can write here, it may be theirs."""

    def __init__(self, log: str) -> None:
        self.begins: dict[int, int] = {}  # byte by inode
        self.times: list[tuple[float, int]] = []
        data = b""
        with contextlib.suppress(OSError):
            handle = open_plain(f"{log}.parts")
            with open(handle, "rb") as file:
                data = file.read(MOST_PARTS)
        for line in data.splitlines():
            with contextlib.suppress(ValueError):
                kind, which, byte = line.split()
                if len(byte) < 20 and 0 <= int(byte) <= MOST_BYTES:
                    if kind == b"part" and len(which) < 21:
                        self.begins[int(which)] = int(byte)
                    elif kind == b"time":
                        self.times.append((float(which), int(byte)))


class LogWriter:
    """Writes an output of which two parts of at most `limit` bytes are kept."""

    def __init__(self, path: str, handle: int, limit: int, now: float) -> None:
        self._path, self._handle, self._limit = path, handle, limit
        self._size = os.fstat(handle).st_size
        self._begin: int | None = None  # of the newer part, once it is needed
        self._noted = (now, 0) if self._size < NOTED_BYTES else (0.0, 0)  # the last time, and the size then

    def write(self, data: bytes, now: float) -> None:
        """Write all of it. Raises OSError for what the disk does not take."""
        self._note(now)
        rest = memoryview(data)
        while rest:
            if self._size >= self._limit:
                self._rotate()
            written = os.write(self._handle, rest[: self._limit - self._size])
            self._size += written
            rest = rest[written:]

    def _begins(self) -> int:
        if self._begin is None:
            self._begin = begin_of(PartsFile(self._path), self._path, os.fstat(self._handle).st_ino)
        return self._begin

    def _note(self, now: float) -> None:
        since, size = now - self._noted[0], abs(self._size - self._noted[1])
        if since >= NOTED_LATEST_S or (since >= NOTED_S and size >= NOTED_BYTES):
            self._noted = now, self._size
            line = f"time {now:.0f} {self._begins() + self._size}\n"
            self._write_parts(f"{self._path}.parts", os.O_APPEND, line)

    def _write_parts(self, path: str, flags: int, text: str) -> bool:
        """Write about the parts; that it cannot be written stops no output. Return whether it was."""
        try:
            handle = open_anew(path, os.O_WRONLY | flags, 0o600)
            try:
                os.write(handle, text.encode())
            finally:
                os.close(handle)
        except OSError:
            return False
        return True

    def _rotate(self) -> None:
        """Put an empty file in the place of the newer part. What begins where is written before."""
        old, begin = os.fstat(self._handle).st_ino, self._begins()
        new = open_anew(f"{self._path}.next", os.O_WRONLY | os.O_APPEND | os.O_TRUNC, 0o600)
        try:
            times = [f"time {at:.0f} {byte}" for at, byte in PartsFile(self._path).times if byte >= begin]
            lines = [f"part {old} {begin}", f"part {os.fstat(new).st_ino} {begin + self._size}", *times, ""]
            if self._write_parts(f"{self._path}.parts.next", os.O_TRUNC, "\n".join(lines)):
                os.replace(f"{self._path}.parts.next", f"{self._path}.parts")
            with contextlib.suppress(FileNotFoundError):  # the job removed it
                os.replace(self._path, f"{self._path}.1")
            os.replace(f"{self._path}.next", self._path)
            os.dup2(new, self._handle, inheritable=False)
        finally:
            os.close(new)
        self._begin, self._size = begin + self._size, 0


def begin_of(parts: PartsFile, path: str, inode: int) -> int:
    """Return the byte of the whole output at which the newer part begins, which has this inode."""
    if inode in parts.begins:
        return parts.begins[inode]
    try:
        old = os.stat(f"{path}.1", follow_symlinks=False)
    except OSError:
        return 0
    return parts.begins.get(old.st_ino, 0) + old.st_size
