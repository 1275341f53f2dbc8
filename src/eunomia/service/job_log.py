"""Reads the output of a job, whose older part may be gone: bytes are counted from the first that it ever wrote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from eunomia.backends.processes.log_parts import PartsFile, begin_of
from eunomia.backends.processes.plain_files import open_plain

CHUNK_BYTES = 2**20  # of one answer
MOST_TRIES = 5  # while the parts move


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of an output. `first`: the oldest byte that is kept; `size`: how much was ever written."""

    data: bytes
    start: int
    first: int
    size: int

    @property
    def end(self) -> int:
        """Return the byte after the last of this piece."""
        return self.start + len(self.data)

    def text(self) -> str:
        """Return it as text."""
        return self.data.decode("utf-8", "replace")


class _Part(NamedTuple):
    """A part that is open, None = nothing was written; its first byte of the whole output, and that after its last."""

    file: BinaryIO | None
    begin: int
    end: int


class JobLog:
    """The output in a job's folder: `log`, and `errors` where these are apart."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, start: int) -> LogChunk:
        """Return what begins at a byte. One that is no longer kept, or not yet there, is read from the oldest byte on.

        Raises OSError for what is no plain file.
        """
        with self._parts() as parts:
            first, size = parts[0].begin, parts[-1].end
            start = start if first <= start <= size else first
            data = _read(parts, start, CHUNK_BYTES)
            if start + len(data) < size:  # a character that is cut is left to the next piece
                data = data[: len(data) - _cut_bytes(data)]
            return LogChunk(data, start, first, size)

    def read_end(self, most: int) -> LogChunk:
        """Return the last bytes, so many at most, from the beginning of a line on. Raises OSError as `read`."""
        with self._parts() as parts:
            first, size = parts[0].begin, parts[-1].end
            start = max(first, size - most)
            data = _read(parts, start, most)
        cut = data.find(b"\n") + 1 if start > first else 0
        return LogChunk(data[cut:], start + cut, first, size)

    def start_of_lines(self, count: int) -> int:
        """Return the byte at which the last `count` lines begin, of at most one piece. Raises OSError as `read`."""
        with self._parts() as parts:
            start = max(parts[0].begin, parts[-1].end - CHUNK_BYTES)
            data = _read(parts, start, CHUNK_BYTES)
        at = len(data) - 1 if data.endswith(b"\n") else len(data)
        for _ in range(count):
            at = data.rfind(b"\n", 0, at)
            if at < 0:
                return start
        return start + at + 1

    def start_of_time(self, since: float) -> int:
        """Return the byte before which all was written by a time (Unix), as far as times were noted."""
        begun = [byte for at, byte in PartsFile(str(self._path)).times if at <= since]
        return max(begun, default=0)

    @contextmanager
    def _parts(self) -> Iterator[list[_Part]]:
        """Return the parts that are kept, oldest first."""
        for tries in range(MOST_TRIES):
            with ExitStack() as opened:
                new, old = self._open("", opened), self._open(".1", opened)
                known = PartsFile(str(self._path))
                moves = new is None and old is not None  # or the job removed it
                if new is not None and old is not None:
                    first, second = os.fstat(new.fileno()), os.fstat(old.fileno())
                    moves = first.st_ino == second.st_ino or not first.st_nlink
                    moves |= bool(known.begins) and first.st_ino not in known.begins
                if moves and tries < MOST_TRIES - 1:
                    continue
                yield self._numbered(known, old, new)
                return

    def _open(self, suffix: str, opened: ExitStack) -> BinaryIO | None:
        with contextlib.suppress(FileNotFoundError):
            return opened.enter_context(os.fdopen(open_plain(f"{self._path}{suffix}"), "rb"))
        return None

    def _numbered(self, known: PartsFile, old: BinaryIO | None, new: BinaryIO | None) -> list[_Part]:
        parts = list[_Part]()
        if new is not None:
            found = os.fstat(new.fileno())
            begin = begin_of(known, str(self._path), found.st_ino)
            parts.append(_Part(new, begin, begin + found.st_size))
        if old is not None:
            size = os.fstat(old.fileno()).st_size
            begin = parts[0].begin if parts else known.begins.get(os.fstat(old.fileno()).st_ino, 0) + size
            parts.insert(0, _Part(old, max(begin - size, 0), begin))
        return parts or [_Part(None, 0, 0)]


def _read(parts: list[_Part], start: int, most: int) -> bytes:
    found = b""
    for file, begin, end in parts:
        at = start + len(found)
        if file is not None and begin <= at < end and len(found) < most:
            file.seek(at - begin)
            found += file.read(min(end - at, most - len(found)))
    return found


def _cut_bytes(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of a character in UTF-8."""
    for count in (1, 2, 3):
        if len(data) > count and data[-count] & 0xC0 != 0x80:  # not within a character
            return count if data[-count] >> (7 - count) == (1 << (count + 1)) - 1 else 0
    return 0
