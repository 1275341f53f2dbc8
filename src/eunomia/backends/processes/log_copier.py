"""Copies what a gang writes into its log, which has a longest length. Standard library only: supervisors use it."""

from __future__ import annotations

import _thread
import contextlib
import os
import select

CHUNK = 65_536
STACK = 262_144  # bytes; of the thread


class LogCopier:
    """A thread that reads the gang's output from a pipe, so that a slow disk or a chatty gang delays nothing else.

    The log is the open file 2 of this process. It is renamed to `log.1` before it would exceed `limit` bytes, so there
    are never more than two parts and what the pipe holds; a gang that writes faster than the disk waits at the pipe.
    What the disk does not take, as it is full, is left out, and the log says how much.
    """

    def __init__(self, path: str, limit: int) -> None:
        self.write_end = -1  # for the gang
        self._path, self._limit = path, limit
        self._read_end, self.write_end = os.pipe()
        self._stop_read, self._stop_write = os.pipe()
        self._size = os.fstat(2).st_size
        self._missing = 0  # bytes
        self._done = _thread.allocate_lock()
        self._done.acquire()

    def start(self) -> None:
        """Begin to copy; the processes of the gang have the other end by now."""
        os.close(self.write_end)
        os.set_blocking(self._read_end, False)
        _thread.stack_size(STACK)
        _thread.start_new_thread(self._run, ())

    def finish(self, longest_s: float) -> None:
        """Copy what the pipe still holds. A disk that does not answer so long is not waited for."""
        os.close(self._stop_write)
        self._done.acquire(timeout=longest_s)

    def _run(self) -> None:
        poll, is_open, stops = select.poll(), True, False
        for end in (self._read_end, self._stop_read):
            poll.register(end, select.POLLIN)
        while not stops:
            stops = any(end == self._stop_read for end, _ in poll.poll())
            if is_open and not (is_open := self._copy()):
                poll.unregister(self._read_end)
        self._done.release()

    def _copy(self) -> bool:
        """Copy all that is there; return whether more may come."""
        try:
            while data := os.read(self._read_end, CHUNK):
                self._take(data)
        except BlockingIOError:
            return True
        return False

    def _take(self, data: bytes) -> None:
        try:
            if self._missing:
                self._write(f"\n[{self._missing} bytes of output are missing: the disk was full]\n".encode())
                self._missing = 0
            self._write(data)
        except OSError:
            self._missing += len(data)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            if self._size >= self._limit:
                self._rotate()
            written = os.write(2, rest[: self._limit - self._size])
            self._size += written
            rest = rest[written:]

    def _rotate(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # the folder was removed
            os.replace(self._path, f"{self._path}.1")
        new = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(new, 2, inheritable=False)
        os.close(new)
        self._size = 0
