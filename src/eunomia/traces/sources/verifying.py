"""Verifies a copy by the published checksum, or by its columns and rows where none is known."""

from __future__ import annotations

import csv
import gzip
import hashlib
import zipfile
import zlib
from pathlib import Path

from eunomia.inputs.problems import Problem
from eunomia.traces.sources.source import File

CHUNK = 1 << 20


def verify(file: File, copy: Path) -> Problem | None:
    """Return the first problem of a copy, or None."""
    digest, lines, size = measure_file(copy)
    if file.sha256 is not None and digest != file.sha256:
        return _mismatch(file, digest, f"its SHA-256 must be {file.sha256}")
    if file.size_bytes is not None and size != file.size_bytes:
        return _mismatch(file, f"{size:,}", f"must be {file.size_bytes:,} bytes long")
    if size == 0:
        return _mismatch(file, "0", "the file is empty")
    if not _is_whole_archive(copy, file.copy_name):
        return _mismatch(file, f"{size:,} bytes", "the archive is damaged, or not an archive")
    missing = [name for name in file.columns if name not in _read_header(copy)] if file.columns else []
    if missing:
        return _mismatch(file, ", ".join(missing), "these columns are missing, so it is another file")
    rows = lines - bool(file.columns)
    if file.sha256 is None and file.rows is not None and rows != file.rows:
        return _mismatch(file, f"{rows:,}", f"must hold {file.rows:,} rows")
    return None


def _mismatch(file: File, value: str, rule: str) -> Problem:
    fix = "nothing was kept; run it again; if the problem stays, the source has changed: check it before use"
    return Problem(file=file.copy_name, value=value, rule=rule, fix=fix)


def measure_file(copy: Path) -> tuple[str, int, int]:
    """Return the SHA-256, lines and bytes of a file."""
    digest, lines, size, last = hashlib.sha256(), 0, 0, b"\n"
    with copy.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            digest.update(chunk)
            lines, size, last = lines + chunk.count(b"\n"), size + len(chunk), chunk[-1:]
    return digest.hexdigest(), lines + (last != b"\n"), size


def _is_whole_archive(copy: Path, name: str) -> bool:
    """Say whether a file is a readable archive, or is no archive by its name."""
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(copy) as packed:
                return packed.testzip() is None
        if name.endswith(".gz"):
            with gzip.open(copy) as unpacked:
                while unpacked.read(CHUNK):
                    pass
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        return False
    return True


def _read_header(copy: Path) -> list[str]:
    with copy.open("rb") as opened:
        line = opened.readline(1 << 16).decode("utf-8-sig", errors="replace")
    return next(csv.reader([line]), [])
