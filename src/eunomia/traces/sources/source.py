"""A published set of files, each at a fixed commit, and how a copy is verified: by checksum, or by columns and rows."""

from __future__ import annotations

import csv
import gzip
import hashlib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eunomia.inputs.problems import Problem

RAW = "https://raw.githubusercontent.com"
LARGE = "https://media.githubusercontent.com/media"  # files that the repository keeps in large file storage
NO_CHECKSUM = "no published checksum"
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file. A copy must match every fact that is not None."""

    path: str  # in the repository
    name: str = ""  # of the copy; "" = the last part of the path
    sha256: str | None = None
    size_bytes: int | None = None
    rows: int | None = None  # lines of the file, without a header
    columns: tuple[str, ...] = ()  # required in its header
    large: bool = False

    @property
    def copy_name(self) -> str:
        """The file name of the copy."""
        return self.name or self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSource:
    """A published data set."""

    name: str
    about: str
    paper: str
    licence: str
    repository: str  # owner/name
    commit: str
    files: tuple[File, ...]
    format: str = ""  # its reader; "" = none, see `about`

    def url(self, file: File, mirror: str | None = None) -> str:
        """Return the address of the file; a mirror has the same paths below another address."""
        host = mirror.rstrip("/") if mirror else LARGE if file.large else RAW
        return f"{host}/{self.repository}/{self.commit}/{quote(file.path)}"

    @property
    def size_bytes(self) -> int | None:
        """Total size; None if the size of a file is unknown."""
        sizes = [file.size_bytes for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def checksum(self) -> str:
        """The checksums that a copy is verified by, in words."""
        known = sum(file.sha256 is not None for file in self.files)
        if known == len(self.files):
            return "SHA-256"
        return NO_CHECKSUM if not known else f"SHA-256 of {known} of {len(self.files)} files"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "about": self.about,
            "paper": self.paper,
            "licence": self.licence,
            "format": self.format,
            "size_bytes": self.size_bytes,
            "checksum": self.checksum,
            "files": [
                {
                    "name": file.copy_name,
                    "url": self.url(file),
                    "sha256": file.sha256,
                    "size_bytes": file.size_bytes,
                    "rows": file.rows,
                }
                for file in self.files
            ],
        }


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
