"""The beginning and the end of a log, however large it is."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

HEAD_BYTES, TAIL_BYTES, CHUNK_BYTES = 1 << 20, 8 << 20, 1 << 20
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def ends_of(file: BinaryIO, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> Iterator[tuple[int, str]]:
    """Yield the first and the last lines with their numbers; what lies between is counted and left out.

    Bytes that are no UTF-8 become the replacement character; a byte order mark makes it UTF-16.
    """
    head = _read(file, head_bytes)
    tail, dropped, cut = bytearray(), 0, False
    while chunk := file.read(CHUNK_BYTES):
        tail += chunk
        if len(tail) > tail_bytes + CHUNK_BYTES:
            extra = len(tail) - tail_bytes
            dropped += tail.count(b"\n", 0, extra)
            cut = True
            del tail[:extra]
    encoding = "utf-16" if head.startswith(_WIDE) else "utf-8-sig"
    if not cut:
        yield from enumerate((head + tail).decode(encoding, errors="replace").split("\n"), start=1)
        return
    first = head.decode(encoding, errors="replace").split("\n")
    yield from enumerate(first[:-1], start=1)
    rest = tail.decode("utf-8", errors="replace").split("\n")  # its first line has lost its beginning
    yield from enumerate(rest[1:], start=len(first) + dropped + 1)


def _read(file: BinaryIO, wanted: int) -> bytes:
    """Read so many bytes, or all there are; a pipe gives them in pieces."""
    parts, missing = [], wanted
    while missing and (part := file.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
