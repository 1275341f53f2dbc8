"""A published set of files, each at a fixed commit of a public repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

RAW = "https://raw.githubusercontent.com"
LARGE = "https://media.githubusercontent.com/media"  # files that the repository keeps in large file storage
NO_CHECKSUM = "no published checksum"


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
