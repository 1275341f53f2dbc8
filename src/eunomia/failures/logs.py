"""Reads the beginning and the end of a log of any size, gzip or not."""

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
_SAMPLE_BYTES, _ZEROS = 1024, 0.4  # the fraction of every second byte that is 0 in UTF-16 of mostly Latin text


@contextmanager
def open_log(path: Path) -> Iterator[BinaryIO]:
    """Open a log for reading, decompressed if it is gzip."""
    with path.open("rb") as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast(BinaryIO, unpacked)


def read_ends(file: BinaryIO, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> Iterator[tuple[int, str]]:
    """Yield the first and the last lines with their numbers; lines between are counted and left out.

    Bytes that are not UTF-8 become the replacement character. A log with a byte order mark, or with nearly every second
    byte 0, is read as UTF-16.
    """
    head = _read(file, head_bytes - head_bytes % 2)
    encoding = _detect_encoding(head)
    tail, dropped, cut = bytearray(), 0, False
    while chunk := file.read(CHUNK_BYTES):
        tail += chunk
        if len(tail) > tail_bytes + CHUNK_BYTES:
            extra = len(tail) - tail_bytes
            extra -= extra % 2  # keeps the 2 bytes of a UTF-16 character together
            dropped += _count_lines(tail[:extra], encoding)
            cut = True
            del tail[:extra]
    if not cut:
        yield from enumerate(_decode(head + tail, encoding).split("\n"), start=1)
        return
    first = _decode(head, encoding).split("\n")
    yield from enumerate(first[:-1], start=1)
    cut_line, *rest = _decode(tail, encoding).split("\n")
    whole = cut_line.partition("\r")[2]  # the text after the truncated part of a progress bar's line
    yield len(first) + dropped, whole or ("" if rest else cut_line)
    yield from enumerate(rest, start=len(first) + dropped + 1)


def _detect_encoding(head: bytes) -> str:
    """Return the encoding of a log from its first bytes."""
    for encoding, mark in _WIDE.items():
        if head.startswith(mark):
            return encoding
    some = head[:_SAMPLE_BYTES]
    low, high = some[::2].count(0), some[1::2].count(0)  # zeros at even and odd offsets
    if max(low, high) > _ZEROS * len(some) / 2 and min(low, high) < max(low, high) / 10:
        return "utf-16-le" if high > low else "utf-16-be"
    return "utf-8"


def _count_lines(part: bytes | bytearray, encoding: str) -> int:
    """Return the number of line ends in a part of a log."""
    return part.count(b"\n") if encoding == "utf-8" else _decode(part, encoding).count("\n")


def _decode(part: bytes | bytearray, encoding: str) -> str:
    return part.decode(encoding, errors="replace").removeprefix("\ufeff")


def _read(file: BinaryIO, wanted: int) -> bytes:
    """Read `wanted` bytes, or all there are; a pipe returns them in pieces."""
    parts, missing = [], wanted
    while missing and (part := file.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
