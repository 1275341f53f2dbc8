"""The beginning and the end of a log, however large it is, and whether it is packed with gzip or not."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

HEAD_BYTES, TAIL_BYTES, CHUNK_BYTES = 1 << 20, 8 << 20, 1 << 20
_GZIP = b"\x1f\x8b"
_WIDE = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_LOOKED_AT, _ZEROS = 1024, 0.4  # bytes, and the part of every second one that is 0 in UTF-16 of mostly Latin text


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a log to read, unpacked if it is packed with gzip."""
    with path.open("rb") as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast(BinaryIO, unpacked)


def ends_of(file: BinaryIO, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> Iterator[tuple[int, str]]:
    """Yield the first and the last lines with their numbers; what lies between is counted and left out.

    Bytes that are no UTF-8 become the replacement character. A byte order mark makes it UTF-16, and so do bytes of
    which nearly every second is 0.
    """
    head = _read(file, head_bytes - head_bytes % 2)
    encoding = _encoding_of(head)
    tail, dropped, cut = bytearray(), 0, False
    while chunk := file.read(CHUNK_BYTES):
        tail += chunk
        if len(tail) > tail_bytes + CHUNK_BYTES:
            extra = len(tail) - tail_bytes
            extra -= extra % 2  # no character of UTF-16 is cut in two
            dropped += _lines_in(tail[:extra], encoding)
            cut = True
            del tail[:extra]
    if not cut:
        yield from enumerate(_text(head + tail, encoding).split("\n"), start=1)
        return
    first = _text(head, encoding).split("\n")
    yield from enumerate(first[:-1], start=1)
    cut_line, *rest = _text(tail, encoding).split("\n")
    whole = cut_line.partition("\r")[2]  # what a progress bar wrote over the part that has lost its beginning
    yield len(first) + dropped, whole or ("" if rest else cut_line)
    yield from enumerate(rest, start=len(first) + dropped + 1)


def _encoding_of(head: bytes) -> str:
    """Return how a log that begins so is written."""
    for encoding, mark in _WIDE.items():
        if head.startswith(mark):
            return encoding
    some = head[:_LOOKED_AT]
    low, high = some[::2].count(0), some[1::2].count(0)  # zeros in even and in odd places
    if max(low, high) > _ZEROS * len(some) / 2 and min(low, high) < max(low, high) / 10:
        return "utf-16-le" if high > low else "utf-16-be"
    return "utf-8"


def _lines_in(part: bytes | bytearray, encoding: str) -> int:
    """Return the ends of lines in a part of a log."""
    return part.count(b"\n") if encoding == "utf-8" else _text(part, encoding).count("\n")


def _text(part: bytes | bytearray, encoding: str) -> str:
    return part.decode(encoding, errors="replace").removeprefix("\ufeff")


def _read(file: BinaryIO, wanted: int) -> bytes:
    """Read so many bytes, or all there are; a pipe gives them in pieces."""
    parts, missing = [], wanted
    while missing and (part := file.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
